import ArgumentParser

/// `--host` of the commands that list and forget.
struct HostFilter: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Only this host: example.com (any port), example.com:8080 or https://example.com.",
            valueName: "host"))
    var host: String?

    /// Whether what is wanted includes an origin: scheme, host and port, as the cache stores them.
    func includes(origin: String) -> Bool {
        host.map { HostFilter.host($0, includes: origin) } ?? true
    }

    /// Whether a user means an origin by this text.
    static func host(_ host: String, includes origin: String) -> Bool {
        let host = host.lowercased()
        return names(of: origin.lowercased()).contains { $0 == host }
    }

    /// What a user may call a host that is stored as scheme, name and port.
    private static func names(of origin: String) -> [Substring] {
        guard let separator = origin.firstRange(of: "://") else { return [origin[...]] }
        let authority = origin[separator.upperBound...]
        guard let colon = authority.lastIndex(of: ":"),
            authority[colon...].dropFirst().allSatisfy(\.isNumber)
        else { return [origin[...], authority] }
        return [origin[...], authority, authority[..<colon]]
    }
}

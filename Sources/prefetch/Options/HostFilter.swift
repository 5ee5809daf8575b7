import ArgumentParser
import CacheStorage
import PrefetchModel
import URLParsing

extension HostName: ExpressibleByArgument {
    /// Nil for what has a path or a query: whoever gives the URL of an image may mean that image alone, and it matches nothing.
    package init?(argument: String) {
        let parts = argument.lowercased().split(separator: "://", maxSplits: 1)
        var authority = parts.last ?? ""
        if parts.count == 2, authority.hasSuffix("/") { authority.removeLast() }
        guard !authority.isEmpty, !authority.contains(where: { "/?# ".contains($0) }) else {
            return nil
        }
        guard parts.count == 2 else {
            self.init(String(authority))
            return
        }
        let origin = "\(parts[0])://\(authority)"
        // The cache has none of the scheme's own port, nor names that are not ASCII. A text that is no URL, or one that takes a
        // libcurl that cannot be loaded, is looked for as it was given.
        let url = try? URLParser().parse("\(origin)/".utf8)
        self.init(url?.withoutCredentials.origin ?? origin)
    }
}

/// `--host` of the commands that list and forget.
struct HostFilter: ParsableArguments {
    @Option(
        name: .customLong("host"),
        help: ArgumentHelp(
            "Only this host: example.com (any port), example.com:8080 or https://example.com.",
            valueName: "host"))
    var names: [HostName] = []

    /// Whether it leaves any host out.
    var isGiven: Bool { !names.isEmpty }

    /// Whether what is wanted includes an origin: scheme, host and port, as the cache stores them.
    func includes(origin: String) -> Bool {
        names.isEmpty || names.contains { $0.matches(origin: origin) }
    }
}

import ArgumentParser
import CacheStorage

/// The flag `--host` of commands that list or remove.
struct HostFilter: ParsableArguments {
    @Option(
        name: .customLong("host"),
        help: ArgumentHelp(
            "Only this host: example.com (any port), example.com:8080 or https://example.com.",
            valueName: "host"), completion: .storedHosts)
    var names: [HostName] = []

    /// Whether any host is named.
    var isGiven: Bool { !names.isEmpty }

    /// Whether the filter includes an origin (scheme, host and port, as the cache stores it).
    func includes(origin: String) -> Bool {
        names.isEmpty || names.contains { $0.matches(origin: origin) }
    }
}

import ArgumentParser
import CacheStorage

extension HostName: ExpressibleByArgument {
    package init?(argument: String) {
        guard !argument.isEmpty else { return nil }
        self.init(argument)
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

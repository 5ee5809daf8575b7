import ArgumentParser
import CacheStorage
import PrefetchModel
import URLParsing

extension HostName: ExpressibleByArgument {
    /// Nil for what names no host, which would match nothing. The URL of an image is none: whoever gives one may mean that image
    /// alone.
    package init?(argument: String) {
        guard argument.contains("://") else {
            guard !argument.isEmpty, !argument.contains("/") else { return nil }
            self.init(argument)
            return
        }
        // With the scheme's own port, or a slash behind it, the cache has it without.
        guard let url = try? URLParser().parse(argument.utf8).withoutCredentials,
            url.text == url.origin || url.text == url.origin + "/"
        else { return nil }
        self.init(url.origin)
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

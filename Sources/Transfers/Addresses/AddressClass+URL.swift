import PrefetchModel
import URLParsing

extension AddressClass {
    /// The class of a URL's numeric address, or of `localhost` (RFC 6761 §6.3); nil for other
    /// names.
    init?(hostOf url: RequestURL) {
        var host = String(url.host)
        if host.hasSuffix(".") {
            // Resolvers drop it, and may find a number in front of it.
            host = AddressClass.normalized(String(host.dropLast()))
        }
        if host.hasPrefix("[") { host = String(host.dropFirst().prefix { $0 != "]" }) }
        if host == "localhost" || host.hasSuffix(".localhost") {
            self = .loopback
        } else {
            self.init(text: host)
        }
    }

    private static func normalized(_ host: String) -> String {
        do {
            return String(try URLParser().parse("http://\(host)/".utf8).host)
        } catch {
            return host
        }
    }
}

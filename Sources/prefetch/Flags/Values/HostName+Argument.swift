import ArgumentParser
import CacheStorage
import PrefetchModel
import URLParsing

extension HostName: ExpressibleByArgument {
    /// Takes a host or an origin. Nil for a URL with a path or query, which may be meant as one
    /// image.
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
        // The cache stores origins without default ports and with ASCII names. Any other text is
        // looked up unchanged, as is every text if libcurl can't be loaded.
        let url = try? URLParser().parse("\(origin)/".utf8)
        self.init(url?.withoutCredentials.origin ?? origin)
    }
}

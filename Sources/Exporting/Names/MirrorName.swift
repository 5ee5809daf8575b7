import PrefetchModel
import Reporting

/// Names files as `wget -x` does: `host/path/file?query`, percent-encodings decoded. A path that
/// ends with a slash is that of `index.html`.
struct MirrorName: LayoutMaking {
    let rules: PathRules

    /// The path for a web server.
    ///
    /// - Throws: ``NamingProblem`` also for a name that the server could obey or run.
    func path(of image: ExportedImage) throws(NamingProblem) -> String {
        let path = try path(of: URLParts.withoutSecrets(image.normalizedURL))
        try ServedName.check(path)
        return path
    }

    /// Takes a normalised URL.
    func path(of url: String) throws(NamingProblem) -> String {
        if let path = plainPath(of: url) { return path }
        let parts = URLParts(url)
        var names = [rules.name(host(parts))]
        var segments = parts.path.utf8.split(
            separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        var file = segments.popLast().map { Substring($0).percentDecoded } ?? []
        names += segments.map { rules.name(Substring($0).percentDecoded) }
        if file.isEmpty { file = Array("index.html".utf8) }
        if let query = parts.query {
            // wget's mark for Windows, too.
            file.append(rules.isCaseInsensitive ? UInt8(ascii: "@") : UInt8(ascii: "?"))
            file += query.percentDecoded
        }
        names.append(rules.name(file))
        return try rules.path(names)
    }

    /// The path of a URL with plain names only, as most have: the text behind its scheme.
    private func plainPath(of url: String) -> String? {
        var url = url
        return url.withUTF8 { url in
            guard let colon = url.firstIndex(of: UInt8(ascii: ":")),
                url[colon...].starts(with: "://".utf8)
            else { return nil }
            let path = UnsafeBufferPointer(rebasing: url[(colon + 3)...])
            var start = 0
            var isQuery = false
            guard path.count <= PathRules.maximumPathBytes else { return nil }
            for (index, byte) in path.enumerated() {
                switch byte {
                case UInt8(ascii: "/"):
                    guard !isQuery, rules.isPlain(path[start..<index]) else { return nil }
                    start = index + 1
                // User information, and the mark of a fragment.
                case UInt8(ascii: "@"), UInt8(ascii: "#"): return nil
                case UInt8(ascii: "?"):
                    guard index > start else { return nil }
                    isQuery = true
                default: break
                }
            }
            guard start > 0, rules.isPlain(path[start...]) else { return nil }
            return String(decoding: path, as: UTF8.self)
        }
    }

    /// The port stays; on Windows a colon is forbidden, and wget writes a plus sign.
    private func host(_ parts: URLParts) -> [UInt8] {
        let host = Array(parts.host.utf8)
        guard rules.isCaseInsensitive, let colon = host.lastIndex(of: UInt8(ascii: ":")),
            host[colon...].dropFirst().allSatisfy(\.isDecimalDigit)
        else { return host }
        return host[..<colon] + [UInt8(ascii: "+")] + host[(colon + 1)...]
    }
}

/// A mirror with `precache-manifest.json` for Workbox: `[{"url": …, "revision": …}]`, where the
/// revision is the SHA-256 of the file.
///
/// Workbox looks for requests without their fragments, and refuses a manifest that has a URL twice.
struct WorkboxLayout: LayoutMaking {
    let name: MirrorName
    private static let index = "precache-manifest.json"
    var indexes: [String] { [WorkboxLayout.index] }
    var hasSharedFiles: Bool { true }

    func path(of image: ExportedImage) throws(NamingProblem) -> String {
        try name.path(of: image)
    }

    func files(of rows: [ExportPlan.Row], missing: [MissingEntry]) -> [PlannedFile] {
        var known: Set<String> = []
        let urls = rows.map { String($0.image.url.prefix { $0 != "#" }) }
        let objects = zip(rows, urls).filter { known.insert($1).inserted }.map { row, url in
            var object = JSONObject()
            object.add("url", url)
            object.add("revision", row.image.stored.digest.description)
            return Array("\n".utf8) + object.bytes
        }
        let manifest = Array("[".utf8) + objects.joined(separator: ",".utf8) + "\n]\n".utf8
        return imageFiles(of: rows) { .fixed($0.fetchedAt) }
            + [indexFile(WorkboxLayout.index, manifest, of: rows).hiding(urls)]
    }
}

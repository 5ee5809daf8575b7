internal import Hashing
import PrefetchModel

/// The arrangement of files that earlier downloads left.
package enum ImportLayout: String, CaseIterable, Sendable {
    /// As `wget -x`, and `export --layout mirror`.
    case mirror
    case sdwebimage
    case webdataset
    /// As `curl -O`: the last part of the URL's path, in one folder.
    case curl

    /// Whether the files of different URLs may have one name, so that the last download replaced
    /// the others.
    package var sharesNames: Bool { self == .curl }

    /// Returns the paths at which the file of a URL may be.
    ///
    /// - Parameters:
    ///   - url: as the list spells it.
    ///   - normalized: as it is requested.
    /// - Returns: the likeliest path first; none for `webdataset`: its shards name the URLs.
    package func paths(of url: String, normalized: String) -> [String] {
        let rules = PathRules(isCaseInsensitive: false)
        switch self {
        case .webdataset: return []
        case .curl:
            // curl keeps percent-encodings, and leaves out the query.
            let name = URLParts(normalized).path.split(separator: "/").last.map(String.init) ?? ""
            return ["", ".", ".."].contains(name) ? [] : [name]
        case .sdwebimage:
            return [LoaderLayout.sdwebimage([:]).path(ofKey: url)]
        case .mirror:
            guard let path = try? MirrorName(rules: rules).path(of: normalized) else { return [] }
            return [path, ExportPlan.besideFolder(path, rules)]
        }
    }
}

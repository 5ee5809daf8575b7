import PrefetchModel
import Reporting

/// A mirror with `precache-manifest.json` for Workbox: `[{"url": …, "revision": …}]`, where the
/// revision is the SHA-256 of the file.
struct WorkboxLayout: LayoutMaking {
    let name: MirrorName
    private static let index = "precache-manifest.json"
    var indexes: [String] { [WorkboxLayout.index] }

    func path(of image: ExportedImage) throws(NamingProblem) -> String {
        try name.servedPath(of: image.normalizedURL)
    }

    func files(of rows: [ExportPlan.Row], missing: [Int]) -> [PlannedFile] {
        var manifest = Array("[".utf8)
        for (index, row) in rows.enumerated() {
            var object = JSONObject()
            object.add("url", row.image.url)
            object.add("revision", row.image.stored.digest.description)
            if index > 0 { manifest.append(UInt8(ascii: ",")) }
            manifest.append(UInt8(ascii: "\n"))
            manifest += object.bytes
        }
        manifest += Array("\n]\n".utf8)
        let latest = rows.map(\.image.fetchedAt).max() ?? Timestamp(milliseconds: 0)
        return imageFiles(of: rows) { .fixed($0.fetchedAt) } + [
            PlannedFile(
                path: WorkboxLayout.index, content: .bytes(manifest), modified: .fixed(latest))
        ]
    }
}

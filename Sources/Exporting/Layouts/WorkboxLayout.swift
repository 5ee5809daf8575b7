import PrefetchModel
import Reporting

/// A mirror with `precache-manifest.json` for Workbox: `[{"url": …, "revision": …}]`, where the
/// revision is the SHA-256 of the file.
struct WorkboxLayout: LayoutMaking {
    let name: MirrorName
    private static let index = "precache-manifest.json"
    var indexes: [String] { [WorkboxLayout.index] }
    var hasSharedFiles: Bool { true }

    func path(of image: ExportedImage) throws(NamingProblem) -> String {
        try name.path(of: image)
    }

    func files(of rows: [ExportPlan.Row], missing: [Int]) -> [PlannedFile] {
        let objects = rows.map { row in
            var object = JSONObject()
            object.add("url", row.image.url)
            object.add("revision", row.image.stored.digest.description)
            return Array("\n".utf8) + object.bytes
        }
        let manifest = Array("[".utf8) + objects.joined(separator: ",".utf8) + "\n]\n".utf8
        return imageFiles(of: rows) { .fixed($0.fetchedAt) }
            + [indexFile(WorkboxLayout.index, manifest, of: rows)]
    }
}

import CacheStorage
import PrefetchModel
import Reporting

/// The images that a dry run would remove, on standard output.
///
/// A line is the image's key; with variants of an image that is kept, their recipes follow, each
/// after a tab. Keys have any secrets in their query strings, as for `list`.
struct RemovalList {
    private let output = CallbackOutput()
    let isWanted: Bool
    var json = false

    func add(_ removed: RemovalEstimate.Removal) {
        guard isWanted else { return }
        if json {
            var object = JSONObject()
            object.add("type", "image")
            object.add("key", removed.key)
            object.add("whole", removed.isWhole)
            object.add("recipes", removed.recipes)
            object.add("bytes", removed.bytes)
            output.write(object)
        } else {
            let recipes = removed.isWhole ? [] : removed.recipes
            output.write(([removed.key] + recipes).map(printable).joined(separator: "\t"))
        }
    }

    func finish() throws { try output.finish() }
}

extension RemovalTotals {
    /// `3 images (5 variants), 4 files (1.20 MiB), 1 failure`
    var text: String {
        var parts = [
            "\(counted(images, "image")) (\(counted(variants, "variant")))",
            "\(counted(files, "file")) (\(ByteCount(max(0, bytes))))",
        ]
        for (number, noun) in [
            (failures, "failure"), (hosts, "host"), (runs, "run"), (self.parts, "partial download"),
        ] where number > 0 {
            parts.append(counted(number, noun))
        }
        return parts.joined(separator: ", ")
    }
}

extension JSONObject {
    mutating func add(_ totals: RemovalTotals) {
        add("images", totals.images)
        add("variants", totals.variants)
        add("files", totals.files)
        add("bytes", totals.bytes)
        add("failures", totals.failures)
        add("hosts", totals.hosts)
        add("runs", totals.runs)
        add("partial_downloads", totals.parts)
    }
}

import CacheStorage
import PrefetchModel
import Reporting

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

import CacheStorage
import PrefetchModel
import Reporting

extension RemovalTotals {
    /// `3 images (5 variants), 4 files (1.2 MiB), 1 failure`
    var text: String {
        func count(_ number: Int, _ noun: String) -> String {
            "\(number) \(noun)\(number == 1 ? "" : "s")"
        }
        var parts = [
            "\(count(images, "image")) (\(count(variants, "variant")))",
            "\(count(files, "file")) (\(ByteCount(max(0, bytes))))",
        ]
        for (number, noun) in [
            (failures, "failure"), (hosts, "host"), (runs, "run"), (self.parts, "partial download"),
        ] where number > 0 {
            parts.append(count(number, noun))
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

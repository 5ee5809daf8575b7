import CacheStorage
import PrefetchModel
import Reporting

/// The result of a merge, for people and as JSON.
enum MergeText {
    /// `8 caches merged: 1000 images (990 new), 3 failed URLs; files: 990 linked (3.2 MiB)`
    static func text(_ report: MergeReport, sources: Int) -> String {
        var changes: [String] = []
        if report.added > 0 { changes.append("\(report.added) new") }
        if report.updated > 0 { changes.append("\(report.updated) newer") }
        var text = "\(counted(sources, "cache")) merged: \(counted(report.images, "image"))"
        text += " (\(changes.isEmpty ? "unchanged" : changes.joined(separator: ", ")))"
        if report.failures > 0 { text += ", \(counted(report.failures, "failed URL"))" }
        let files = report.files
        let ways = [(files.linked, "linked"), (files.cloned, "cloned"), (files.copied, "copied")]
            .filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        if !ways.isEmpty {
            text += "; files: \(ways.joined(separator: ", ")) (\(ByteCount(files.bytes)))"
        }
        return text
    }

    static func text(_ damage: MergeReport.SourceDamage) -> String {
        switch damage {
        case .salvaged(let report): SalvageText.text(report)
        case .invalidRows(let count): "skipped \(counted(count, "invalid row"))"
        }
    }
}

extension JSONObject {
    init(_ report: MergeReport, elapsed: Duration) {
        self.init()
        add("type", "summary")
        add("images", report.images)
        add("added", report.added)
        add("updated", report.updated)
        add("failures", report.failures)
        add("linked", report.files.linked)
        add("cloned", report.files.cloned)
        add("copied", report.files.copied)
        add("bytes", report.files.bytes)
        add("removed", report.removedFiles)
        add("lost", report.lostFiles)
        add("damaged", report.damaged.map(\.path))
        add("elapsed_ms", elapsed)
    }
}

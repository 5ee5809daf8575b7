import CacheStorage
import PrefetchModel

/// The message about a damaged or missing database that a run has replaced.
enum SalvageText {
    /// A message and a hint; empty if the database was good.
    static func lines(_ repair: OpenCache.Repair, path: String) -> [String] {
        let isEmpty = repair.salvage.map { $0.salvaged.isEmpty && $0.restored.isEmpty } ?? true
        let end = repair.salvage.map(text) ?? "starting a new one"
        if let (name, message) = repair.damage {
            return [
                "prefetch: \(path)/prefetch.sqlite: damaged (\(message)); renamed to \(name); \(end)",
                isEmpty
                    ? "hint: images are downloaded again; identical files are kept"
                    : "hint: missing images are downloaded again; identical files are kept; "
                        + "`prefetch verify --repair` removes the rest",
            ]
        }
        guard repair.hadNoDatabase else { return [] }
        return [
            "prefetch: \(path): contains images but no database; \(end)",
            "hint: \(isEmpty ? "images" : "missing images") are downloaded again; "
                + "identical files are kept",
        ]
    }

    /// `salvaged 1998 images, 3 failures; 2 images from the snapshot of 2026-11-23T03:00:00Z`
    static func text(_ report: SalvageReport) -> String {
        var parts: [String] = []
        if !report.salvaged.isEmpty { parts.append("salvaged \(text(report.salvaged))") }
        if let time = report.snapshotTime {
            parts.append("\(text(report.restored)) from the snapshot of \(time)")
        }
        if parts.isEmpty { parts.append("nothing could be salvaged; starting a new one") }
        if report.isMixed {
            parts.append("ignored its images: it contains pages of another database")
        }
        if report.lostFiles > 0 {
            parts.append("\(counted(report.lostFiles, "file")) missing")
        }
        return parts.joined(separator: "; ")
    }

    private static func text(_ counts: SalvageReport.Counts) -> String {
        [
            (counts.images, "image"), (counts.failures, "failure"), (counts.hosts, "host"),
            (counts.runs, "run"),
        ].filter { $0.0 > 0 }.map { counted($0.0, $0.1) }.joined(separator: ", ")
    }
}

import CacheStorage
import PrefetchModel

// Messages about a cache that a run has opened

extension OpenCache.Repair {
    /// Lines about damage by an unclean shutdown or the disk.
    func messages(in path: String, _ freshness: Flags<FreshnessFlags>) -> [String] {
        var lines = SalvageText.lines(self, path: path)
        if let untidy {
            lines.append("prefetch: \(untidy.description); left in place")
            if let hint = untidy.hint { lines.append("hint: \(hint)") }
        }
        if tornImages > 0 {
            lines.append(
                """
                prefetch: \(path): \(counted(tornImages, "file")) \
                damaged by an unclean shutdown; will be downloaded again
                """)
        }
        if missingImages > 0 {
            let files = missingImages == 1 ? "file is" : "files are"
            let state = freshness.fileCheck == .always ? "missing or truncated" : "missing"
            let rest = freshness.offline ? "" : "; listed images will be downloaded again"
            lines.append("prefetch: \(path): \(missingImages) cached \(files) \(state)\(rest)")
        }
        return lines
    }
}

extension HostLog {
    /// Lines about the hosts that make a run wait for more than a day; none without any.
    static func messages(about waits: [LongWait]) -> [String] {
        guard let first = waits.first else { return [] }
        let others = waits.count > 1 ? " and \(counted(waits.count - 1, "other host"))" : ""
        let event =
            switch first.cause {
            case .pause(let until): "not requested until \(until), by its own request"
            case .impossible: "its stored pause or pace is impossible and ignored"
            }
        return [
            printable("prefetch: \(first.host)\(others): \(event)"),
            printable("hint: `prefetch hosts clear \(first.host)` forgets it"),
        ]
    }
}

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

import CacheStorage
import PrefetchModel
import Reporting

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

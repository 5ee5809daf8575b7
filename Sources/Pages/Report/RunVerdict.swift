import PrefetchModel
import Reporting

/// The result of a run in one sentence.
struct RunVerdict {
    enum Mood: String {
        case good, warn, bad
    }

    let sentence: String
    let mood: Mood
    let title: String

    init(_ record: RunRecord) {
        let counters = record.counters
        let (warm, all) = (RunVerdict.warm(counters), counters.entriesRead)
        let share =
            "\(grouped(warm)) of "
            + (all == 1 ? "1 entry is warm" : "\(grouped(all)) entries are warm")
        title = "\(grouped(warm)) of \(grouped(all)) warm"
        guard let summary = record.ending?.summary else {
            mood = .bad
            sentence = "The run was killed, or still runs: \(share) in its unfinished report."
            return
        }
        if let message = summary.fatalMessage {
            mood = .bad
            sentence = "The run could not be completed: \(clipped(message)). \(share)."
        } else if let signal = summary.stoppedBySignal {
            mood = .bad
            sentence = "The run was stopped by \(SummaryText.signalName(signal)): \(share)."
        } else if let limit = summary.endedBy {
            mood = .warn
            sentence = "The run ended at a limit (\(limit.rawValue)): \(share)."
        } else if all == 0 {
            mood = .warn
            sentence = "The lists have no entry: there was nothing to do."
        } else if warm == all {
            mood = .good
            sentence =
                all == 1
                ? "The only entry is warm."
                : "All \(grouped(all)) entries are warm\(RunVerdict.origin(of: counters))."
        } else {
            let troubles = RunVerdict.troubles(record)
            mood = counters[.failed] > 0 ? .bad : .warn
            sentence = "\(share)\(troubles.isEmpty ? "" : "; \(troubles)")."
        }
    }

    /// Entries with a fresh image or a good response. Duplicates share a result, and count as
    /// warm unless everything failed.
    static func warm(_ counters: RunCounters) -> Int {
        counters.warm + (counters.warm > 0 ? counters[.duplicate] : 0)
    }

    /// `: 3 downloaded, the rest fresh`
    private static func origin(of counters: RunCounters) -> String {
        let parts = [Outcome.downloaded, .revalidated, .derived, .requested]
            .filter { counters[$0] > 0 }.map { "\(grouped(counters[$0])) \($0.rawValue)" }
        guard !parts.isEmpty else { return counters[.fresh] > 0 ? ", without a request" : "" }
        let rest = counters[.fresh] > 0 ? ["the rest fresh"] : []
        return ": " + (parts + rest).joined(separator: ", ")
    }

    /// `38 failed, mostly at https://example.com (HTTP 403); 3 are blacklisted`
    private static func troubles(_ record: RunRecord) -> String {
        let counters = record.counters
        var parts: [String] = []
        if counters[.failed] > 0 {
            var text = "\(grouped(counters[.failed])) failed"
            if let main = record.failureRows.max(by: { $0.count < $1.count }),
                main.count * 2 > counters[.failed]
            {
                let cause = main.httpStatus.map { "HTTP \($0)" } ?? main.reason.rawValue
                let share = main.count == counters[.failed] ? "" : "mostly "
                text += main.host.map { ", \(share)at \(clipped($0)) (\(cause))" } ?? " (\(cause))"
            }
            parts.append(text)
        }
        if counters[.blacklisted] > 0 {
            parts.append("\(grouped(counters[.blacklisted])) blacklisted by earlier runs")
        }
        if counters[.excluded] > 0 { parts.append("\(grouped(counters[.excluded])) excluded") }
        if counters[.cancelled] > 0 { parts.append("\(grouped(counters[.cancelled])) not reached") }
        return parts.joined(separator: "; ")
    }
}

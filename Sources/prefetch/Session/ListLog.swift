import Pipeline
import PrefetchModel
import Reporting
import Threading

/// The messages about a run's lists, and their counts for its summary.
final class ListLog: Sendable {
    private struct Findings {
        var empty: [EmptyList] = []
        var otherShards = 0
    }

    private let output: RunOutput
    private let isQuiet: Bool
    private let isVerbose: Bool
    private let isOffline: Bool
    private let allowsEmptyLists: Bool
    private let counts = Monitor(Findings())

    init(_ output: RunOutput, _ command: RunCommand) {
        self.output = output
        isQuiet = command.showing.quiet
        isVerbose = command.showing.verbose
        isOffline = command.processing.freshness.offline
        allowsEmptyLists = command.result.allowsEmptyLists
    }

    /// Any thread may call it.
    func receive(_ event: ListEvent) {
        switch event {
        case .opened(let name, let list):
            // Cron mails it once, like an outage.
            if list.isNews {
                output.reporter.message("\(name): \(list.text)")
            } else if list.isFallback || !isQuiet && (isVerbose || isOffline) {
                output.note("\(name): \(list.text)")
            }
        case .format(let name, let format):
            if isVerbose { output.reporter.message("\(name): format \(format)") }
        case .note(let text, let remedy): output.note(text, remedy)
        case .empty(let list): counts.withLock { $0.empty.append(list) }
        case .otherShards(let entries): counts.withLock { $0.otherShards += entries }
        }
    }

    /// Adds the counts to the summary, and reports empty lists, which may change the exit status.
    func conclude(_ summary: inout RunSummary, _ shard: ShardResult?) {
        let counts = counts.withLock { $0 }
        if var shard {
            shard.otherEntries = counts.otherShards
            shard.redirectsElsewhere = summary.counters.redirectsElsewhere
            summary.shard = shard
        }
        guard !counts.empty.isEmpty, summary.exitStatus < 2 else { return }
        let (text, hint) = EmptyList.message(counts.empty)
        if !allowsEmptyLists {
            summary.exitStatus = 1
            output.reporter.message(
                text + "; with --allow-empty that is no failure", hint: hint)
        } else if !isQuiet {
            output.reporter.message(text, hint: hint)
        }
    }
}

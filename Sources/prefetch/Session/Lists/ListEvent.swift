import CacheStorage
import Pipeline
import PrefetchModel
import Reporting
import Threading

/// An event of a list of ``ManifestSequence``.
enum ListEvent: Sendable {
    /// A list was opened by its URL.
    case opened(_ name: String, OpenedList)
    /// The format of a list, told with its first entries.
    case format(_ name: String, String)
    /// An unusual form of lines and its remedy, told at the end of the list.
    case note(_ text: String, _ remedy: String)
    /// Rows of a list without a picture, told at its end; `place` is the first one.
    case skipped(_ count: Int, place: String)
    /// The end of a list without an entry.
    case empty(EmptyList)
    /// The number of entries of other shards, told at the end of the list.
    case otherShards(Int)

    /// Tells how old the copies of lists are, and their notes, for commands that send nothing.
    static let tellOfCopies: @Sendable (ListEvent) -> Void = { event in
        switch event {
        case .opened(let name, let list): StandardError.write("prefetch: \(name): \(list.text)")
        case .note(let text, let remedy): StandardError.message(text, hint: remedy)
        case .format, .skipped, .empty, .otherShards: break
        }
    }
}

struct EmptyList: Sendable {
    let name: String
    /// The pages of sitemaps, which were skipped.
    let skippedPages: Int
    /// The rows without a picture, which were skipped.
    let skippedRows: Int
    /// The reason that no row has a picture, if the column of URLs is missing.
    let missingColumn: String?

    /// One line about several lists, and a hint.
    static func message(_ lists: [EmptyList]) -> (text: String, hint: String?) {
        let pages = lists.reduce(0) { $0 + $1.skippedPages }
        let rows = lists.reduce(0) { $0 + $1.skippedRows }
        let head = "\(lists.map(\.name).joined(separator: ", ")): no entries"
        if pages > 0 {
            return (
                "\(head): no image on \(counted(pages, "page"))",
                "--sitemap-pages reads the pages themselves"
            )
        }
        guard rows > 0 else { return (head, nil) }
        let missing = lists.lazy.compactMap(\.missingColumn).first ?? "no URL"
        return (
            "\(head): \(missing) in \(counted(rows, "row"))",
            "--url-column NAME names the column or member with the URLs"
        )
    }
}

extension OpenedList {
    /// One line on the way it was opened.
    var text: String {
        let stored = "the copy of \(file.list.validatedAt)"
        // It has failed before.
        let news = isNews ? "available again: " : ""
        return switch source {
        case .fetched(let time):
            "\(news)fetched \(ByteCount(file.size)) in \(time.wholeMilliseconds) ms"
        case .notModified(let time): "\(news)not modified, in \(time.wholeMilliseconds) ms"
        case .stored: "using \(stored)"
        case .copy(let failure): "\(failure.message); using \(stored)"
        }
    }

    /// Whether the request for it failed.
    var isFallback: Bool { if case .copy = source { true } else { false } }
}

/// The messages about a run's lists, and their counts for its summary.
final class ListLog: Sendable {
    private let output: RunOutput
    private let isOffline: Bool
    private let allowsEmptyLists: Bool
    private let counts = Monitor(ListTotals())

    private struct ListTotals {
        var empty: [EmptyList] = []
        var otherShards = 0
        var skipped = SkippedRows()
    }

    init(_ output: RunOutput, _ command: RunCommand) {
        self.output = output
        isOffline = command.freshness.offline
        allowsEmptyLists = command.result.allowsEmptyLists
    }

    /// Any thread may call it.
    func receive(_ event: ListEvent) {
        switch event {
        case .opened(let name, let list):
            // Cron mails it once, like an outage.
            if list.isNews {
                output.reporter.message("\(name): \(list.text)")
            } else if list.isFallback
                || !output.showing.quiet && (output.showing.verbose || isOffline)
            {
                output.note("\(name): \(list.text)")
            }
        case .format(let name, let format):
            if output.showing.verbose { output.reporter.message("\(name): format \(format)") }
        case .note(let text, let remedy): output.note(text, remedy)
        case .skipped(let rows, let place): counts.withLock { $0.skipped.add(rows, place: place) }
        case .empty(let list): counts.withLock { $0.empty.append(list) }
        case .otherShards(let entries): counts.withLock { $0.otherShards += entries }
        }
    }

    /// Adds the counts to the summary, and reports empty lists, which may change the exit status.
    func conclude(_ summary: inout RunSummary, _ shard: ShardResult?) {
        let counts = counts.withLock { $0 }
        summary.skipped = counts.skipped
        if var shard {
            shard.otherEntries = counts.otherShards
            shard.redirectsElsewhere = summary.counters.redirectsElsewhere
            summary.shard = shard
        }
        guard !counts.empty.isEmpty, summary.exitStatus < 2 else { return }
        let (text, hint) = EmptyList.message(counts.empty)
        if !allowsEmptyLists {
            summary.exitStatus = 1
            output.reporter.message(text + "; with --allow-empty that is no failure", hint: hint)
        } else if !output.showing.quiet {
            output.reporter.message(text, hint: hint)
        }
    }
}

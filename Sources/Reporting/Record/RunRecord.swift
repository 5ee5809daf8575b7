package import PrefetchModel

/// The results of one run in bounded memory, for a page about it.
///
/// Filled either by the run itself or by ``ReportReader``. Fresh entries and duplicates are only
/// counted, since a run builds no results of them.
package struct RunRecord: Sendable {
    /// The names of the lists, in the order of their first results; at most ``mostLists``.
    package private(set) var lists: [String] = []
    /// The outcomes of the lines read; replaced by the summary's at the end.
    package private(set) var counters = RunCounters()
    package private(set) var timeline = RunTimeline()
    package private(set) var formats = FormatTotals()
    /// By transfer time in milliseconds.
    package private(set) var slowest = Ranking<EntryResult>()
    /// Images of this run by stored bytes.
    package private(set) var largest = Ranking<EntryResult>()
    package private(set) var pictures = RunPictures()
    private var failures = FailureGroups()
    private var requestedHosts = RequestedHosts()
    /// Entries by the UTC day of their expiry, as ``Timestamp/day``.
    package private(set) var expiries: [Int64: Int] = [:]
    package var damage = ReportDamage()
    /// Nil for a report of a killed run.
    package private(set) var ending: RunSummary.Draft?

    package static let mostLists = 20
    /// Days beyond this number are not counted, so that a hostile report cannot fill the memory.
    private static let mostDays = 4000

    package init() {}

    /// Whether the page shows more of entries with an outcome than their number.
    package static func hasDetails(_ outcome: Outcome) -> Bool {
        switch outcome {
        case .fresh, .duplicate, .cancelled: false
        case .downloaded, .revalidated, .derived, .blacklisted, .excluded, .failed, .requested:
            true
        }
    }

    /// Adds the result of an entry.
    ///
    /// - Returns: Whether its image is among ``pictures``.
    @discardableResult
    package mutating func note(_ result: EntryResult) -> Bool {
        if lists.last != result.manifest, lists.count < RunRecord.mostLists,
            !lists.contains(result.manifest)
        {
            lists.append(result.manifest)
        }
        count(result.outcome, reason: result.reason)
        guard RunRecord.hasDetails(result.outcome) else { return false }
        if result.outcome == .failed { noteFailure(result) }
        if let time = result.endedAfter {
            timeline.note(
                after: time, isFailure: result.outcome == .failed, retries: result.attempts - 1,
                bytes: result.bytesReceived)
        }
        if result.attempts > 0 { requestedHosts.note(result) }
        if let time = result.stages.transfer {
            slowest.add(time.wholeMilliseconds, result.brief)
        }
        guard let image = result.stored, result.outcome != .failed else { return false }
        largest.add(Int64(image.size.bytes), result.brief)
        guard result.outcome == .downloaded else { return false }
        formats.note(image, received: result.bytesReceived)
        return pictures.note(result)
    }

    mutating func count(_ outcome: Outcome, reason: FailureReason?) {
        counters.entriesRead += 1
        counters.count(outcome, reason: reason)
    }

    mutating func noteExpiry(_ time: Timestamp) {
        guard expiries[time.day] != nil || expiries.count < RunRecord.mostDays else { return }
        expiries[time.day, default: 0] += 1
    }

    private mutating func noteFailure(_ result: EntryResult) {
        var result = result.brief
        // A report does not say which failures are known.
        result.isKnown = false
        failures.note(result)
    }

    package mutating func end(_ summary: RunSummary) {
        end(RunSummary.Draft(summary: summary, hosts: summary.hosts.map(HostRow.init)))
    }

    mutating func end(_ ending: RunSummary.Draft) {
        self.ending = ending
        counters = ending.summary.counters
    }

    /// The hosts of the summary; of a killed run, the hosts with most entries.
    package var hosts: [HostRow] { ending?.hosts ?? requestedHosts.largest }

    /// The failures by cause, largest first. An outage's failures are one row.
    package var failureRows: [FailureRow] {
        failures.ordered(outage: ending?.summary.outage) { _ in true }.map(FailureRow.init)
    }
}

extension EntryResult {
    /// The result without its variable parts that no page shows.
    fileprivate var brief: EntryResult {
        var brief = self
        brief.columns = nil
        brief.variants = []
        brief.exchange = nil
        return brief
    }
}

/// Downloaded images by stored format.
package struct FormatTotals: Sendable {
    package struct Sums: Hashable, Sendable {
        package fileprivate(set) var images = 0
        package fileprivate(set) var received = 0
        package fileprivate(set) var stored = 0
    }

    private var totals: [ImageFormat: Sums] = [:]

    /// The formats with most received bytes first.
    package var rows: [(format: ImageFormat, totals: Sums)] {
        totals.map { ($0.key, $0.value) }.sorted {
            ($1.totals.received, $0.format.rawValue) < ($0.totals.received, $1.format.rawValue)
        }
    }

    mutating func note(_ image: StoredImage, received: Int) {
        totals[image.format, default: Sums()].images += 1
        totals[image.format, default: Sums()].received.addReported(received)
        totals[image.format, default: Sums()].stored.addReported(image.size.bytes)
    }
}

/// The first new and changed images of a run.
package struct RunPictures: Sendable {
    package static let limit = 24

    /// Downloads of images that were not stored before.
    package private(set) var new: [EntryResult] = []
    /// Downloads with other bytes than the stored image.
    package private(set) var changed: [EntryResult] = []
    package private(set) var newCount = 0
    package private(set) var changedCount = 0

    /// Adds an image.
    ///
    /// - Returns: Whether it is among the first.
    mutating func note(_ result: EntryResult) -> Bool {
        let isNew = result.replaced == nil
        if isNew { newCount += 1 } else { changedCount += 1 }
        guard (isNew ? new : changed).count < RunPictures.limit else { return false }
        if isNew { new.append(result) } else { changed.append(result) }
        return true
    }
}

/// The largest elements of a sequence, in bounded memory.
package struct Ranking<Element: Sendable>: Sendable {
    package static var limit: Int { 10 }

    /// Largest first.
    package private(set) var elements: [(value: Int64, element: Element)] = []

    /// Adds an element if it is among the largest. Of equal ones the first is kept.
    mutating func add(_ value: Int64, _ element: @autoclosure () -> Element) {
        if elements.count == Ranking.limit {
            guard let last = elements.last, value > last.value else { return }
            elements.removeLast()
        }
        let place = elements.firstIndex { $0.value < value } ?? elements.count
        elements.insert((value, element()), at: place)
    }
}

/// Lines of a report without a result.
package struct ReportDamage: Sendable {
    /// Damaged lines, and a last one without its end.
    package private(set) var lines = 0
    /// `line 12: invalid JSON at byte 40` of the first one.
    package private(set) var first: String?

    mutating func note(line: Int, _ problem: String) {
        if lines == 0 { first = "line \(line): \(problem)" }
        lines += 1
    }
}

extension Int {
    /// The largest number that all readers of JSON agree on (RFC 8259 §6). A report may claim
    /// more, and a thousand of these have a sum.
    static let largestReported = 1 << 53

    /// Adds a number of a report, and stays at ``largestReported``; negative ones count as 0.
    mutating func addReported(_ number: Int) {
        self = Swift.min(
            self + Swift.max(0, Swift.min(number, .largestReported)), .largestReported)
    }
}

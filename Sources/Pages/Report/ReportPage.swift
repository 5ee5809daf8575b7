package import PrefetchModel
package import Reporting

/// A page about one run: values in, HTML out.
///
/// The page is one file without scripts or references, at most ``mostBytes`` long: every list in it
/// has a limit, and ``PageImages`` limits its images.
package struct ReportPage {
    /// The promise to readers, for mail.
    package static let mostBytes = 2_000_000

    let record: RunRecord
    package var previous: PreviousRun?
    package var cache: CacheOutlook?
    package var images = PageImages()
    let now: Timestamp

    package init(_ record: RunRecord, at now: Timestamp) {
        self.record = record
        self.now = now
    }

    package struct PreviousRun: Sendable {
        let startedAt: Timestamp
        let elapsed: Duration?
        let counters: RunCounters

        package init(startedAt: Timestamp, elapsed: Duration?, counters: RunCounters) {
            self.startedAt = startedAt
            self.elapsed = elapsed
            self.counters = counters
        }

        /// Nil for a run that was killed.
        package init?(_ record: RunRecord) {
            guard let summary = record.ending?.summary else { return nil }
            self.init(
                startedAt: summary.startedAt, elapsed: summary.elapsed, counters: summary.counters)
        }
    }

    var counters: RunCounters { record.counters }
    var summary: RunSummary? { record.ending?.summary }

    package func html() -> [UInt8] {
        let verdict = RunVerdict(record)
        return HTMLWriter.document(
            title: "prefetch: \(verdict.title)", generator: "prefetch report", imageSources: "data:"
        ) { html in
            html.element("header") { writeHeader(verdict, to: &$0) }
            html.lineEnd()
            html.element("main") { main in
                writeOutcomes(to: &main)
                writeThroughput(to: &main)
                writeFailures(to: &main)
                writeHosts(to: &main)
                writeFormats(to: &main)
                writeExpiry(to: &main)
                writeExtremes(to: &main)
                writeImages(to: &main)
                writeGrowth(to: &main)
            }
            html.element("footer") { writeFooter(to: &$0) }
        }
    }

    private func writeHeader(_ verdict: RunVerdict, to html: inout HTMLWriter) {
        html.element("h1", "prefetch run")
        let mood = verdict.mood == .good ? "verdict" : "verdict \(verdict.mood.rawValue)"
        html.element("p", ["class": mood], verdict.sentence)
        html.element("p", ["class": "facts"], facts.joined(separator: " · "))
        html.lineEnd()
        html.element("ul", ["class": "tiles"]) { list in
            for (value, name) in tiles {
                list.element("li") { item in
                    item.element("b", value)
                    item.element("span", name)
                }
            }
        }
    }

    private var facts: [String] {
        var facts: [String] = []
        if !record.lists.isEmpty {
            let shown = record.lists.prefix(3).map(clipped).joined(separator: ", ")
            facts.append(record.lists.count > 3 ? "\(shown), …" : shown)
        }
        guard let summary else { return facts }
        facts.append("started \(minuteText(summary.startedAt))")
        facts.append("took \(durationText(summary.elapsed))")
        facts.append("exit status \(summary.exitStatus)")
        facts.append("cache \(clipped(summary.cacheDirectory))")
        return facts
    }

    private var tiles: [(value: String, name: String)] {
        let warm = RunVerdict.warm(counters)
        var tiles = [
            (grouped(warm), "warm of \(grouped(counters.entriesRead))"),
            (grouped(counters[.failed]), "failed"),
        ]
        if counters[.blacklisted] > 0 {
            tiles.append((grouped(counters[.blacklisted]), "blacklisted"))
        }
        guard summary != nil else { return tiles }
        return tiles + [
            (grouped(counters.requests), counters.requests == 1 ? "request" : "requests"),
            (sizeText(counters.bytesReceived), "received"),
            (sizeText(counters.bytesStored), "stored"),
        ]
    }

    private func writeFooter(to html: inout HTMLWriter) {
        let damage = record.damage
        if damage.lines > 0 {
            html.element(
                "p",
                "\(groupedCount(damage.lines, "line")) of the report could not be read; the first: "
                    + "\(clipped(damage.first ?? ""))")
        }
        html.element("p", "Made by prefetch, \(minuteText(now)). All times are UTC.")
    }
}

/// The state of the cache for a page: its size, its growth, and future expiries.
package struct CacheOutlook: Sendable {
    package var images: Int
    package var contentBytes: Int
    package var expiries: ExpiryForecast
    /// Bytes that runs have stored by UTC day, as ``Timestamp/day``; the last ``days`` days.
    package var storedByDay: [Int64: Int]

    package static let days = 90

    package init(
        images: Int, contentBytes: Int, expiries: ExpiryForecast, storedByDay: [Int64: Int]
    ) {
        self.images = images
        self.contentBytes = contentBytes
        self.expiries = expiries
        self.storedByDay = storedByDay
    }
}

/// The images that expire in the next 30 days.
package struct ExpiryForecast: Hashable, Sendable {
    package static let days = 30

    package let today: Int64
    /// By day from today; exactly ``days``.
    package private(set) var byDay = [Int](repeating: 0, count: ExpiryForecast.days)
    package private(set) var expired = 0
    package private(set) var later = 0

    package init(at now: Timestamp) {
        today = now.day
    }

    package mutating func note(day: Int64, count: Int) {
        let (offset, overflow) = day.subtractingReportingOverflow(today)
        if overflow || offset >= Int64(ExpiryForecast.days) {
            later += count
        } else if offset < 0 {
            expired += count
        } else {
            byDay[Int(offset)] += count
        }
    }
}

package struct PageImage: Sendable {
    package enum MediaType: String, Sendable {
        case png = "image/png"
        case jpeg = "image/jpeg"
    }

    let type: MediaType
    let bytes: [UInt8]
    package let isBlurred: Bool

    package init(_ type: MediaType, _ bytes: [UInt8], isBlurred: Bool) {
        self.type = type
        self.bytes = bytes
        self.isBlurred = isBlurred
    }

    /// The `data:` URL (RFC 2397).
    var dataURL: String {
        "data:\(type.rawValue);base64,\(String(decoding: bytes.base64, as: UTF8.self))"
    }
}

/// The images of a page by the digests of the files they show, up to a total size.
package struct PageImages: Sendable {
    /// Room for the rest of the page stays within its limit.
    private static let mostBytes = 900_000

    private var images: [ContentDigest: PageImage] = [:]
    private var byteCount = 0

    package init() {}

    package subscript(digest: ContentDigest) -> PageImage? { images[digest] }

    package mutating func add(_ image: PageImage, for digest: ContentDigest) {
        guard images[digest] == nil, byteCount + image.bytes.count <= PageImages.mostBytes else {
            return
        }
        byteCount += image.bytes.count
        images[digest] = image
    }
}

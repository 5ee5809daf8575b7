package import CacheStorage
package import PrefetchModel
package import Reporting

/// A page about one run: values in, HTML out.
///
/// The page is one file without scripts or references, at most ``mostBytes`` long: every list in it
/// has a limit, and ``PageImages`` limits its images.
package struct ReportPage {
    /// The promise to readers, for mail.
    package static let mostBytes = 2_000_000
    package static let growthDays = 90

    let record: RunRecord
    package var previous: PreviousRun?
    /// The state of the cache, with the runs of the last ``growthDays`` days.
    package var cache: CacheCatalog.Outlook?
    package var images = PageImages()
    let now: Timestamp

    package init(_ record: RunRecord, at now: Timestamp) {
        self.record = record
        self.now = now
    }

    package typealias PreviousRun = (
        startedAt: Timestamp, elapsed: Duration?, counters: RunCounters
    )

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

package struct PageImage: Sendable {
    let bytes: [UInt8]
    let isBlurred: Bool

    /// A thumbnail, a JPEG file; or a blurred ThumbHash, a PNG file.
    package init(_ bytes: [UInt8], isBlurred: Bool) {
        self.bytes = bytes
        self.isBlurred = isBlurred
    }

    /// The `data:` URL (RFC 2397).
    var dataURL: String {
        let type = isBlurred ? "image/png" : "image/jpeg"
        return "data:\(type);base64,\(String(decoding: bytes.base64, as: UTF8.self))"
    }
}

/// The images of a page by the digests of the files they show, up to a total size.
package struct PageImages: Sendable {
    /// Room for the rest of the page stays within its limit.
    private static let mostBytes = 900_000

    private var images: [ContentDigest: PageImage] = [:]
    private var byteCount = 0

    package subscript(digest: ContentDigest) -> PageImage? { images[digest] }

    package mutating func add(_ image: PageImage, for digest: ContentDigest) {
        guard images[digest] == nil, byteCount + image.bytes.count <= PageImages.mostBytes else {
            return
        }
        byteCount += image.bytes.count
        images[digest] = image
    }
}

extension ReportPage {
    func writeOutcomes(to html: inout HTMLWriter) {
        html.section("Outcomes", isHalf: true) { section in
            guard counters.entriesRead > 0 else {
                return section.element("p", ["class": "muted"], "No entry.")
            }
            let shown = Outcome.allCases.filter {
                counters[$0] > 0 || (previous?.counters[$0] ?? 0) > 0
            }
            Chart.bar(
                shown.map { outcome in
                    let count = counters[outcome]
                    return (
                        Chart.Part(count, outcome.fill), "\(grouped(count)) \(outcome.rawValue)"
                    )
                },
                alternative: "Shares of outcomes: "
                    + shown.map { "\(counters[$0]) \($0.rawValue)" }.joined(separator: ", "),
                to: &section)
            var columns: [TableColumn] = [.text("Outcome"), .number("This run"), .number("Share")]
            if previous != nil { columns += [.number("Previous run"), .number("Change")] }
            let all = counters.entriesRead
            var rows = shown.map { outcome in
                row(outcome.rawValue, counters[outcome], previous?.counters[outcome], outcome.fill)
            }
            rows.append(row("entries", all, previous?.counters.entriesRead, nil))
            section.table(outcomesCaption, columns, rows)
        }
    }

    private var outcomesCaption: String {
        guard let previous else { return "Entries by outcome; no previous run is known" }
        let time = previous.elapsed.map { ", took \(durationText($0))" } ?? ""
        return "Entries by outcome; the previous run began \(minuteText(previous.startedAt))\(time)"
    }

    private func row(
        _ name: String, _ count: Int, _ before: Int?, _ fill: Chart.Fill?
    ) -> [TableCell] {
        var cells = [
            TableCell { cell in
                cell.element("span", ["class": "label"]) { label in
                    if let fill { Chart.key(fill, to: &label) }
                    label.text(name)
                }
            },
            TableCell(grouped(count)), TableCell(percentText(count, of: counters.entriesRead)),
        ]
        if let before {
            let change = count - before
            cells.append(TableCell(grouped(before)))
            cells.append(
                TableCell(change == 0 ? "±0" : "\(change > 0 ? "+" : "")\(grouped(change))"))
        }
        return cells
    }
}

extension Outcome {
    var fill: Chart.Fill {
        switch self {
        case .downloaded, .requested: .info
        case .revalidated, .fresh, .derived: .good
        case .duplicate, .excluded, .cancelled: .idle
        case .blacklisted: .warn
        case .failed: .bad
        }
    }
}

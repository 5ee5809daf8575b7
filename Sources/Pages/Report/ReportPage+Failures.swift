import PrefetchModel
import Reporting

extension ReportPage {
    private static let listedFailures = 25
    private static let listedHosts = 10

    /// Writes the command that lists entries which failed in earlier runs.
    private func writeBlacklisted(to html: inout HTMLWriter) {
        guard counters[.blacklisted] > 0 else { return }
        html.section("Failures of earlier runs") { section in
            section.element(
                "p", "\(grouped(counters[.blacklisted])) entries were not requested. Their list:")
            section.element("p") {
                $0.element("code", "prefetch failed list --blacklisted\(place)")
            }
        }
    }

    func writeFailures(to html: inout HTMLWriter) {
        guard counters[.failed] > 0 else { return writeBlacklisted(to: &html) }
        html.section("Failures") { section in
            let rows = record.failureRows
            let shown = rows.prefix(ReportPage.listedFailures)
            section.table(
                "\(grouped(counters[.failed])) failed entries by host and reason",
                [
                    .number("Entries"), .text("Host"), .text("Reason"), .text("First entry"),
                    .text("Remedy"),
                ], narrow: .cards,
                shown.map { row in
                    let remedy = Remedy(
                        row, lists: record.lists, place: place, since: summary?.startedAt,
                        isPaceRefused: isPaceRefused(row))
                    let status = row.httpStatus.map { " \($0)" } ?? ""
                    return [
                        TableCell(grouped(row.count)), .long(row.host ?? "–"),
                        TableCell("\(row.reason.rawValue)\(status)"),
                        .long(row.sample, note: row.message),
                        TableCell { cell in
                            if let advice = remedy.advice {
                                cell.element("span", ["class": "note"], advice)
                            }
                            cell.element("code", remedy.command)
                        },
                    ]
                })
            let others = counters[.failed] - shown.reduce(0) { $0 + $1.count }
            if others > 0 {
                section.element(
                    "p", ["class": "muted"],
                    "And \(grouped(others)) more: `prefetch failed list\(place)` lists them.")
            }
        }
    }

    /// The flag that names the cache, for a shell elsewhere.
    private var place: String {
        summary.map { " --cache-dir \(Remedy.quoted(clipped($0.cacheDirectory)))" } ?? ""
    }

    private func isPaceRefused(_ row: FailureRow) -> Bool {
        guard let host = record.hosts.first(where: { RedactedURL($0.host).description == row.host })
        else { return false }
        return HostPace.Refusals(
            responses: host.requests, refusals: host.refusals ?? 0, limit: host.limit
        ).areOfPace(failed: row.count)
    }

    func writeHosts(to html: inout HTMLWriter) {
        guard !record.hosts.isEmpty else { return }
        html.section("Hosts") { section in
            section.table(
                "Hosts with most requests or failures; times of complete responses",
                [
                    .text("Host"), .number("Requests"), .number("p50"), .number("p95"),
                    .number("Failures"), .number("Refusals"), .text("Limited by"),
                ], narrow: .scrolls,
                record.hosts.prefix(ReportPage.listedHosts).map { row in
                    [
                        .long(RedactedURL(row.host).description, note: row.hint),
                        TableCell(grouped(row.requests)),
                        TableCell(row.times.map { durationText($0.median) } ?? "–"),
                        TableCell(row.times.map { durationText($0.percentile95) } ?? "–"),
                        TableCell(grouped(row.failures)),
                        TableCell(row.refusals.map(grouped) ?? "–"),
                        TableCell(row.limit?.rawValue ?? "–"),
                    ]
                })
        }
    }
}

/// The advice about failures with one cause, and the command to run next.
struct Remedy {
    /// Nil if the command says everything.
    let advice: String?
    let command: String

    /// `place` is the flag that names the cache. Failures `since` the start of the run are its own.
    init(
        _ row: FailureRow, lists: [String], place: String, since: Timestamp?, isPaceRefused: Bool
    ) {
        let cause = HostFailures.Cause(row.reason, httpStatus: row.httpStatus)
        let about = Advice.about(cause, isPaceRefused: isPaceRefused)
        let again = Remedy.run(lists) + place
        let list = Remedy.list(row, since: since) + place
        switch row.reason {
        case .httpStatus where row.httpStatus == 404 || row.httpStatus == 410:
            advice = "The images are gone: remove the URLs from the list."
            command = "\(list) --urls"
        case .dns, .connect, .tls:
            advice = nil
            command = "prefetch doctor --online\(place)"
        case .timeout: (advice, command) = (nil, "\(again) --timeout 15m")
        case .stalled: (advice, command) = (nil, "\(again) --stall-timeout 60s")
        case .redirect: (advice, command) = (nil, "\(again) --max-redirects 20")
        case .tooLarge: (advice, command) = (nil, "\(again) --max-filesize 256MiB")
        case .tooManyPixels: (advice, command) = (nil, "\(again) --max-pixels 400000000")
        case .unsupportedImage: (advice, command) = (nil, "\(again) --other-formats store")
        case .uncacheable:
            advice = "The host forbids storing; --ttl overrides it."
            command = "\(again) --ttl 1d"
        case .interrupted: (advice, command) = ("The next run tries again.", again)
        case .invalidEntry, .unsupportedScheme:
            (advice, command) = (
                "Correct the line in the list.", "prefetch plan\(Remedy.names(lists))"
            )
        case .disk:
            advice = "Free space on the cache's disk."
            command = "prefetch doctor\(place)"
        case .corruptImage, .notAnImage:
            advice = Remedy.sentence(about) ?? "The origin serves damaged files."
            command = list
        case .httpStatus, .refusedAddress, .bodyFilter, .internal, .otherFormat,
            .belowMinimumSize, .overMaximumAspect, .belowMinimumBytes, .notSelected, .robots:
            advice = Remedy.sentence(about)
            command = list
        }
    }

    private static func sentence(_ advice: String?) -> String? {
        advice.map { $0.prefix(1).uppercased() + $0.dropFirst() + "." }
    }

    /// The command that lists exactly the entries of the row.
    private static func list(_ row: FailureRow, since: Timestamp?) -> String {
        let host = row.host.map { " --host \(quoted($0))" } ?? ""
        let status = row.reason == .httpStatus ? row.httpStatus : nil
        let cause = status.map { " --status \($0)" } ?? " --reason \(row.reason.rawValue)"
        let time = since.map { " --since \($0)" } ?? ""
        return "prefetch failed list\(host)\(cause)\(time)"
    }

    private static func run(_ lists: [String]) -> String {
        "prefetch\(lists.first == nil ? " LIST" : names(lists)) --retry-failed"
    }

    private static func names(_ lists: [String]) -> String {
        lists.prefix(3).map { " \(quoted(clipped($0)))" }.joined()
    }

    /// The text as one word of a POSIX shell.
    static func quoted(_ text: String) -> String {
        let isPlain =
            !text.isEmpty && text.first != "-"
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 48...57, 65...90, 97...122: true
                default: "-._/:@%+,".utf8.contains(byte)
                }
            }
        guard !isPlain else { return text }
        let word = text.split(separator: "'", omittingEmptySubsequences: false)
            .joined(separator: "'\\''")
        return "\(text.first == "-" ? "./" : "")'\(word)'"
    }
}

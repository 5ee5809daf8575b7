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
            section.element("p") { $0.element("code", "prefetch failed list --blacklisted") }
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
                ],
                shown.map { row in
                    let remedy = Remedy(row, lists: record.lists)
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
                    "And \(grouped(others)) more: `prefetch failed list` lists them.")
            }
        }
    }

    func writeHosts(to html: inout HTMLWriter) {
        guard !record.hosts.isEmpty else { return }
        html.section("Hosts") { section in
            section.table(
                "Hosts with most requests or failures; times of complete responses",
                [
                    .text("Host"), .number("Requests"), .number("p50"), .number("p95"),
                    .number("Failures"), .number("Refusals"), .text("Limited by"),
                ],
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

import PrefetchModel
import Reporting

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

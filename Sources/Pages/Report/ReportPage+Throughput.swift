import PrefetchModel
import Reporting

extension ReportPage {
    private static let tableRows = 12
    private static let listedPauses = 5

    /// Writes the ends of requested entries over time, with retries and pauses.
    func writeThroughput(to html: inout HTMLWriter) {
        html.section("Throughput", isHalf: true) { section in
            let timeline = record.timeline
            guard !timeline.slots.isEmpty else {
                let text =
                    counters.requests > 0
                    ? "The report has no times of entries." : "Nothing was requested."
                return section.element("p", ["class": "muted"], text)
            }
            let total = timeline.width * timeline.slots.count
            let most = timeline.slots.map(\.entries).max() ?? 0
            let peak = Double(most) / timeline.width.secondsValue
            section.element(
                "p", ["class": "muted"],
                "Entries that ended, in steps of \(durationText(timeline.width)); at most "
                    + "\(decimal(peak, places: peak < 10 ? 1 : 0)) a second.")
            Chart.columns(
                timeline.slots.enumerated().map { index, slot in
                    Chart.Column(
                        parts: [.init(slot.warm, .info), .init(slot.failed, .bad)],
                        title: "\(time(index)): \(slot.entries) ended, \(slot.failed) failed, "
                            + "\(slot.retries) retries, \(sizeText(slot.bytes))")
                }, bands: bands(total), kind: "time",
                alternative: "Entries that ended over \(durationText(total)); the figures follow",
                to: &section)
            let hasRetries = timeline.slots.contains { $0.retries > 0 }
            if hasRetries {
                Chart.columns(
                    timeline.slots.enumerated().map { index, slot in
                        Chart.Column(
                            parts: [.init(slot.retries, .warn)],
                            title: "\(time(index)): \(slot.retries) retries")
                    }, kind: "low", alternative: "Retries over the same time", to: &section)
            }
            section.axis("0", durationText(total))
            writeLegend(hasRetries: hasRetries, to: &section)
            writePauses(to: &section)
            section.element("details") { details in
                details.element("summary", "Figures")
                writeFigures(to: &details)
            }
        }
    }

    private func time(_ slot: Int) -> String { durationText(record.timeline.width * slot) }

    private var pauses: [HostPause] { summary?.pauses ?? [] }

    private func bands(_ total: Duration) -> [Chart.Band] {
        pauses.compactMap { pause in
            let (start, end) = (max(0, pause.start / total), min(1, pause.end / total))
            guard start < 1, start <= end else { return nil }
            return Chart.Band(range: start...end, title: "pause of \(clipped(pause.host))")
        }
    }

    private func writeLegend(hasRetries: Bool, to html: inout HTMLWriter) {
        var entries: [(Chart.Fill, String)] = [(.info, "warm")]
        if record.timeline.slots.contains(where: { $0.failed > 0 }) {
            entries.append((.bad, "failed"))
        }
        if hasRetries { entries.append((.warn, "retries")) }
        if !pauses.isEmpty { entries.append((.pause, "a host paused")) }
        html.element("ul", ["class": "legend"]) { list in
            for (fill, name) in entries {
                list.element("li") { item in
                    Chart.key(fill, to: &item)
                    item.text(name)
                }
            }
        }
    }

    private func writePauses(to html: inout HTMLWriter) {
        guard !pauses.isEmpty else { return }
        let longest = pauses.sorted { $0.end - $0.start > $1.end - $1.start }
        html.element("ul") { list in
            for pause in longest.prefix(ReportPage.listedPauses) {
                list.element(
                    "li",
                    "\(clipped(pause.host)) paused for about "
                        + "\(durationText(max(.seconds(1), pause.end - pause.start))) at "
                        + "\(durationText(pause.start)).")
            }
            let others = pauses.count - ReportPage.listedPauses
            if others > 0 { list.element("li", "And \(groupedCount(others, "other pause")).") }
        }
    }

    private func writeFigures(to html: inout HTMLWriter) {
        let timeline = record.timeline
        let step = (timeline.slots.count + ReportPage.tableRows - 1) / ReportPage.tableRows
        let rows = stride(from: 0, to: timeline.slots.count, by: step).map { start in
            let slots = timeline.slots[start..<min(start + step, timeline.slots.count)]
            func sum(_ path: KeyPath<RunTimeline.Slot, Int>) -> Int {
                slots.reduce(0) { $0 + $1[keyPath: path] }
            }
            return [
                TableCell(time(start)), TableCell(grouped(sum(\.entries))),
                TableCell(grouped(sum(\.failed))), TableCell(grouped(sum(\.retries))),
                TableCell(sizeText(sum(\.bytes))),
            ]
        }
        html.table(
            "Entries that ended in steps of \(durationText(timeline.width * step))",
            [
                .text("From"), .number("Ended"), .number("Failed"), .number("Retries"),
                .number("Received"),
            ], rows)
    }
}

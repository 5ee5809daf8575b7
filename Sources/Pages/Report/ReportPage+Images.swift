import PrefetchModel
import Reporting

extension ReportPage {
    func writeFormats(to html: inout HTMLWriter) {
        let rows = record.formats.rows
        guard !rows.isEmpty else { return }
        html.section("Received and stored", isHalf: true) { section in
            func cells(_ name: String, _ totals: [FormatTotals.Sums]) -> [TableCell] {
                let received = totals.reduce(0) { $0 + $1.received }
                let stored = totals.reduce(0) { $0 + $1.stored }
                return [
                    TableCell(name), TableCell(grouped(totals.reduce(0) { $0 + $1.images })),
                    TableCell(sizeText(received)), TableCell(sizeText(stored)),
                    TableCell(percentText(stored, of: received)),
                ]
            }
            var lines = rows.prefix(20).map { cells($0.format.rawValue, [$0.totals]) }
            if rows.count > 1 { lines.append(cells("all", rows.map(\.totals))) }
            section.table(
                "Downloaded images by stored format; other variants are not counted",
                [
                    .text("Format"), .number("Images"), .number("Received"), .number("Stored"),
                    .number("Ratio"),
                ], lines)
        }
    }

    func writeExtremes(to html: inout HTMLWriter) {
        func section(
            _ title: String, _ caption: String, _ names: (String, String),
            _ ranking: Ranking<EntryResult>, _ text: (Int64) -> String
        ) {
            guard !ranking.elements.isEmpty else { return }
            html.section(title, isHalf: true) { section in
                section.table(
                    caption, [.text(names.0), .number(names.1), .number("Received")],
                    ranking.elements.map { value, result in
                        [
                            .long(result.shownURL, note: ReportPage.details(result)),
                            TableCell(text(value)), TableCell(sizeText(result.bytesReceived)),
                        ]
                    })
            }
        }
        section(
            "Slowest transfers", "Time of all attempts of an entry, up to ten", ("Entry", "Time"),
            record.slowest
        ) { durationText(.milliseconds($0)) }
        section(
            "Largest images", "Stored or confirmed in this run, up to ten", ("Image", "Stored"),
            record.largest
        ) { sizeText(Int($0)) }
    }

    private static func details(_ result: EntryResult) -> String {
        let attempts = result.attempts > 1 ? ["\(result.attempts) attempts"] : []
        let image = result.stored.map { [$0.format.rawValue, sidesText($0)] } ?? []
        return ([result.outcome.rawValue] + attempts + image).filter { !$0.isEmpty }
            .joined(separator: ", ")
    }

    /// Writes changed images beside their earlier ones, and new images.
    func writeImages(to html: inout HTMLWriter) {
        let pictures = record.pictures
        guard pictures.newCount + pictures.changedCount > 0 else { return }
        html.section("New and changed images") { section in
            func list(_ kind: String, _ count: Int, _ shown: [EntryResult], _ names: String) {
                guard count > 0 else { return }
                let rest = count > shown.count ? ", the first \(shown.count)" : ""
                section.element("h3", "\(grouped(count)) \(kind)\(rest)")
                section.element("ul", ["class": names]) { list in
                    for result in shown { list.element("li") { write(result, to: &$0) } }
                }
            }
            list("changed", pictures.changedCount, pictures.changed, "pictures pairs")
            list("new", pictures.newCount, pictures.new, "pictures")
        }
    }

    private func write(_ result: EntryResult, to item: inout HTMLWriter) {
        let image = result.stored.flatMap { images[$0.digest] }
        var tag = ReportPage.details(result)
        if let replaced = result.replaced {
            item.element("div", ["class": "frame"]) { frame in
                let date = replaced.fetchedAt.description.prefix(10)
                frame.shot(images[replaced.image.digest], of: "Before, from \(date)")
                frame.shot(image, of: "Now")
            }
            tag += "; replaces that of \(minuteText(replaced.fetchedAt))"
        } else {
            item.shot(image, of: "New image")
        }
        item.element("span", ["class": "name"], clipped(result.shownURL))
        item.element("span", ["class": "tag"], tag)
    }
}

extension HTMLWriter {
    mutating func shot(_ image: PageImage?, of subject: String) {
        element("div", ["class": "shot"]) { frame in
            guard let image else { return frame.text("no preview") }
            let alternative = image.isBlurred ? "\(subject), a blurred preview" : subject
            frame.empty("img", ["src": image.dataURL, "alt": alternative])
        }
    }
}

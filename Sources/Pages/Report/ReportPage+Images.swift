import PrefetchModel
import Reporting

extension ReportPage {
    /// Writes received and stored bytes by format.
    func writeFormats(to html: inout HTMLWriter) {
        let rows = record.formats.rows
        guard !rows.isEmpty else { return }
        html.section("Received and stored", isHalf: true) { section in
            let all = rows.reduce(into: (images: 0, received: 0, stored: 0)) { sums, row in
                sums.images += row.totals.images
                sums.received += row.totals.received
                sums.stored += row.totals.stored
            }
            func cells(_ name: String, _ images: Int, _ received: Int, _ stored: Int) -> [TableCell]
            {
                [
                    TableCell(name), TableCell(grouped(images)), TableCell(sizeText(received)),
                    TableCell(sizeText(stored)), TableCell(percentText(stored, of: received)),
                ]
            }
            var lines = rows.prefix(20).map {
                cells($0.format.rawValue, $0.totals.images, $0.totals.received, $0.totals.stored)
            }
            if rows.count > 1 { lines.append(cells("all", all.images, all.received, all.stored)) }
            section.table(
                "Downloaded images by stored format; other variants are not counted",
                [
                    .text("Format"), .number("Images"), .number("Received"), .number("Stored"),
                    .number("Ratio"),
                ], lines)
        }
    }

    /// Writes the slowest and the largest images.
    func writeExtremes(to html: inout HTMLWriter) {
        if !record.slowest.elements.isEmpty {
            html.section("Slowest transfers", isHalf: true) { section in
                section.table(
                    "Time of all attempts of an entry, up to ten",
                    [.text("Entry"), .number("Time"), .number("Received")],
                    record.slowest.elements.map { time, result in
                        [
                            .long(result.shownURL, note: ReportPage.details(result)),
                            TableCell(durationText(.milliseconds(time))),
                            TableCell(sizeText(result.bytesReceived)),
                        ]
                    })
            }
        }
        guard !record.largest.elements.isEmpty else { return }
        html.section("Largest images", isHalf: true) { section in
            section.table(
                "Stored or confirmed in this run, up to ten",
                [.text("Image"), .number("Stored"), .number("Received")],
                record.largest.elements.map { bytes, result in
                    [
                        .long(result.shownURL, note: ReportPage.details(result)),
                        TableCell(sizeText(Int(bytes))),
                        TableCell(sizeText(result.bytesReceived)),
                    ]
                })
        }
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
            if pictures.changedCount > 0 {
                section.element(
                    "h3", title(pictures.changedCount, "changed", pictures.changed.count))
                section.element("ul", [.cssClass("pictures pairs")]) { list in
                    for result in pictures.changed { writePair(result, to: &list) }
                }
            }
            if pictures.newCount > 0 {
                section.element("h3", title(pictures.newCount, "new", pictures.new.count))
                section.element("ul", [.cssClass("pictures")]) { list in
                    for result in pictures.new { writeNew(result, to: &list) }
                }
            }
        }
    }

    private func title(_ count: Int, _ kind: String, _ shown: Int) -> String {
        let rest = count > shown ? ", the first \(shown)" : ""
        return "\(grouped(count)) \(kind)\(rest)"
    }

    private func writePair(_ result: EntryResult, to html: inout HTMLWriter) {
        html.element("li") { item in
            item.element("div", [.cssClass("frame")]) { frame in
                let old = result.replaced.flatMap { images[$0.image.digest] }
                let date = result.replaced.map { String($0.fetchedAt.description.prefix(10)) } ?? ""
                frame.shot(old, of: "Before, from \(date)")
                frame.shot(result.stored.flatMap { images[$0.digest] }, of: "Now")
            }
            item.element("span", [.cssClass("name")], clipped(result.shownURL))
            let date = result.replaced.map { "replaces that of \(minuteText($0.fetchedAt))" }
            item.element(
                "span", [.cssClass("tag")],
                ([ReportPage.details(result)] + [date].compactMap(\.self)).joined(separator: "; "))
        }
    }

    private func writeNew(_ result: EntryResult, to html: inout HTMLWriter) {
        html.element("li") { item in
            item.shot(result.stored.flatMap { images[$0.digest] }, of: "New image")
            item.element("span", [.cssClass("name")], clipped(result.shownURL))
            item.element("span", [.cssClass("tag")], ReportPage.details(result))
        }
    }
}

extension HTMLWriter {
    /// Writes an image in a frame, or a note in its place.
    mutating func shot(_ image: PageImage?, of subject: String) {
        element("div", [.cssClass("shot")]) { frame in
            guard let image else { return frame.text("no preview") }
            frame.empty(
                "img",
                [
                    .init("src", image.dataURL),
                    .init("alt", image.isBlurred ? "\(subject), a blurred preview" : subject),
                ])
        }
    }
}

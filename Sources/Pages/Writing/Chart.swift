/// Charts as inline SVG. They stretch to the width of the page, so their labels are HTML.
///
/// Every chart has a text as its alternative, and each part a title for the pointer.
enum Chart {
    /// A class of the style sheet that fills a part.
    enum Fill: String {
        case good, bad, warn, info, idle, pause
    }

    struct Part {
        let value: Double
        let fill: Fill

        init(_ value: Int, _ fill: Fill) {
            self.value = Double(max(0, value))
            self.fill = fill
        }
    }

    /// A column of stacked parts, the first one at the bottom.
    struct Column {
        let parts: [Part]
        let title: String

        var total: Double { parts.reduce(0) { $0 + $1.value } }
    }

    /// A range of the width, 0…1, behind the columns.
    struct Band {
        let range: ClosedRange<Double>
        let title: String
    }

    private static let height = 1000.0

    /// Writes columns side by side, the highest one as high as the chart.
    static func columns(
        _ columns: [Column], bands: [Band] = [], kind: String, alternative: String,
        to html: inout HTMLWriter
    ) {
        guard !columns.isEmpty else { return }
        let most = max(columns.map(\.total).max() ?? 0, 1)
        let width = Double(columns.count)
        drawing(width: width, height: height, kind: kind, alternative: alternative, to: &html) {
            for band in bands {
                rectangle(
                    x: band.range.lowerBound * width, y: 0,
                    width: max((band.range.upperBound - band.range.lowerBound) * width, 0.3),
                    height: height, .pause, band.title, to: &$0)
            }
            for (index, column) in columns.enumerated() where column.total > 0 {
                var top = height
                for part in column.parts where part.value > 0 {
                    // A single failure among thousands stays visible.
                    let size = max(part.value / most * height, 12)
                    top -= size
                    rectangle(
                        x: Double(index) + 0.08, y: max(0, top), width: 0.84, height: size,
                        part.fill, column.title, to: &$0)
                }
            }
        }
    }

    static func bar(
        _ parts: [(part: Part, title: String)], alternative: String, to html: inout HTMLWriter
    ) {
        let total = parts.reduce(0) { $0 + $1.part.value }
        guard total > 0 else { return }
        drawing(width: 1000, height: 10, kind: "bar", alternative: alternative, to: &html) {
            var x = 0.0
            for (part, title) in parts where part.value > 0 {
                let width = part.value / total * 1000
                rectangle(
                    x: x, y: 0, width: max(width, 2), height: 10, part.fill, title, to: &$0)
                x += width
            }
        }
    }

    static func key(_ fill: Fill, to html: inout HTMLWriter) {
        html.element("svg", ["class": "key", "viewBox": "0 0 12 12", "aria-hidden": "true"]) {
            $0.empty("rect", ["width": "12", "height": "12", "class": fill.rawValue])
        }
    }

    private static func drawing(
        width: Double, height: Double, kind: String, alternative: String,
        to html: inout HTMLWriter, _ content: (inout HTMLWriter) -> Void
    ) {
        html.element(
            "svg",
            [
                "class": kind, "viewBox": "0 0 \(short(width)) \(short(height))",
                "preserveAspectRatio": "none", "role": "img", "aria-label": alternative,
            ], content)
        html.lineEnd()
    }

    private static func rectangle(
        x: Double, y: Double, width: Double, height: Double, _ fill: Fill, _ title: String,
        to html: inout HTMLWriter
    ) {
        html.element(
            "rect",
            [
                "x": short(x), "y": short(y), "width": short(width),
                "height": short(height), "class": fill.rawValue,
            ]
        ) { $0.element("title", title) }
    }

    /// Two decimals at most.
    private static func short(_ value: Double) -> String {
        let hundredths = Int((value * 100).rounded())
        guard hundredths % 100 != 0 else { return "\(hundredths / 100)" }
        let fraction = hundredths % 100
        return "\(hundredths / 100).\(fraction < 10 ? "0" : "")\(fraction)"
    }
}

extension HTMLWriter {
    /// Writes the labels below a chart, from left to right.
    mutating func axis(_ labels: String...) {
        element("div", ["class": "axis"]) { axis in
            for label in labels { axis.element("span", label) }
        }
    }
}

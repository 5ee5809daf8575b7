import Hashing
import PrefetchModel
import Reporting

/// Writes an HTML document that is also well-formed XML.
///
/// Texts and the values of attributes are escaped here, and names are literals of the source. So no
/// text of a list, a server or a report becomes markup. ``printable(_:)`` shows control characters
/// and bidirectional overrides, unless texts are kept for another page.
struct HTMLWriter {
    private(set) var bytes: [UInt8] = []
    /// Whether texts have the same characters in the page: references name invisible ones, and
    /// control characters, like the ends of lines, are blanks.
    var keepsTexts = false

    /// By literal names; an attribute without a value is left out.
    typealias Attributes = KeyValuePairs<StaticString, String?>

    mutating func element(
        _ name: StaticString, _ attributes: Attributes = [:],
        _ content: (inout HTMLWriter) -> Void
    ) {
        open(name, attributes)
        append(">")
        content(&self)
        append("</")
        append(name)
        append(">")
    }

    mutating func element(_ name: StaticString, _ attributes: Attributes, _ text: String) {
        element(name, attributes) { $0.text(text) }
    }

    mutating func element(_ name: StaticString, _ text: String) { element(name, [:], text) }

    mutating func empty(_ name: StaticString, _ attributes: Attributes) {
        open(name, attributes)
        append("/>")
    }

    mutating func text(_ text: String) {
        bytes += (keepsTexts ? HTMLWriter.kept(text) : xmlText(text)).utf8
    }

    private static func kept(_ text: String) -> String {
        var result = ""
        for part in text.split(whereSeparator: \.isNewline) {
            if !result.isEmpty { result += " " }
            for scalar in part.unicodeScalars {
                switch scalar.properties.generalCategory {
                case .control: result += " "
                case .format where !["\u{200C}", "\u{200D}"].contains(scalar):
                    result += "&#x\(String(scalar.value, radix: 16, uppercase: true));"
                default: result += xmlText(String(scalar))
                }
            }
        }
        return result
    }

    /// Begins a new line of the source, for people who read it.
    mutating func lineEnd() { append("\n") }

    private mutating func open(_ name: StaticString, _ attributes: Attributes) {
        append("<")
        append(name)
        for (name, value) in attributes {
            guard let value else { continue }
            append(" ")
            append(name)
            append("=\"")
            text(value)
            append("\"")
        }
    }

    private mutating func append(_ text: StaticString) {
        bytes += UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    }

    // MARK: Documents

    /// Makes a whole document.
    ///
    /// Its content security policy allows its own style element and the given sources of images.
    /// A later command recognises its own pages by their generator.
    static func document(
        title: String, generator: String, imageSources: StaticString,
        _ body: (inout HTMLWriter) -> Void
    ) -> [UInt8] {
        var writer = HTMLWriter()
        writer.append("<!DOCTYPE html>\n")
        writer.element("html", ["xmlns": "http://www.w3.org/1999/xhtml", "lang": "en"]) { html in
            html.lineEnd()
            html.element("head") { head in
                head.empty("meta", ["charset": "utf-8"])
                let policy = policy(imageSources: "\(imageSources)")
                head.empty("meta", ["http-equiv": "Content-Security-Policy", "content": policy])
                head.empty(
                    "meta",
                    ["name": "viewport", "content": "width=device-width, initial-scale=1"])
                head.empty("meta", ["name": "color-scheme", "content": "light dark"])
                head.empty("meta", ["name": "referrer", "content": "no-referrer"])
                head.empty("meta", ["name": "generator", "content": generator])
                head.element("title", title)
                head.lineEnd()
                head.element("style") { $0.append(StyleSheet.text) }
            }
            html.lineEnd()
            html.element("body", [:], body)
        }
        writer.lineEnd()
        return writer.bytes
    }

    /// The policy (CSP Level 3). The digest is of the style element's content.
    private static func policy(imageSources: String) -> String {
        let style = UnsafeRawBufferPointer(
            start: StyleSheet.text.utf8Start, count: StyleSheet.text.utf8CodeUnitCount)
        let digest = String(
            decoding: SHA256Hasher().digest(of: style).bytes.base64, as: UTF8.self)
        return "default-src 'none'; style-src 'sha256-\(digest)'; "
            + "img-src \(imageSources); base-uri 'none'; form-action 'none'"
    }
}

struct TableColumn {
    let title: String
    let isNumber: Bool

    static func text(_ title: String) -> TableColumn { TableColumn(title: title, isNumber: false) }
    static func number(_ title: String) -> TableColumn { TableColumn(title: title, isNumber: true) }

    fileprivate var cssClass: String? { isNumber ? "n" : nil }
}

struct TableCell {
    let write: (inout HTMLWriter) -> Void

    init(_ write: @escaping (inout HTMLWriter) -> Void) {
        self.write = write
    }

    init(_ text: String) {
        self.init { $0.text(text) }
    }

    /// A text that may be long and without spaces, with details below it.
    static func long(_ text: String, note: String? = nil) -> TableCell {
        TableCell { html in
            html.element("span", ["class": "url"], clipped(text))
            if let note { html.element("span", ["class": "note"], clipped(note)) }
        }
    }
}

extension HTMLWriter {
    /// The form of a table in a narrow window.
    enum NarrowTable {
        case fits
        /// Scrolls sideways, and says so.
        case scrolls
        /// Each row is a card with the columns' titles.
        case cards

        fileprivate var cssClass: String? {
            switch self {
            case .fits: nil
            case .scrolls: "wide"
            case .cards: "cards"
            }
        }
    }

    /// Writes a table with the rows' headers in the first column.
    mutating func table(
        _ caption: String, _ columns: [TableColumn], narrow: NarrowTable = .fits,
        _ rows: [[TableCell]]
    ) {
        element(
            "div",
            ["class": "scroll", "tabindex": "0", "role": "region", "aria-label": caption]
        ) { html in
            if narrow == .scrolls {
                html.element("p", ["class": "sideways"], "Scroll sideways for all columns.")
            }
            html.element("table", ["class": narrow.cssClass]) { table in
                table.element("caption", caption)
                table.element("thead") { head in
                    head.element("tr") { row in
                        for column in columns {
                            row.element(
                                "th", ["scope": "col", "class": column.cssClass], column.title)
                        }
                    }
                }
                table.element("tbody") { body in
                    for cells in rows {
                        body.element("tr") { row in
                            var header: String? = "row"
                            for (column, cell) in zip(columns, cells) {
                                row.element(
                                    header == nil ? "td" : "th",
                                    [
                                        "scope": header, "class": column.cssClass,
                                        "data-title": narrow == .cards ? column.title : nil,
                                    ], cell.write)
                                header = nil
                            }
                        }
                        body.lineEnd()
                    }
                }
            }
        }
    }

    mutating func section(
        _ title: String, isHalf: Bool = false, _ content: (inout HTMLWriter) -> Void
    ) {
        element("section", ["class": isHalf ? "half" : nil]) { html in
            html.element("h2", clipped(title))
            content(&html)
        }
        lineEnd()
    }
}

/// The text, or its beginning: no text may fill the page. Escapes count as they are shown.
func clipped(_ text: String) -> String {
    let limit = 200
    guard text.utf8.count > limit else { return text }
    let scalars = printable(String(text.unicodeScalars.prefix(limit + 1))).unicodeScalars
    return scalars.count > limit ? "\(String(scalars.prefix(limit)))…" : text
}

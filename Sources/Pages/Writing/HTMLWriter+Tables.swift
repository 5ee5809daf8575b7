import PrefetchModel
import Reporting

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
    /// Writes a table with the rows' headers in the first column. Wide ones scroll.
    mutating func table(_ caption: String, _ columns: [TableColumn], _ rows: [[TableCell]]) {
        element(
            "div",
            ["class": "scroll", "tabindex": "0", "role": "region", "aria-label": caption]
        ) { html in
            html.element("table") { table in
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
                                    ["scope": header, "class": column.cssClass], cell.write)
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

import PrefetchModel

/// The separator of a table's values, by its first line.
struct TableDialect: Equatable {
    let separator: UInt8
    /// Whether values are in quotation marks only if the first one is.
    private let isTabSeparated: Bool

    /// The format `tsv`.
    static let tabSeparated = TableDialect(separator: tab, isTabSeparated: true)
    static let tab = UInt8(ascii: "\t")
    /// Earlier ones are preferred.
    private static let separators = [UInt8(ascii: ","), UInt8(ascii: ";"), tab, UInt8(ascii: "|")]
    private static let mark = UInt8(ascii: "\"")

    /// Takes the separator that the line `sep=;` names, as spreadsheets write and read it. Nil for
    /// another line.
    init?(declaredBy line: EntryFields.Bytes) {
        var text = line
        while let last = text.last, last == 0x0A || last == 0x0D { text.removeLast() }
        if text.first == TableDialect.mark, text.last == TableDialect.mark, text.count > 1 {
            text = text.dropFirst().dropLast()
        }
        guard text.count == 5, text.prefix(4).map(\.lowercased).elementsEqual("sep=".utf8),
            let separator = text.last
        else { return nil }
        self.init(separator: separator, isTabSeparated: false)
    }

    private init(separator: UInt8, isTabSeparated: Bool) {
        self.separator = separator
        self.isTabSeparated = isTabSeparated
    }

    /// Takes the separator that gives the line a column of URLs, else the most frequent one.
    init(firstLine line: EntryFields.Bytes, _ columns: ColumnRules) {
        let counted = TableDialect.separators.map { separator in
            let names = TableDialect.values(of: line, separator)
            let isHead = columns.hasHeader && names.contains { columns.isURLColumn(text(of: $0)) }
            return (separator: separator, count: names.count - 1, isHead: isHead && names.count > 1)
        }
        let most = counted.enumerated().max { left, right in
            let (first, second) = (left.element, right.element)
            if first.isHead != second.isHead { return second.isHead }
            if first.count != second.count { return first.count < second.count }
            return left.offset > right.offset
        }
        let separator = most?.element.separator ?? UInt8(ascii: ",")
        self.init(separator: separator, isTabSeparated: false)
    }

    /// Whether the line has a separator outside of quotation marks.
    static func hasSeparator(_ line: EntryFields.Bytes) -> Bool {
        separators.contains { values(of: line, $0).count > 1 }
    }

    /// The values of a line, with their quotation marks.
    static func values(
        of line: EntryFields.Bytes, _ separator: UInt8
    ) -> [EntryFields.Bytes] {
        var isQuoted = false
        return line.split(omittingEmptySubsequences: false) { byte in
            if byte == mark { isQuoted.toggle() }
            return byte == separator && !isQuoted
        }
    }
}

private func text(of name: EntryFields.Bytes) -> String {
    String(decoding: name.trimmed.filter { $0 != UInt8(ascii: "\"") }, as: UTF8.self)
}

extension ColumnRules {
    /// Whether a line is a table's first row with a column of URLs.
    func isHead(_ line: EntryFields.Bytes) -> Bool {
        guard hasHeader else { return false }
        let separator = TableDialect(firstLine: line, self).separator
        let names = TableDialect.values(of: line, separator)
        guard names.count > 1, names.contains(where: { isURLColumn(text(of: $0)) }) else {
            return false
        }
        // A line of a text begins with a URL, and may have fields.
        return !line.starts(with: "/".utf8)
            && !names.contains { name in
                name.contains(UInt8(ascii: "="))
                    || name.indices.contains { name[$0...].starts(with: "://".utf8) }
                    || names.count < 4 && isPath(name.trimmed)
            }
    }

    /// Whether a value may be a relative URL.
    private func isPath(_ name: EntryFields.Bytes) -> Bool {
        name.contains(UInt8(ascii: "/")) && !name.contains(where: \.isBlank)
    }
}

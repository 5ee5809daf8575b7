import PrefetchModel

/// The URLs in a cell of a table, or in a text of JSON.
///
/// Several are separated by `,`, `;` or `|`, and by white space if each is absolute. A list may be
/// in brackets and its URLs in quotation marks, as Python and PostgreSQL write lists. Relative URLs
/// are separated if ``ManifestOptions/readsEachURL``: their separators may be a part of a URL.
struct CellURLs {
    typealias Bytes = EntryFields.Bytes

    private let options: ManifestOptions

    init(_ options: ManifestOptions) {
        self.options = options
    }

    /// Words for no value, in lower case, as programs write them. With a base they are URLs.
    private static let emptyWords: Set<String> = [
        "null", "none", "nan", "nil", "n/a", "na", "#n/a", "<na>", "\\n", "-", "undefined", "false",
        "\"\"",
    ]

    /// Returns a cell without white space and quotation marks, empty if it has a word for no value.
    func trimmed(_ cell: Bytes) -> Bytes {
        // Quoted twice, as by programs that quote values for a writer that does so, too.
        let text = CellURLs.unquoted(cell.trimmed).trimmed
        guard text.count < 10, options.baseURL == nil, !text.isEmpty else { return text }
        let word = String(decoding: text.map(\.lowercased), as: UTF8.self)
        return CellURLs.emptyWords.contains(word) ? text[..<text.startIndex] : text
    }

    /// Returns the URLs of a cell that may have several; nil for one URL.
    func several(in cell: Bytes) -> [Bytes]? {
        guard let first = cell.first else { return nil }
        let last = cell.last
        if first == UInt8(ascii: "[") && last == UInt8(ascii: "]")
            || first == UInt8(ascii: "{") && last == UInt8(ascii: "}")
        {
            let list = cell.dropFirst().dropLast()
            return CellURLs.elements(of: list)
                .map { trimmed(CellURLs.unquoted($0.trimmed)) }.filter { !$0.isEmpty }
        }
        if let urls = absolute(in: cell) { return urls }
        guard options.readsEachURL, options.baseURL != nil, !cell.hasScheme,
            !cell.hasDataScheme
        else { return nil }
        let parts = cell.split(whereSeparator: CellURLs.isSeparator).map(\.trimmed)
        return parts.count > 1 ? parts.filter { !$0.isEmpty } : nil
    }

    /// Returns the absolute URLs of a cell that has several; nil for one.
    private func absolute(in cell: Bytes) -> [Bytes]? {
        var urls: [Bytes] = []
        var start = cell.startIndex
        var index = start
        while let colon = cell[index...].firstIndex(of: UInt8(ascii: ":")) {
            index = colon + 1
            guard cell[index...].starts(with: "//".utf8) else { continue }
            let scheme = cell[start..<colon].suffix { $0.isLetter }
            guard scheme.startIndex > start, scheme.isHTTP else { continue }
            let end = scheme.startIndex
            let before = cell[start..<end]
            guard let mark = before.last, CellURLs.isSeparator(mark) || mark.isSpace else {
                continue
            }
            // The query of a URL may have a list of others.
            let url = before.trimmedOfSeparators
            guard !url.isEmpty, before.contains(where: \.isSpace) || !url.hasURLInQuery else {
                continue
            }
            urls.append(url.withoutDescriptor)
            start = end
        }
        guard !urls.isEmpty else { return nil }
        return urls + [cell[start...].trimmedOfSeparators.withoutDescriptor]
    }

    /// The elements of a list, separated by commas outside of quotation marks.
    private static func elements(of list: Bytes) -> [Bytes] {
        var elements: [Bytes] = []
        var (start, quote) = (list.startIndex, UInt8?.none)
        for index in list.indices {
            let byte = list[index]
            if let mark = quote {
                if byte == mark { quote = nil }
            } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'"),
                list[start..<index].allSatisfy(\.isSpace)
            {
                quote = byte
            } else if byte == UInt8(ascii: ",") {
                elements.append(list[start..<index])
                start = index + 1
            }
        }
        return elements + [list[start...]]
    }

    fileprivate static func isSeparator(_ byte: UInt8) -> Bool { ",;|".utf8.contains(byte) }

    private static func unquoted(_ text: Bytes) -> Bytes {
        guard let first = text.first, text.count > 1, text.last == first,
            first == UInt8(ascii: "\"") || first == UInt8(ascii: "'")
        else { return text }
        return text.dropFirst().dropLast()
    }
}

extension UInt8 {
    fileprivate var isSpace: Bool { isBlank || self == 0x0A || self == 0x0D }
}

extension Slice<UnsafeBufferPointer<UInt8>> {
    fileprivate func suffix(while isWanted: (UInt8) -> Bool) -> Self {
        var start = endIndex
        while start > startIndex, isWanted(self[start - 1]) { start -= 1 }
        return self[start...]
    }

    fileprivate var isHTTP: Bool {
        ["http", "https"].contains { elementsEqual($0.utf8, by: { $0.lowercased == $1 }) }
    }

    fileprivate var hasScheme: Bool {
        indices.contains { self[$0] == UInt8(ascii: ":") && self[$0...].starts(with: "://".utf8) }
    }

    /// The URL of an entry of `srcset`, without its width or density: `300w`, `1.5x`.
    fileprivate var withoutDescriptor: Self {
        guard let space = lastIndex(where: \.isSpace), self[(space + 1)...].isDescriptor else {
            return self
        }
        return self[..<space].trimmedOfSeparators
    }

    /// Whether another URL follows a `?`.
    fileprivate var hasURLInQuery: Bool {
        firstIndex(of: UInt8(ascii: "?")).map { self[$0...].hasScheme } ?? false
    }

    fileprivate var trimmedOfSeparators: Self {
        func isOuter(_ byte: UInt8) -> Bool { byte.isSpace || CellURLs.isSeparator(byte) }
        var rest = drop(while: isOuter)
        while let last = rest.last, isOuter(last) { rest.removeLast() }
        return rest
    }
}

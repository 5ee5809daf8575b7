import CCSV
import PrefetchModel

/// The formats `csv` (RFC 4180) and `tsv`: a table with a column of URLs, parsed by libcsv.
///
/// - The first row has the names of the columns, see ``ColumnRules``.
/// - In `csv`, the first line shows the separator, see ``TableDialect``. Values may be in quotation
///   marks, and then contain line ends. Wrong quotation marks make a bad row, which ends with the
///   line of the last one.
/// - In `tsv`, values are separated by tabs. They are never in quotation marks, unless the first
///   row begins with one: texts of data sets contain single ones, which would hide the rows up to
///   the next.
/// - White space is part of a value, except around URLs and values of fields. An empty value of a
///   field is no value.
/// - A row without a URL is skipped. One longer than ``ManifestOptions/maximumLineBytes`` is bad,
///   as is one with more values than the first, unless these are empty. Its line is its first one.
final class TableFormat: ColumnFormat {
    private let name: String
    private let options: ManifestOptions
    private var rules: ColumnRules { options.columns }
    /// Nil before the first byte.
    private var parser: UnsafeMutablePointer<csv_parser>?
    /// The dialect of the format, or of a line before the first row; nil to find it.
    private var dialect: TableDialect?
    private let cells: CellURLs
    private var columns: Columns?

    private var row = TableRow()
    /// Whether the rest of the line belongs to a row with wrong quotation marks.
    private var isInBrokenRow = false
    private var foreign = ForeignColumns()
    var named = NamedFields()
    var hasDoubt: Bool {
        guard let columns else { return true }
        return columns.candidates.count > 1 || columns.roles.contains(.field(isAssigned: false))
    }

    /// Valid during ``take(_:to:)``.
    private var entries: EntryAppender?
    private var failure: (any Error)?

    private struct Columns {
        /// The indices of the columns of URLs, one unless the user names several.
        var urls: [Int]
        /// The columns that could be the URL's, by their rank; empty once it is known.
        var candidates: [(rank: Int, index: Int)]
        var roles: [ColumnRules.Role]
        let texts: [String]
        /// The names of fields, and the quoted names of other columns.
        var names: [[UInt8]]
        /// The indices of the fields' columns.
        var fields: [Int]

        mutating func makeOther(_ index: Int) {
            roles[index] = .other
            names[index] = ForeignColumns.quoted(texts[index])
            fields.removeAll { $0 == index }
        }
    }

    /// More columns take memory for nothing.
    private static let maximumColumns = 10_000

    var takesPieces: Bool { true }

    init(name: String, usesTabs: Bool, options: ManifestOptions) {
        self.name = name
        dialect = usesTabs ? .tabSeparated : nil
        self.options = options
        cells = CellURLs(options)
    }

    deinit {
        if let parser { ccsv_free(parser) }
    }

    func take(_ line: ListLine, to entries: EntryAppender) throws {
        // Comments before a table are recognised by the detection of formats.
        if parser == nil, line.bytes[...].isBlankOrComment { return }
        if parser == nil, dialect == nil, let found = TableDialect(declaredBy: line.bytes[...]) {
            dialect = found
            return
        }
        let parser = try parser(from: line.bytes)
        self.entries = entries
        defer { self.entries = nil }
        if !ccsv_is_in_row(parser) { row.firstLine = line.number }
        var rest = line.bytes[...]
        while !rest.isEmpty {
            if isInBrokenRow {
                // The row ends with its line.
                rest = rest.drop { $0 != 0x0A && $0 != 0x0D }
                isInBrokenRow = rest.isEmpty
            }
            let bytes = UnsafeBufferPointer(rebasing: rest)
            guard let start = bytes.baseAddress else { break }
            let count = ccsv_parse(
                parser, start, bytes.count, tableValueEnded, tableRowEnded,
                Unmanaged.passUnretained(self).toOpaque())
            rest = rest.dropFirst(count)
            guard !rest.isEmpty else { break }
            guard csv_error(parser) == CSV_EPARSE else { throw noMemory }
            ccsv_reset(parser)
            row.hasWrongQuotes = true
            isInBrokenRow = true
            endRow()
            row.firstLine = line.number
        }
        if ccsv_limit_value(parser, options.maximumLineBytes) { row.isTooLong = true }
        if let failure { throw failure }
    }

    func finish(_ entries: EntryAppender) throws {
        guard let parser else { return }
        self.entries = entries
        defer { self.entries = nil }
        if ccsv_is_in_quotes(parser) { row.hasWrongQuotes = true }
        let pointer = Unmanaged.passUnretained(self).toOpaque()
        guard csv_fini(parser, tableValueEnded, tableRowEnded, pointer) == 0 else { throw noMemory }
        if let failure { throw failure }
    }

    private var noMemory: ManifestError {
        ManifestError(path: name, operation: .parse, message: "no memory for a table")
    }

    /// Returns the parser, made from the first bytes.
    private func parser(
        from start: UnsafeBufferPointer<UInt8>
    ) throws -> UnsafeMutablePointer<csv_parser> {
        if let parser { return parser }
        let mark = UInt8(ascii: "\"")
        let line = start.prefix { $0 != 0x0A && $0 != 0x0D }
        let dialect = dialect ?? TableDialect(firstLine: line, rules)
        let quote = dialect != .tabSeparated || start.first == mark ? mark : 0
        guard let made = ccsv_make(dialect.separator, quote) else { throw noMemory }
        parser = made
        return made
    }

    // MARK: Called by libcsv

    fileprivate func endValue(_ value: UnsafeRawBufferPointer) {
        guard !row.isTooLong else { return }
        guard row.text.count + value.count <= options.maximumLineBytes,
            row.ends.count < TableFormat.maximumColumns
        else {
            row.isTooLong = true
            return
        }
        row.append(value)
    }

    fileprivate func endRow() {
        defer { row.removeAll() }
        guard failure == nil else { return }
        do {
            if let columns { try endRow(columns) } else { try readHeader() }
        } catch {
            failure = error
        }
    }

    /// Makes the columns from the first row.
    private func readHeader() throws {
        guard !row.isTooLong, !row.hasWrongQuotes else {
            throw ManifestError(
                path: name, operation: .recognise,
                message: row.hasWrongQuotes
                    ? "a quotation mark in the first row is not closed"
                    : "the first row has more than \(options.maximumLineBytes) bytes or "
                        + "\(TableFormat.maximumColumns) columns")
        }
        let names = row.ends.indices.map { index in
            rules.hasHeader
                ? row.text.withUnsafeBufferPointer {
                    String(decoding: $0[row.range(index)].trimmed, as: UTF8.self)
                } : String(index + 1)
        }
        let meanings = names.map { name in
            let meaning = rules.role(of: name)
            return named.others.contains(name) ? (role: .other, field: name) : meaning
        }
        let candidates = meanings.indices.compactMap { index -> (rank: Int, index: Int)? in
            if case .url(let rank) = meanings[index].role { (rank, index) } else { nil }
        }.sorted { $0 < $1 }
        guard let url = candidates.first?.index else {
            throw noColumn(rules.urlColumns.first, of: names)
        }
        for column in rules.urlColumns + rules.columns.values
        where !column.isEmpty && !names.contains(column) {
            throw noColumn(column, of: names)
        }
        let areGiven = !rules.urlColumns.isEmpty
        let columns = Columns(
            urls: areGiven ? candidates.map(\.index) : [url],
            candidates: areGiven ? [] : candidates, roles: meanings.map(\.role), texts: names,
            names: zip(names, meanings).map { name, meaning in
                meaning.role.isField
                    ? Array(meaning.field.utf8) : ForeignColumns.quoted(name)
            }, fields: meanings.indices.filter { meanings[$0].role.isField })
        self.columns = columns
        if !rules.hasHeader { try endRow(columns) }
    }

    private func noColumn(_ wanted: String?, of names: [String]) -> ManifestError {
        // A first row of values may hold secrets.
        let areNames = !names.contains { $0.contains { ":/@=".contains($0) } }
        let hint: String
        if !rules.hasHeader {
            hint = "it has \(names.count) columns, numbered from 1"
        } else if areNames {
            let text = LineExcerpt.text(of: names.prefix(20).joined(separator: ", "))
            hint = "its columns are \(text); --url-column NAME names the one with the URLs"
        } else {
            hint = "its first row seems to have no names: --no-header, or --format text"
        }
        return ManifestError(
            path: name, operation: .recognise,
            message: wanted.map { "has no column '\(LineExcerpt.text(of: $0))'" }
                ?? "has no column of URLs", hint: hint)
    }

    private func endRow(_ columns: Columns) throws {
        guard let entries else { return }
        try row.text.withUnsafeBufferPointer { text in
            var columns = columns
            if columns.candidates.count > 1 { chooseURL(text, &columns) }
            let found = columns.urls.filter { $0 < row.ends.count }
                .map { cells.trimmed(text[row.range($0)]) }
            let urls = found.contains { !$0.isEmpty } ? found.filter { !$0.isEmpty } : [text[..<0]]
            do {
                let fields = try fields(columns, text, hasURL: !urls[0].isEmpty, entries)
                for url in urls { try append(url, fields, to: entries) }
            } catch let problem as LineProblem {
                entries.appendBad(
                    UnsafeBufferPointer(rebasing: urls[0]), problem, columns: foreign.object,
                    line: row.firstLine)
            }
            for column in foreign.leftOut { entries.noteLeftOut(column, line: row.firstLine) }
            foreign.removeAll()
        }
    }

    /// Appends the entries of a cell. A bad one does not affect the others.
    private func append(
        _ cell: EntryFields.Bytes, _ fields: EntryFields, to entries: EntryAppender
    ) throws {
        var urls = [cell]
        if let several = cells.several(in: cell) {
            guard several.count < 2 || options.readsEachURL else {
                return entries.appendBad(
                    UnsafeBufferPointer(rebasing: cell), .several(in: "one cell"),
                    columns: foreign.object, line: row.firstLine)
            }
            urls = several.isEmpty ? [cell[..<cell.startIndex]] : several
        }
        for url in urls {
            let bytes = UnsafeBufferPointer(rebasing: url)
            entries.examine(bytes, line: row.firstLine)
            do {
                try entries.append(bytes, fields, unit: "row", line: row.firstLine)
            } catch let problem as LineProblem {
                entries.appendBad(
                    bytes, problem, columns: foreign.object, line: row.firstLine)
            }
        }
    }

    /// Checks a row, and reads its fields and other columns.
    private func fields(
        _ columns: Columns, _ text: UnsafeBufferPointer<UInt8>, hasURL: Bool,
        _ entries: EntryAppender
    ) throws -> EntryFields {
        guard !row.hasWrongQuotes else {
            throw LineProblem("a quotation mark is not closed, or followed by more than a comma")
        }
        guard !row.isTooLong else { throw LineProblem.tooLong("row", options.maximumLineBytes) }
        // The rest of the row may be missing, and its URL with it.
        guard columns.urls.contains(where: { $0 < row.ends.count }) else {
            throw LineProblem.withoutURL("row").hidingImages
        }
        while row.ends.count > columns.roles.count, row.isLastEmpty { row.removeLast() }
        guard row.ends.count <= columns.roles.count else {
            throw LineProblem(
                "\(row.ends.count) values where the first row has \(columns.roles.count)")
        }
        if options.keepsColumns {
            for index in row.ends.indices where !columns.urls.contains(index) {
                guard !columns.roles[index].isField else { continue }
                // A separator at the ends of lines makes a column without name and values.
                guard !columns.texts[index].isEmpty || !row.range(index).isEmpty else { continue }
                addForeign(index, columns.names[index], text)
            }
        }
        var fields = try fields(columns, text, entries.options.variants)
        fields.values.columns = foreign.object
        if !hasURL, hasOtherURL(columns, text) { throw LineProblem.withoutURL("row").hidingImages }
        return fields
    }

    private func addForeign(_ index: Int, _ name: [UInt8], _ text: UnsafeBufferPointer<UInt8>) {
        foreign.add(
            quotedName: name, text: UnsafeBufferPointer(rebasing: text[row.range(index)]))
    }

    private func fields(
        _ columns: Columns, _ text: UnsafeBufferPointer<UInt8>, _ variants: VariantSet?
    ) throws -> EntryFields {
        guard !columns.fields.isEmpty else { return EntryFields() }
        let places = columns.fields.filter { index in
            index < row.ends.count && !text[row.range(index)].trimmed.isEmpty
        }
        let (fields, others) = try named.read(
            places, of: row.firstLine, in: variants,
            column: {
                (columns.texts[$0], columns.roles[$0] == .field(isAssigned: true))
            },
            add: { index, fields in
                try columns.names[index].withUnsafeBufferPointer { name in
                    try fields.add(name[...], text[row.range(index)].trimmed)
                }
            })
        for index in others {
            self.columns?.makeOther(index)
            if options.keepsColumns {
                addForeign(index, ForeignColumns.quoted(columns.texts[index]), text)
            }
        }
        return fields
    }

    /// Chooses the URL's column, see ``NamedFields/urlRank``: a table may have names of pictures in
    /// `image`, or nothing, and their URLs in `url`.
    private func chooseURL(_ text: UnsafeBufferPointer<UInt8>, _ columns: inout Columns) {
        if named.seeksURL {
            named.note(
                urlRanks: columns.candidates.lazy.filter { [self] candidate in
                    candidate.index < row.ends.count
                        && text[row.range(candidate.index)].trimmed
                            .mayBeURL(hasBase: options.baseURL != nil)
                }.map(\.rank))
        }
        guard !named.isTrial, let rank = named.urlRank,
            let chosen = columns.candidates.first(where: { $0.rank == rank })
        else { return }
        columns.urls = [chosen.index]
        columns.candidates = []
        self.columns = columns
    }

    /// Whether a column that could be the URL's, and is not, has a value.
    private func hasOtherURL(_ columns: Columns, _ text: UnsafeBufferPointer<UInt8>) -> Bool {
        row.ends.indices.contains { index in
            guard case .url = columns.roles[index], !columns.urls.contains(index) else {
                return false
            }
            return !text[row.range(index)].trimmed.isEmpty
        }
    }
}

/// The values of one row.
private struct TableRow {
    /// One after another.
    private(set) var text: [UInt8] = []
    private(set) var ends: [Int] = []
    var firstLine = 0
    var isTooLong = false
    /// Whether a quotation mark is not closed, or neither doubled nor the end.
    var hasWrongQuotes = false

    mutating func append(_ value: UnsafeRawBufferPointer) {
        text.append(contentsOf: value)
        ends.append(text.count)
    }

    var isLastEmpty: Bool {
        guard let last = ends.indices.last else { return false }
        return text[range(last)].allSatisfy(\.isBlank)
    }

    /// Removes a value that is empty.
    mutating func removeLast() { ends.removeLast() }

    mutating func removeAll() {
        // One long row leaves no memory behind.
        text.removeAll(keepingCapacity: text.count < 4 << 20)
        ends.removeAll(keepingCapacity: true)
        isTooLong = false
        hasWrongQuotes = false
    }

    /// The place of a value in the text.
    func range(_ index: Int) -> Range<Int> { (index == 0 ? 0 : ends[index - 1])..<ends[index] }
}

private func tableValueEnded(
    _ value: UnsafeMutableRawPointer?, _ count: Int, _ context: UnsafeMutableRawPointer?
) {
    guard let context else { return }
    Unmanaged<TableFormat>.fromOpaque(context).takeUnretainedValue()
        .endValue(UnsafeRawBufferPointer(start: value, count: count))
}

private func tableRowEnded(_: Int32, _ context: UnsafeMutableRawPointer?) {
    guard let context else { return }
    Unmanaged<TableFormat>.fromOpaque(context).takeUnretainedValue().endRow()
}

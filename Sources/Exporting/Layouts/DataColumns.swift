import PrefetchModel
import Reporting

/// The columns and attributes of a data set, the same ones and of one type in all rows: readers
/// take names and types from the first rows. Signatures of URLs are masked.
///
/// A column is of numbers or of booleans if each row has one. All others are texts: of a string
/// itself, else its JSON; empty without a value. `datasets` takes a column for empty if it is null
/// in a shard's first five rows, and lists and objects for other types with each element.
struct DataColumns {
    typealias Cells = [JSONMember]

    /// The names of the data set's own members: a column of such a name has `_` after it.
    struct ReservedNames {
        let names: Set<String>
        /// Ends of names that the reader takes for images.
        var suffixes: [String] = []

        /// Different names stay different.
        func spelling(of name: String) -> String {
            let stem = name[
                ..<(name.lastIndex { $0 != "_" }.map(name.index(after:)) ?? name.endIndex)]
            let isReserved =
                names.contains(String(stem)) || suffixes.contains(where: stem.hasSuffix)
            return isReserved ? name + "_" : name
        }
    }

    private enum ColumnKind {
        case text, integer, number, boolean
        /// An integer of 64 bits that a double does not have.
        case longInteger

        private static let largestExact = 1 << 53

        /// Nil for null.
        init?(of member: JSONMember) {
            guard !member.isNull else { return nil }
            let first = member.isString ? nil : member.text.utf8.first
            if first == UInt8(ascii: "t") || first == UInt8(ascii: "f") {
                self = .boolean
            } else if first == nil || first == UInt8(ascii: "{") || first == UInt8(ascii: "[") {
                self = .text
            } else if let integer = Int64(member.text) {
                self = integer.magnitude <= ColumnKind.largestExact ? .integer : .longInteger
            } else if !DataColumns.isInteger(member.text), Double(member.text)?.isFinite == true {
                self = .number
            } else {
                self = .text
            }
        }

        func merged(with other: ColumnKind) -> ColumnKind {
            switch (self, other) {
            case (.integer, .number), (.number, .integer): .number
            case (.integer, .longInteger), (.longInteger, .integer): .longInteger
            default: self == other ? self : .text
            }
        }
    }

    private struct NotedColumn {
        /// The kind of all values so far; nil if they are null.
        var kind: ColumnKind?
        /// The samples with a value.
        var count = 0
        /// Whether all texts are integers, and whether one has more than 64 bits.
        var isOfDigits = true
        var isLong = false
    }

    /// In the order of their first appearance.
    private(set) var names: [String] = []
    private var columns: [String: NotedColumn] = [:]
    private var samples = 0

    private let reserved: ReservedNames
    /// A column that has another place in the data set.
    private let excluded: String?

    init(reserving reserved: ReservedNames, excluding excluded: String? = nil) {
        self.reserved = reserved
        self.excluded = excluded
    }

    /// Takes the cells of a row; `isSample` unless its entry has no image.
    mutating func note(_ cells: Cells, isSample: Bool = true) {
        samples += isSample ? 1 : 0
        for cell in cells {
            if columns[cell.name] == nil { names.append(cell.name) }
            var column = columns[cell.name] ?? NotedColumn()
            if let kind = ColumnKind(of: cell) {
                column.kind = column.kind?.merged(with: kind) ?? kind
                column.count += isSample ? 1 : 0
                if !cell.text.isEmpty {
                    column.isOfDigits = column.isOfDigits && DataColumns.isInteger(cell.text)
                    column.isLong = column.isLong || Int64(cell.text) == nil
                }
            }
            columns[cell.name] = column
        }
    }

    /// The cells of a row, each name once.
    func cells(of entry: some DetailedEntry) -> Cells {
        entry.details.compactMap { member in
            guard member.name != excluded else { return nil }
            return member.renamed(
                reserved.spelling(of: member.name),
                text: RedactedURL.maskingSecrets(in: member.text))
        }
    }

    /// The values of a row, in the order of ``names``.
    func values(of cells: Cells) -> [(name: String, value: RawJSON)] {
        let cells = Dictionary(cells.map { ($0.name, $0) }) { first, _ in first }
        return names.map { name in
            let column = columns[name] ?? NotedColumn()
            let kind = column.count < samples ? nil : column.kind
            return (name, DataColumns.value(cells[name], as: kind ?? .text))
        }
    }

    private static func value(_ cell: JSONMember?, as kind: ColumnKind) -> RawJSON {
        switch kind {
        case .text:
            let text = cell.map { $0.isNull ? "" : $0.text } ?? ""
            return RawJSON(JSONMember(name: "", text: text).json)
        case .number:
            guard let cell, !cell.isNull else { return .null }
            return RawJSON(Array((cell.text + (isInteger(cell.text) ? ".0" : "")).utf8))
        case .integer, .longInteger, .boolean:
            return cell.map { RawJSON($0.json) } ?? .null
        }
    }

    /// The texts of a row, in the order of ``names``. In a table, integers of more than 64 bits are
    /// in quotation marks: pandas fails for a column of them.
    func texts(of cells: Cells) -> [String] {
        let cells = Dictionary(cells.map { ($0.name, $0) }) { first, _ in first }
        return names.map { name in
            guard let cell = cells[name], !cell.isNull, !cell.text.isEmpty else { return "" }
            let isLong = columns[name].map { $0.isOfDigits && $0.isLong } ?? false
            return isLong ? "\"\(cell.text)\"" : cell.text
        }
    }

    private static func isInteger(_ text: String) -> Bool {
        let digits =
            text.utf8.first.map { "+-".utf8.contains($0) } == true
            ? text.utf8.dropFirst() : text.utf8[...]
        return !digits.isEmpty && digits.allSatisfy(\.isDecimalDigit)
    }
}

import PrefetchModel
import Reporting

/// The columns and attributes of a data set, the same ones and of one type in all rows: readers
/// take names and types from the first rows. Signatures of URLs are masked.
///
/// A column with values of several types has their text. Where some rows lack a text, it is empty:
/// `datasets` takes a column for empty if it is null in the first five rows.
struct DataColumns {
    typealias Cells = [JSONMember]

    private enum ColumnKind {
        case nothing, text, integer, number, boolean, nested

        init(of member: JSONMember) {
            if member.isNull {
                self = .nothing
            } else if member.isString {
                self = .text
            } else {
                switch member.text.utf8.first {
                case UInt8(ascii: "{"), UInt8(ascii: "["): self = .nested
                case UInt8(ascii: "t"), UInt8(ascii: "f"): self = .boolean
                default:
                    let isInteger = member.text.utf8.allSatisfy {
                        $0.isDecimalDigit || $0 == UInt8(ascii: "-")
                    }
                    // Readers have numbers of 64 bits.
                    self =
                        !isInteger ? .number : member.text.utf8.count < 19 ? .integer : .text
                }
            }
        }

        func merged(with other: ColumnKind) -> ColumnKind {
            switch (self, other) {
            case (let kind, .nothing), (.nothing, let kind): kind
            case (.integer, .number), (.number, .integer): .number
            default: self == other ? self : .text
            }
        }
    }

    /// In the order of their first appearance.
    private(set) var names: [String] = []
    private var kinds: [String: ColumnKind] = [:]

    /// `renaming` gives a column the name that it has in the data set; nil leaves it out.
    private let renaming: (String) -> String?

    init(renaming: @escaping (String) -> String?) { self.renaming = renaming }

    mutating func note(_ cells: Cells) {
        for cell in cells {
            let kind = ColumnKind(of: cell)
            if let known = kinds[cell.name] {
                kinds[cell.name] = known.merged(with: kind)
            } else {
                names.append(cell.name)
                kinds[cell.name] = kind
            }
        }
    }

    /// The cells of a row, each name once: the list's columns precede attributes.
    func cells(of columns: [JSONMember], _ attributes: [EntryAttribute]) -> Cells {
        var known: Set<String> = []
        let texts = attributes.map {
            JSONMember(name: $0.name, text: String(decoding: $0.value, as: UTF8.self))
        }
        return (columns + texts).compactMap { member in
            guard let name = renaming(member.name), known.insert(name).inserted else { return nil }
            return member.renamed(name, text: RedactedURL.maskingSecrets(in: member.text))
        }
    }

    /// The values of a row, in the order of ``names``.
    func values(of cells: Cells) -> [(name: String, value: RawJSON)] {
        let cells = Dictionary(cells.map { ($0.name, $0) }) { first, _ in first }
        return names.map { name in
            (name, DataColumns.value(cells[name], as: kinds[name] ?? .nothing))
        }
    }

    private static func value(_ cell: JSONMember?, as kind: ColumnKind) -> RawJSON {
        switch kind {
        case .text:
            let text = cell.map { $0.isNull ? "" : $0.text } ?? ""
            return RawJSON(JSONMember(name: "", text: text).json)
        case .number:
            guard let cell, !cell.isNull else { return .null }
            let isInteger = ColumnKind(of: cell) == .integer
            return RawJSON(Array((cell.text + (isInteger ? ".0" : "")).utf8))
        case .nothing, .integer, .boolean, .nested:
            return cell.map { RawJSON($0.json) } ?? .null
        }
    }
}

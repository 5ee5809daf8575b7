import PrefetchModel

/// The meaning of a table's columns, and of the members of JSON objects.
///
/// A column is the URL's, a field's, or another one: those are passed on to the report unchanged. A
/// column with the name of a field is that field's, unless the user assigns another or its values
/// are not the field's; see ``NamedFields``. Two fields are taken from a column only if the user
/// says so: a column `url` next to the URL's is mostly a page's, and a column `key` numbers rows.
package struct ColumnRules: Sendable {
    /// The columns of URLs; empty for the first of ``commonNames`` that exists. Several make an
    /// entry each.
    package var urlColumns: [String]
    /// The user's columns by field. An empty column makes that with the field's name another one.
    package var columns: [String: String]
    /// Whether a table's first row has the names of its columns. Otherwise their names are their
    /// numbers, from 1.
    package var hasHeader: Bool
    /// Whether a column may have an object, as the member `attr` of JSON lines.
    var hasObjects = false

    package init(
        urlColumns: [String] = [], columns: [String: String] = [:], hasHeader: Bool = true
    ) {
        self.urlColumns = urlColumns
        self.columns = columns
        self.hasHeader = hasHeader
    }

    /// Common names of columns with image URLs, in any case, also with a hyphen, a space or nothing
    /// in place of `_`. Names of pictures are first: a `url` next to them is a page's.
    static let commonNames = [
        "image_url", "image_link", "image_src", "img_url", "img_src", "image", "img", "photo_url",
        "photo", "picture_url", "picture", "src", "thumbnail_url", "thumbnail", "url", "urls",
        "uri", "href", "link", "loc", "image_urls", "image_links", "images",
    ]
    private static let ranks = Dictionary(
        uniqueKeysWithValues: zip(commonNames.map(plain), commonNames.indices))

    private static func plain(_ name: String) -> String {
        name.lowercased().filter { !"_- ".contains($0) }
    }

    /// The place of a name among the common ones; nil for another name.
    static func rank(of name: String) -> Int? { ranks[plain(name)] }

    /// The fields that no column has by its name.
    private static let assignedFields: Set<String> = ["key", "url"]

    enum Role: Equatable {
        /// The column with the lowest rank is the URL's, and the others are other columns.
        case url(rank: Int)
        /// `isAssigned`: by the user, so that a wrong value makes a bad entry.
        case field(isAssigned: Bool)
        case other

        var isField: Bool { if case .field = self { true } else { false } }
    }

    /// The role of a column, and the name of its field.
    func role(of column: String) -> (role: Role, field: String) {
        if let field = columns.first(where: { $0.value == column && !column.isEmpty })?.key {
            return (.field(isAssigned: true), field)
        }
        let rank =
            !urlColumns.isEmpty
            ? urlColumns.firstIndex(of: column)
            : hasHeader ? ColumnRules.rank(of: column) : column == "1" ? 0 : nil
        if let rank { return (.url(rank: rank), column) }
        let isField =
            (EntryFields.isName(column) || hasObjects && column == "attr")
            && !ColumnRules.assignedFields.contains(column) && columns[column] == nil
        return (isField ? .field(isAssigned: false) : .other, column)
    }

    /// Whether a text is one of the names that make a column the URL's.
    func isURLColumn(_ name: String) -> Bool {
        if case .url = role(of: name).role { true } else { false }
    }

    /// Whether a field can be assigned a column.
    package static func isField(_ name: String) -> Bool {
        EntryFields.isName(name) || name == "attr"
    }
}

/// Makes ``EntryExtras/columns`` of the columns that are no fields.
struct ForeignColumns {
    private var json: [UInt8] = []
    /// The quoted names of the columns that are left out.
    private(set) var leftOut: [[UInt8]] = []

    /// The longest object. Columns that would make it longer are left out, since entries wait in
    /// memory, and so that a report has lines that its readers take.
    static let maximumBytes = 64 << 10

    /// The object; nil without a column.
    var object: [UInt8]? {
        guard !json.isEmpty else { return nil }
        // `+` would reserve twice the bytes, while the entry waits.
        var object: [UInt8] = []
        object.reserveCapacity(json.count + 1)
        object += json
        object.append(UInt8(ascii: "}"))
        return object
    }

    mutating func removeAll() {
        json.removeAll(keepingCapacity: true)
        if !leftOut.isEmpty { leftOut = [] }
    }

    /// Adds a text. Bytes other than UTF-8 become U+FFFD.
    mutating func add(quotedName: [UInt8], text: UnsafeBufferPointer<UInt8>) {
        guard text.count < ForeignColumns.maximumBytes else { return leftOut.append(quotedName) }
        add(quotedName) { $0.append(jsonString: String(decoding: text, as: UTF8.self)) }
    }

    /// Adds a value in JSON.
    mutating func add(quotedName: [UInt8], json value: UnsafeBufferPointer<UInt8>) {
        guard value.count < ForeignColumns.maximumBytes else { return leftOut.append(quotedName) }
        add(quotedName) { $0.append(contentsOf: value) }
    }

    private mutating func add(_ quotedName: [UInt8], _ value: (inout [UInt8]) -> Void) {
        let end = json.count
        json.append(json.isEmpty ? UInt8(ascii: "{") : UInt8(ascii: ","))
        json.append(contentsOf: quotedName)
        json.append(UInt8(ascii: ":"))
        value(&json)
        guard json.count < ForeignColumns.maximumBytes else {
            json.removeSubrange(end...)
            return leftOut.append(quotedName)
        }
    }

    /// A name in quotation marks.
    static func quoted(_ name: String) -> [UInt8] {
        var quoted: [UInt8] = []
        quoted.append(jsonString: name)
        return quoted
    }
}

internal import CJSON
import PrefetchModel

/// The other columns of a list's entry, read from their JSON object.
struct ListColumns {
    struct Column {
        let name: String
        /// The text of a string; of another value its JSON.
        let text: String
        /// The value in JSON.
        let json: [UInt8]
        let isNull: Bool
    }

    /// In the order of the list.
    let columns: [Column]

    /// Takes the object that the list's reader has made; nil for no columns.
    init(_ object: [UInt8]?) {
        guard let object else {
            columns = []
            return
        }
        guard let parsed = ListColumns(checking: object) else {
            preconditionFailure("the columns are no JSON object")
        }
        self = parsed
    }

    /// Parses a JSON object; nil for anything else.
    init?(checking object: [UInt8]) {
        let reader = cjson_make()
        defer { cjson_free(reader) }
        let columns = object.withUnsafeBytes { bytes -> [Column]? in
            guard let start = bytes.baseAddress else { return nil }
            let result = cjson_read(
                reader, start.assumingMemoryBound(to: CChar.self), bytes.count, CJSON_OBJECT)
            guard result.status == CJSON_OK else { return nil }
            return UnsafeBufferPointer(start: result.values, count: result.count).map(Column.init)
        }
        guard let columns else { return nil }
        self.columns = columns
    }

    /// The text of a column; nil without it, and for null.
    subscript(name: String) -> String? {
        columns.first { $0.name == name && !$0.isNull }?.text
    }
}

extension ListColumns.Column {
    fileprivate init(_ value: cjson_value) {
        name = String(
            decoding: UnsafeRawBufferPointer(start: value.name, count: value.name_count),
            as: UTF8.self)
        let bytes = UnsafeRawBufferPointer(start: value.text, count: value.text_count)
        text = String(decoding: bytes, as: UTF8.self)
        isNull = value.kind == CJSON_NULL
        if value.kind == CJSON_STRING {
            var quoted: [UInt8] = []
            quoted.append(jsonString: text)
            json = quoted
        } else {
            json = Array(bytes)
        }
    }
}

import PrefetchModel

/// Makes ``EntryExtras/columns`` of the columns that are no fields.
struct ForeignColumns {
    private var json: [UInt8] = []

    /// The object; nil without a column.
    var object: [UInt8]? {
        json.isEmpty ? nil : json + [UInt8(ascii: "}")]
    }

    mutating func removeAll() {
        json.removeAll(keepingCapacity: true)
    }

    /// Adds a text. Bytes that are no UTF-8 become U+FFFD.
    mutating func add(quotedName: [UInt8], text: UnsafeBufferPointer<UInt8>) {
        begin(quotedName)
        json.append(jsonString: String(decoding: text, as: UTF8.self))
    }

    /// Adds a value in JSON.
    mutating func add(quotedName: [UInt8], json value: UnsafeBufferPointer<UInt8>) {
        begin(quotedName)
        json.append(contentsOf: value)
    }

    private mutating func begin(_ quotedName: [UInt8]) {
        json.append(json.isEmpty ? UInt8(ascii: "{") : UInt8(ascii: ","))
        json.append(contentsOf: quotedName)
        json.append(UInt8(ascii: ":"))
    }

    /// A name in quotation marks.
    static func quoted(_ name: String) -> [UInt8] {
        var quoted: [UInt8] = []
        quoted.append(jsonString: name)
        return quoted
    }
}

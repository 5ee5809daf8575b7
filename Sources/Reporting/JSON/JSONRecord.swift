package import PrefetchModel

/// A value that is an object in JSON, described once for writers and readers.
package protocol JSONRecord {
    /// The value while it is read.
    associatedtype Draft

    static var emptyDraft: Draft { get }

    /// A value with all optional parts, through which a reader meets every member.
    static var sample: Self { get }

    /// Names all members, in order, each with its value and the place that a reader puts it.
    ///
    /// A writer reads the values and ignores the draft. A reader does the opposite.
    func visitMembers(_ members: inout some JSONMemberVisitor, reading draft: inout Draft)
}

extension JSONRecord {
    /// The object as UTF-8, without a line end.
    package var json: [UInt8] {
        var writer = JSONObjectWriter()
        writer.append(self)
        return writer.bytes
    }

    /// Reads an object with this member `type`; nil for anything else. Missing members, and members
    /// of another kind, keep the values of ``emptyDraft``.
    package static func read(_ json: some Collection<UInt8>, type: String) -> Draft? {
        let parser = JSONParser()
        return Array(json).withUnsafeBytes { json in
            guard let values = try? parser.parse(json),
                values.contains(where: { $0.isNamed("type") && $0.string == type })
            else { return nil }
            var reader = JSONRecordReader(values)
            return reader.read(Self.self)
        }
    }
}

/// The name of a member: printable ASCII without quotation marks and backslashes, or any text.
package enum JSONName: ExpressibleByStringLiteral {
    /// Appended in one piece: a line of the report has 27.
    case literal(StaticString)
    case text(String)

    package init(stringLiteral name: StaticString) {
        self = .literal(name)
    }
}

/// Writes or reads the members of a ``JSONRecord``.
///
/// A reader calls `read` if the member has the right kind. Numbers are at least 0 there.
package protocol JSONMemberVisitor {
    mutating func text(
        _ name: JSONName, _ value: @autoclosure () -> String?, _ read: (String) -> Void)
    mutating func number(_ name: JSONName, _ value: @autoclosure () -> Int?, _ read: (Int) -> Void)
    mutating func truth(_ name: JSONName, _ value: @autoclosure () -> Bool?, _ read: (Bool) -> Void)
    mutating func duration(
        _ name: JSONName, _ value: @autoclosure () -> Duration?, _ read: (Duration) -> Void)
    mutating func numbers(
        _ name: JSONName, _ value: @autoclosure () -> [Int]?, _ read: ([Int]) -> Void)
    /// An object of integers.
    mutating func counts(
        _ name: JSONName, _ value: @autoclosure () -> [(name: String, count: Int)],
        _ read: ([String: Int]) -> Void)
    mutating func record<Record: JSONRecord>(
        _ name: JSONName, _ value: @autoclosure () -> Record?, _ read: (Record.Draft) -> Void)
    mutating func records<Record: JSONRecord>(
        _ name: JSONName, _ value: @autoclosure () -> [Record], _ read: ([Record.Draft]) -> Void)
    /// A number with decimals, which is not read.
    mutating func rate(_ name: JSONName, _ value: @autoclosure () -> Double?)
    /// The path of a content file relative to the cache directory, which is not read.
    mutating func path(_ name: JSONName, _ value: @autoclosure () -> String?)
    /// A value in JSON, which is not read.
    mutating func json(_ name: JSONName, _ value: @autoclosure () -> [UInt8])
}

extension JSONMemberVisitor {
    // Members that are only written.

    package mutating func text(_ name: JSONName, _ value: @autoclosure () -> String?) {
        text(name, value()) { _ in }
    }
    package mutating func number(_ name: JSONName, _ value: @autoclosure () -> Int?) {
        number(name, value()) { _ in }
    }
    package mutating func truth(_ name: JSONName, _ value: @autoclosure () -> Bool?) {
        truth(name, value()) { _ in }
    }
    package mutating func duration(_ name: JSONName, _ value: @autoclosure () -> Duration?) {
        duration(name, value()) { _ in }
    }

    // Texts with a meaning.

    package mutating func choice<Choice: RawRepresentable<String>>(
        _ name: JSONName, _ value: @autoclosure () -> Choice?, _ read: (Choice) -> Void = { _ in }
    ) {
        text(name, value()?.rawValue) { if let choice = Choice(rawValue: $0) { read(choice) } }
    }

    /// RFC 3339, UTC.
    package mutating func time(
        _ name: JSONName, _ value: @autoclosure () -> Timestamp?,
        _ read: (Timestamp) -> Void = { _ in }
    ) {
        text(name, value()?.description) { text in
            if let time = text.withBytes({ Timestamp(text: UnsafeRawBufferPointer($0)) }) {
                read(time)
            }
        }
    }

    package mutating func digest(
        _ name: JSONName, _ value: @autoclosure () -> ContentDigest?,
        _ read: (ContentDigest) -> Void = { _ in }
    ) {
        text(name, value()?.description) { text in
            if let digest = ContentDigest(hexadecimal: text) { read(digest) }
        }
    }

    package mutating func thumbHash(
        _ name: JSONName, _ value: @autoclosure () -> [UInt8]?, _ read: ([UInt8]) -> Void
    ) {
        text(name, value().map { String(decoding: $0.base64, as: UTF8.self) }) { text in
            if let hash = Placeholder.thumbHash(base64: text) { read(hash) }
        }
    }
}

extension JSONObjectWriter: JSONMemberVisitor {
    /// Appends a record as an object: a line, or an element of an array.
    mutating func append<Record: JSONRecord>(_ record: Record) {
        beginObject()
        appendMembers(of: record)
        endObject()
    }

    mutating func appendMembers<Record: JSONRecord>(of record: Record) {
        var draft = Record.emptyDraft
        record.visitMembers(&self, reading: &draft)
    }

    mutating func text(
        _ name: JSONName, _ value: @autoclosure () -> String?, _ read: (String) -> Void
    ) {
        string(name, value())
    }

    mutating func number(_ name: JSONName, _ value: @autoclosure () -> Int?, _ read: (Int) -> Void)
    {
        integer(name, value())
    }

    mutating func truth(_ name: JSONName, _ value: @autoclosure () -> Bool?, _ read: (Bool) -> Void)
    {
        boolean(name, value())
    }

    mutating func duration(
        _ name: JSONName, _ value: @autoclosure () -> Duration?, _ read: (Duration) -> Void
    ) {
        milliseconds(name, value())
    }

    mutating func numbers(
        _ name: JSONName, _ value: @autoclosure () -> [Int]?, _ read: ([Int]) -> Void
    ) {
        if let numbers = value() { integers(name, numbers) } else { null(name) }
    }

    mutating func counts(
        _ name: JSONName, _ value: @autoclosure () -> [(name: String, count: Int)],
        _ read: ([String: Int]) -> Void
    ) {
        beginObject(named: name)
        for (name, count) in value() { integer(.text(name), count) }
        endObject()
    }

    mutating func record<Record: JSONRecord>(
        _ name: JSONName, _ value: @autoclosure () -> Record?, _ read: (Record.Draft) -> Void
    ) {
        guard let record = value() else { return null(name) }
        beginObject(named: name)
        appendMembers(of: record)
        endObject()
    }

    mutating func records<Record: JSONRecord>(
        _ name: JSONName, _ value: @autoclosure () -> [Record], _ read: ([Record.Draft]) -> Void
    ) {
        beginArray(named: name)
        for record in value() { append(record) }
        endArray()
    }

    mutating func rate(_ name: JSONName, _ value: @autoclosure () -> Double?) {
        decimal(name, value())
    }

    mutating func path(_ name: JSONName, _ value: @autoclosure () -> String?) {
        string(name, value().map { pathPrefix + $0 })
    }

    mutating func json(_ name: JSONName, _ value: @autoclosure () -> [UInt8]) {
        object(name, value())
    }
}

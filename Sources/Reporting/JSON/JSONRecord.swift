package import PrefetchModel

/// A value that is an object in JSON, described once for writers and readers.
package protocol JSONRecord {
    /// The value while it is read.
    associatedtype Draft

    static var emptyDraft: Draft { get }

    /// A value through which a reader meets every member that it reads.
    static var sample: Self { get }

    /// Names all members, in order, each with its value and the place that a reader puts it.
    ///
    /// A writer reads the values and ignores the draft. A reader does the opposite.
    func visitMembers(_ members: inout some JSONVisitor, into draft: inout Draft)
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
    ///
    /// - Returns: The draft, and whether a member that is not null is of another kind.
    package static func read(
        _ json: some Collection<UInt8>, type: String
    ) -> (draft: Draft, isDamaged: Bool)? {
        let parser = JSONParser()
        return Array(json).withUnsafeBytes { json -> (draft: Draft, isDamaged: Bool)? in
            guard let values = try? parser.parse(json),
                values.contains(where: { $0.isNamed("type") && $0.string == type })
            else { return nil }
            var reader = JSONRecordReader(values: values)
            return (reader.read(Self.self), reader.isDamaged)
        }
    }
}

/// Writes or reads the members of a ``JSONRecord``. Their names need no escapes.
///
/// A reader calls `read` if the member has the right kind.
package protocol JSONVisitor {
    // Members that are only written.
    mutating func add(_ name: StaticString, _ value: @autoclosure () -> (some JSONValue)?)
    mutating func records(_ name: StaticString, _ value: @autoclosure () -> [some JSONRecord])
    /// The path of a content file relative to the cache directory.
    mutating func path(_ name: StaticString, _ value: @autoclosure () -> String?)

    // Members that are also read.
    mutating func add<Value: JSONReadable>(
        _ name: StaticString, _ value: @autoclosure () -> Value?, _ read: (Value) -> Void)
    /// An object of integers.
    mutating func counts(
        _ name: StaticString, _ value: @autoclosure () -> [(name: String, count: Int)],
        _ read: ([String: Int]) -> Void)
    mutating func record<Record: JSONRecord>(
        _ name: StaticString, _ value: @autoclosure () -> Record?, _ read: (Record.Draft) -> Void)
    mutating func records<Record: JSONRecord>(
        _ name: StaticString, _ value: @autoclosure () -> [Record],
        _ read: ([Record.Draft]) -> Void)
}

// Texts with a meaning. Unknown ones are skipped: another version may know them.
extension JSONVisitor {
    package mutating func choice(
        _ name: StaticString, _ value: @autoclosure () -> (some RawRepresentable<String>)?
    ) {
        add(name, value()?.rawValue)
    }

    package mutating func choice<Choice: RawRepresentable<String>>(
        _ name: StaticString, _ value: @autoclosure () -> Choice?, _ read: (Choice) -> Void
    ) {
        add(name, value()?.rawValue) { if let choice = Choice(rawValue: $0) { read(choice) } }
    }

    package mutating func time(
        _ name: StaticString, _ value: @autoclosure () -> Timestamp?, _ read: (Timestamp) -> Void
    ) {
        add(name, value()?.description) { text in
            if let time = text.withBytes({ Timestamp(text: UnsafeRawBufferPointer($0)) }) {
                read(time)
            }
        }
    }

    package mutating func digest(
        _ name: StaticString, _ value: @autoclosure () -> ContentDigest?,
        _ read: (ContentDigest) -> Void
    ) {
        add(name, value()?.description) { text in
            if let digest = ContentDigest(hexadecimal: text) { read(digest) }
        }
    }

    package mutating func thumbHash(
        _ name: StaticString, _ value: @autoclosure () -> [UInt8]?, _ read: ([UInt8]) -> Void
    ) {
        add(name, value().map { String(decoding: $0.base64, as: UTF8.self) }) { text in
            if let hash = Placeholder.thumbHash(base64: text) { read(hash) }
        }
    }
}

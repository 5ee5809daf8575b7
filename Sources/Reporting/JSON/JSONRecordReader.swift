internal import CJSON
import PrefetchModel

/// Reads the members of an object into the draft of a ``JSONRecord``.
struct JSONRecordReader {
    let values: UnsafeBufferPointer<cjson_value>
    /// The position of each visited member among the values, -1 without it; the first ones may be
    /// known from an object with the same names.
    private(set) var places: [Int] = []
    private(set) var visited = 0
    /// Whether a member, or one of a nested object, was neither null nor of the right kind.
    private(set) var isDamaged = false

    mutating func read<Record: JSONRecord>(_ type: Record.Type) -> Record.Draft {
        var draft = Record.emptyDraft
        Record.sample.visitMembers(&self, into: &draft)
        return draft
    }

    /// The next member; of equal names, the last one. Nil if it is missing or null.
    private mutating func next(_ name: StaticString) -> cjson_value? {
        if visited == places.count {
            places.append(values.lastIndex { $0.isNamed(name) } ?? -1)
        }
        let place = places[visited]
        visited += 1
        return place < 0 || values[place].kind == CJSON_NULL ? nil : values[place]
    }

    /// Passes on a member's value; nil if the member has another kind.
    private mutating func pass<Value>(_ value: Value?, to read: (Value) -> Void) {
        if let value { read(value) } else { isDamaged = true }
    }

    private mutating func nested<Record: JSONRecord>(
        _ type: Record.Type, in member: cjson_value
    ) -> Record.Draft? {
        member.withValues(CJSON_OBJECT) { values in
            var reader = JSONRecordReader(values: values)
            let draft = reader.read(type)
            isDamaged = isDamaged || reader.isDamaged
            return draft
        }
    }
}

extension JSONRecordReader: JSONVisitor {
    mutating func add<Value: JSONReadable>(
        _ name: StaticString, _ value: @autoclosure () -> Value?, _ read: (Value) -> Void
    ) {
        if let member = next(name) { pass(Value.read(ParsedMember(value: member)), to: read) }
    }

    mutating func counts(
        _ name: StaticString, _ value: @autoclosure () -> [(name: String, count: Int)],
        _ read: ([String: Int]) -> Void
    ) {
        guard let member = next(name) else { return }
        let counts: [String: Int]? = member.withValues(CJSON_OBJECT) { values in
            let counts = values.compactMap { value in
                value.integer.map { (value.decodedName, $0) }
            }
            guard counts.count == values.count else { return nil }
            return Dictionary(counts, uniquingKeysWith: { $1 })
        }
        pass(counts, to: read)
    }

    mutating func record<Record: JSONRecord>(
        _ name: StaticString, _ value: @autoclosure () -> Record?, _ read: (Record.Draft) -> Void
    ) {
        if let member = next(name) { pass(nested(Record.self, in: member), to: read) }
    }

    mutating func records<Record: JSONRecord>(
        _ name: StaticString, _ value: @autoclosure () -> [Record],
        _ read: ([Record.Draft]) -> Void
    ) {
        guard let member = next(name) else { return }
        let drafts: [Record.Draft]? = member.withValues(CJSON_ARRAY) { elements in
            elements.compactMap { element in
                let draft = nested(Record.self, in: element)
                if draft == nil { isDamaged = true }
                return draft
            }
        }
        pass(drafts, to: read)
    }

    // Members that are only written.
    mutating func add(_ name: StaticString, _ value: @autoclosure () -> (some JSONValue)?) {}
    mutating func records(_ name: StaticString, _ value: @autoclosure () -> [some JSONRecord]) {}
    mutating func path(_ name: StaticString, _ value: @autoclosure () -> String?) {}
}

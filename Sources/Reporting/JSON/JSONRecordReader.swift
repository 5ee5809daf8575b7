internal import CJSON
import PrefetchModel

/// Reads the members of an object into the draft of a ``JSONRecord``.
struct JSONRecordReader: JSONMemberVisitor {
    private let values: UnsafeBufferPointer<cjson_value>
    /// The position of each visited member among the values, -1 without it; the first ones may be
    /// known from an object with the same names.
    private(set) var places: [Int]
    private var visited = 0

    init(_ values: UnsafeBufferPointer<cjson_value>, places: [Int] = []) {
        self.values = values
        self.places = places
    }

    mutating func read<Record: JSONRecord>(_ type: Record.Type) -> Record.Draft {
        var draft = Record.emptyDraft
        Record.sample.visitMembers(&self, reading: &draft)
        return draft
    }

    /// The next member; of equal names, the last one.
    private mutating func next(_ name: JSONName) -> cjson_value? {
        if visited == places.count {
            places.append(values.lastIndex { $0.isNamed(name) } ?? -1)
        }
        let place = places[visited]
        visited += 1
        return place < 0 ? nil : values[place]
    }

    mutating func text(
        _ name: JSONName, _ value: @autoclosure () -> String?, _ read: (String) -> Void
    ) {
        if let text = next(name)?.string { read(text) }
    }

    mutating func number(_ name: JSONName, _ value: @autoclosure () -> Int?, _ read: (Int) -> Void)
    {
        if let number = next(name)?.integer { read(max(0, number)) }
    }

    mutating func truth(_ name: JSONName, _ value: @autoclosure () -> Bool?, _ read: (Bool) -> Void)
    {
        guard let value = next(name), value.kind == CJSON_BOOLEAN else { return }
        switch value.bytes.first {
        case UInt8(ascii: "t"): read(true)
        case UInt8(ascii: "f"): read(false)
        default: break
        }
    }

    mutating func duration(
        _ name: JSONName, _ value: @autoclosure () -> Duration?, _ read: (Duration) -> Void
    ) {
        if let duration = next(name)?.duration { read(duration) }
    }

    mutating func numbers(
        _ name: JSONName, _ value: @autoclosure () -> [Int]?, _ read: ([Int]) -> Void
    ) {
        next(name)?.withValues(CJSON_ARRAY) { values in
            let numbers = values.compactMap(\.integer)
            if numbers.count == values.count { read(numbers) }
        }
    }

    mutating func counts(
        _ name: JSONName, _ value: @autoclosure () -> [(name: String, count: Int)],
        _ read: ([String: Int]) -> Void
    ) {
        next(name)?.withValues(CJSON_OBJECT) { values in
            let counts = values.compactMap { value in
                value.integer.map { (value.decodedName, max(0, $0)) }
            }
            guard counts.count == values.count else { return }
            read(Dictionary(counts, uniquingKeysWith: { $1 }))
        }
    }

    mutating func record<Record: JSONRecord>(
        _ name: JSONName, _ value: @autoclosure () -> Record?, _ read: (Record.Draft) -> Void
    ) {
        next(name)?.withValues(CJSON_OBJECT) { values in
            var reader = JSONRecordReader(values)
            read(reader.read(Record.self))
        }
    }

    mutating func records<Record: JSONRecord>(
        _ name: JSONName, _ value: @autoclosure () -> [Record], _ read: ([Record.Draft]) -> Void
    ) {
        next(name)?.withValues(CJSON_ARRAY) { elements in
            var drafts: [Record.Draft] = []
            for element in elements {
                element.withValues(CJSON_OBJECT) { values in
                    var reader = JSONRecordReader(values)
                    drafts.append(reader.read(Record.self))
                }
            }
            read(drafts)
        }
    }

    mutating func rate(_ name: JSONName, _ value: @autoclosure () -> Double?) { _ = next(name) }
    mutating func path(_ name: JSONName, _ value: @autoclosure () -> String?) { _ = next(name) }
    mutating func json(_ name: JSONName, _ value: @autoclosure () -> [UInt8]) { _ = next(name) }
}

import PrefetchModel

/// The fields behind the URL of a text line: `key=value`, separated by spaces or tabs.
///
/// - `priority`: `high`, `normal`, `low`, or an integer within -100…100;
/// - `key`: the cache key, 1…2048 bytes of UTF-8 without control characters.
///
/// Each may stand once. The other fields of the design are refused by name until they do something.
struct EntryFields {
    private(set) var priority: Priority?
    /// Where the value of `key` lies in the line.
    private(set) var key: Range<Int>?

    private static let maximumKeyBytes = 2048
    /// Names longer than this are not repeated in a message.
    private static let maximumShownBytes = 64
    private static let laterFields: Set<String> = ["ttl", "header", "resize", "encode", "quality"]

    /// Reads the fields from `first` on, where the text behind the URL begins.
    ///
    /// - Precondition: the line has no control byte but tabs.
    /// - Throws: a problem that names the first field that is not good.
    init(_ line: UnsafeBufferPointer<UInt8>, from first: Int) throws(EntryBatch.Problem) {
        var index = first
        while true {
            while index < line.count, line[index].isBlank { index += 1 }
            guard index < line.count else { return }
            let start = index
            while index < line.count, !line[index].isBlank { index += 1 }
            try add(line, start..<index)
        }
    }

    private mutating func add(
        _ line: UnsafeBufferPointer<UInt8>, _ range: Range<Int>
    ) throws(EntryBatch.Problem) {
        guard let equals = line[range].firstIndex(of: UInt8(ascii: "=")) else {
            throw EntryFields.problem("text without '=' behind the URL")
        }
        let name = line[range.lowerBound..<equals]
        let value = (equals + 1)..<range.upperBound
        if name.elementsEqual("priority".utf8) {
            guard priority == nil else { throw EntryFields.problem("the field 'priority' twice") }
            priority = try EntryFields.priority(line[value])
        } else if name.elementsEqual("key".utf8) {
            guard key == nil else { throw EntryFields.problem("the field 'key' twice") }
            try EntryFields.checkKey(UnsafeBufferPointer(rebasing: line[value]))
            key = value
        } else {
            throw EntryFields.problemOfUnknown(name)
        }
    }

    private static func priority(
        _ value: Slice<UnsafeBufferPointer<UInt8>>
    ) throws(EntryBatch.Problem) -> Priority {
        switch String(decoding: value.prefix(8), as: UTF8.self) {
        case "high" where value.count == 4: return .high
        case "normal" where value.count == 6: return .normal
        case "low" where value.count == 3: return .low
        case let text:
            guard value.count <= 8, let number = Int(text), let priority = Priority(number) else {
                throw problem("the priority is not high, normal, low or an integer within -100…100")
            }
            return priority
        }
    }

    private static func checkKey(
        _ value: UnsafeBufferPointer<UInt8>
    ) throws(EntryBatch.Problem) {
        guard (1...maximumKeyBytes).contains(value.count) else {
            throw problem("the key is not 1 to \(maximumKeyBytes) bytes long")
        }
        guard let text = String(validating: value, as: UTF8.self) else {
            throw problem("the key is not UTF-8")
        }
        // The ASCII ones are refused in every line.
        guard !text.unicodeScalars.contains(where: { (0x80...0x9F).contains($0.value) }) else {
            throw problem("the key has a control character")
        }
    }

    private static func problemOfUnknown(
        _ name: Slice<UnsafeBufferPointer<UInt8>>
    ) -> EntryBatch.Problem {
        let isPlain = name.allSatisfy {
            $0.isLetter || $0.isDecimalDigit || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_")
                || $0 == UInt8(ascii: ".")
        }
        // A name with other bytes may be half a URL with a password.
        guard isPlain, (1...maximumShownBytes).contains(name.count) else {
            return problem("an unknown field behind the URL")
        }
        let text = String(decoding: name, as: UTF8.self)
        if laterFields.contains(text) || (text.hasPrefix("attr.") && text.utf8.count > 5) {
            return problem("field '\(text)' is not supported yet")
        }
        return problem("unknown field '\(text)'")
    }

    private static func problem(_ message: String) -> EntryBatch.Problem {
        EntryBatch.Problem(reason: .invalidEntry, message: message)
    }
}

extension UInt8 {
    /// Space or tab.
    var isBlank: Bool { self == UInt8(ascii: " ") || self == UInt8(ascii: "\t") }
}

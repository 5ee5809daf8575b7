internal import CJSON
internal import Glibc
package import PrefetchModel

/// Reads objects and arrays by JSON for Modern C++. Used by one thread at a time.
package final class JSONMembers {
    private let reader = cjson_make()

    package init() {}

    deinit { cjson_free(reader) }

    /// Returns the members of an object, valid until the next call.
    ///
    /// - Throws: ``JSONProblem`` for bytes that are no object.
    func read(
        _ text: UnsafeRawBufferPointer, _ kind: cjson_kind = CJSON_OBJECT
    ) throws(JSONProblem) -> UnsafeBufferPointer<cjson_value> {
        guard let start = text.baseAddress, !text.isEmpty else {
            throw JSONProblem(text: "an empty line")
        }
        // The parser takes a NUL byte for the end.
        if let end = memchr(start, 0, text.count) {
            throw JSONProblem(text: "invalid JSON at byte \(UnsafeRawPointer(end) - start + 1)")
        }
        let result = cjson_read(
            reader, start.assumingMemoryBound(to: CChar.self), text.count, kind)
        switch result.status {
        case CJSON_OK: return UnsafeBufferPointer(start: result.values, count: result.count)
        case CJSON_OTHER: throw JSONProblem(text: "not a JSON object")
        case CJSON_DEEP:
            throw JSONProblem(text: "JSON of more than \(CJSON_MAXIMUM_DEPTH) levels")
        default: throw JSONProblem(text: "invalid JSON at byte \(result.position)")
        }
    }

    /// The members of an object by name; of equal names the last one. Empty for bytes that are no
    /// object.
    package func object(_ text: UnsafeRawBufferPointer) -> [String: JSONMember] {
        guard let members = try? read(text) else { return [:] }
        return Dictionary(
            members.map { (String(decoding: $0.nameBytes, as: UTF8.self), JSONMember($0)) },
            uniquingKeysWith: { $1 })
    }

    /// The elements of an array; empty for bytes that are no array.
    package func array(_ text: UnsafeRawBufferPointer) -> [JSONMember] {
        (try? read(text, CJSON_ARRAY))?.map(JSONMember.init) ?? []
    }
}

/// Why a line is no JSON object.
struct JSONProblem: Error {
    let text: String
}

/// A copy of a value: the decoded string, or the JSON of any other kind.
package struct JSONMember {
    private let isString: Bool
    private let bytes: [UInt8]

    init(_ value: cjson_value) {
        isString = value.kind == CJSON_STRING
        bytes = Array(value.bytes)
    }

    package var text: String? { isString ? String(decoding: bytes, as: UTF8.self) : nil }
    package var integer: Int? {
        guard !isString, let number = Int(String(decoding: bytes, as: UTF8.self)) else {
            return nil
        }
        return max(-.largestReported, min(number, .largestReported))
    }

    /// A number of milliseconds.
    package var duration: Duration? {
        bytes.withUnsafeBytes { isString ? nil : Duration(millisecondsText: $0) }
    }

    package var time: Timestamp? {
        isString ? bytes.withUnsafeBytes { Timestamp(text: $0) } : nil
    }

    /// The members of an object; empty for anything else.
    package func members(by reader: JSONMembers) -> [String: JSONMember] {
        isString ? [:] : bytes.withUnsafeBytes(reader.object)
    }

    /// The elements of an array; empty for anything else.
    package func elements(by reader: JSONMembers) -> [JSONMember] {
        isString ? [] : bytes.withUnsafeBytes(reader.array)
    }
}

extension cjson_value {
    var nameBytes: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: name, count: name_count)
    }

    /// The decoded string, or the JSON.
    var bytes: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: text, count: text_count)
    }

    /// Nil for any other kind.
    var string: String? { kind == CJSON_STRING ? String(decoding: bytes, as: UTF8.self) : nil }

    /// Nil for any other kind, and for a number that is no integer; at most
    /// ``Swift/Int/largestReported``.
    var integer: Int? {
        guard kind == CJSON_NUMBER else { return nil }
        var bytes = bytes[...]
        let isNegative = bytes.first == UInt8(ascii: "-")
        if isNegative { bytes = bytes.dropFirst() }
        var value = 0
        for byte in bytes {
            guard (48...57).contains(byte) else { return nil }
            value = min(value * 10 + Int(byte - 48), Int.largestReported)
        }
        return isNegative ? -value : value
    }

    var duration: Duration? { kind == CJSON_NUMBER ? Duration(millisecondsText: bytes) : nil }
    var time: Timestamp? { kind == CJSON_STRING ? Timestamp(text: bytes) : nil }
}

extension Duration {
    /// Parses milliseconds as the report writes them, `4.200`; nil for a negative or huge number.
    fileprivate init?(millisecondsText text: UnsafeRawBufferPointer) {
        var (whole, fraction, unit) = (Int64(0), Int64(0), Int64(1000))
        var hasPoint = false
        for byte in text {
            switch byte {
            case UInt8(ascii: ".") where !hasPoint: hasPoint = true
            case 48...57 where hasPoint:
                unit /= 10
                fraction += unit * Int64(byte - 48)
            case 48...57:
                guard whole < 1 << 50 else { return nil }
                whole = whole * 10 + Int64(byte - 48)
            default: return nil
            }
        }
        self = .microseconds(whole * 1000 + fraction)
    }
}

/// The texts of a JSON object, for callers that want nothing else of it.
package enum JSONStrings {
    /// The members that are strings, by name; nil for anything but an object.
    package static func members(of bytes: [UInt8]) -> [String: String]? {
        let reader = JSONMembers()
        return bytes.withUnsafeBytes { bytes in
            guard (try? reader.read(bytes)) != nil else { return nil }
            return reader.object(bytes).compactMapValues(\.text)
        }
    }
}

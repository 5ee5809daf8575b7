internal import CJSON
internal import Glibc
import PrefetchModel

/// Parses objects and arrays by JSON for Modern C++. Used by one thread at a time.
final class JSONParser {
    private let reader = cjson_make()

    deinit { cjson_free(reader) }

    /// Returns the members of an object, or the elements of an array, valid until the next call.
    func parse(
        _ text: UnsafeRawBufferPointer, _ kind: cjson_kind = CJSON_OBJECT
    ) throws(UserError) -> UnsafeBufferPointer<cjson_value> {
        guard let start = text.baseAddress, !text.isEmpty else { throw UserError("an empty line") }
        // The parser takes a NUL byte for the end.
        if let end = memchr(start, 0, text.count) {
            throw UserError("invalid JSON at byte \(UnsafeRawPointer(end) - start + 1)")
        }
        let result = cjson_read(
            reader, start.assumingMemoryBound(to: CChar.self), text.count, kind)
        switch result.status {
        case CJSON_OK: return UnsafeBufferPointer(start: result.values, count: result.count)
        case CJSON_OTHER: throw UserError("not a JSON object")
        case CJSON_DEEP: throw UserError("JSON of more than \(CJSON_MAXIMUM_DEPTH) levels")
        default: throw UserError("invalid JSON at byte \(result.position)")
        }
    }
}

extension cjson_value {
    var nameBytes: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: name, count: name_count)
    }

    var decodedName: String { String(decoding: nameBytes, as: UTF8.self) }

    func isNamed(_ name: StaticString) -> Bool {
        name.utf8CodeUnitCount == name_count
            && memcmp(name.utf8Start, self.name, name_count) == 0
    }

    /// Passes on the members of an object or the elements of an array; nil for another kind.
    func withValues<Result>(
        _ kind: cjson_kind, _ body: (UnsafeBufferPointer<cjson_value>) -> Result?
    ) -> Result? {
        guard self.kind == kind else { return nil }
        let parser = JSONParser()
        return withExtendedLifetime(parser) {
            (try? parser.parse(bytes, kind)).flatMap(body)
        }
    }

    /// The decoded string, or the JSON.
    var bytes: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: text, count: text_count)
    }

    var string: String? { kind == CJSON_STRING ? String(decoding: bytes, as: UTF8.self) : nil }

    /// Nil for any other kind, for a number that is negative or has decimals, and above
    /// ``Swift/Int/largestReported``.
    var integer: Int? {
        guard kind == CJSON_NUMBER else { return nil }
        var value = 0
        for byte in bytes {
            guard (48...57).contains(byte) else { return nil }
            value = value * 10 + Int(byte - 48)
            guard value <= Int.largestReported else { return nil }
        }
        return value
    }

    var truth: Bool? { kind == CJSON_BOOLEAN ? bytes.first == UInt8(ascii: "t") : nil }
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

/// A member of a JSON object, for callers that cannot describe a ``JSONRecord``.
package struct JSONMember: Sendable {
    package let name: String
    /// The decoded string; of another value its JSON.
    package let text: String
    package let isString: Bool
    package let isNull: Bool

    /// A string.
    package init(name: String, text: String) {
        self.init(name: name, text: text, isString: true, isNull: false)
    }

    private init(name: String, text: String, isString: Bool, isNull: Bool) {
        (self.name, self.text, self.isString, self.isNull) = (name, text, isString, isNull)
    }

    /// The member with another name and text, of the same kind.
    package func renamed(_ name: String, text: String) -> JSONMember {
        JSONMember(name: name, text: text, isString: isString, isNull: isNull)
    }

    /// The members of an object, in their order; nil for anything else.
    package static func members(of object: [UInt8]) -> [JSONMember]? {
        let parser = JSONParser()
        return object.withUnsafeBytes { bytes in
            try? parser.parse(bytes).map { value in
                JSONMember(
                    name: value.decodedName, text: String(decoding: value.bytes, as: UTF8.self),
                    isString: value.kind == CJSON_STRING, isNull: value.kind == CJSON_NULL)
            }
        }
    }

    package var json: [UInt8] {
        guard isString else { return Array(text.utf8) }
        var quoted: [UInt8] = []
        quoted.append(jsonString: text)
        return quoted
    }
}

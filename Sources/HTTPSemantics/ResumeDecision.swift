package import PrefetchModel

/// The meaning of a response to a request for the rest of a body
/// (``PrefetchModel/PartialValidator/rangeFields(from:)``).
package enum ResumeDecision: Hashable, Sendable {
    /// The response's body continues the stored part, to the end. `total`: the bytes of the whole
    /// body, if known.
    case append(total: Int?)
    /// The stored part is useless. The body of ``Response/wholeStatuses`` is whole; after a 416 it
    /// must be requested without a range.
    case startOver
    /// A 206 that must not be appended: the body must be requested without a range. The text is
    /// for messages.
    case refused(String)
    /// The status says nothing about the range.
    case unanswered

    /// Decides by the head of the response.
    ///
    /// A 206 must begin at the end of the stored part and reach the body's end, with the same
    /// total and validator (RFC 9110 §15.3.7.3). A shorter one, though allowed (§14.2), is
    /// refused: it looks like another interrupted body.
    ///
    /// The request left out `offset` stored bytes, and sent `validator` in `If-Range`. `knownTotal`
    /// is the length of the whole body, if the first response stated it.
    package static func of(
        status: Int, fields: [HeaderField], offset: Int, validator: PartialValidator,
        knownTotal: Int?
    ) -> ResumeDecision {
        switch status {
        case 416: return .startOver
        case let status where Response.wholeStatuses.contains(status): return .startOver
        case 206: break
        default: return .unanswered
        }
        // Several parts have their own format (§15.3.7.2); only one was requested.
        let type = fields.first("content-type")?.lowercased() ?? ""
        if type.hasPrefix("multipart/") { return .refused("the part has several parts in it") }
        if let coding = fields.values(of: "content-encoding").first(where: FieldSyntax.isEncoding) {
            // Ranges count encoded bytes (§14.1.2, §8.4), and the stored bytes are decoded.
            return .refused("the part is encoded: \(coding)")
        }
        guard let value = fields.onlyValue(of: "content-range") else {
            let isMissing = fields.first("content-range") == nil
            return .refused(isMissing ? "no Content-Range" : "several Content-Range")
        }
        guard let range = ContentRange(value), let part = range.part else {
            return .refused("Content-Range is not a range of bytes")
        }
        guard part.lowerBound == offset else {
            return .refused("the part begins at \(part.lowerBound) and not at \(offset)")
        }
        if let knownTotal, let total = range.total, total != knownTotal {
            return .refused("the body has \(total) bytes now, it had \(knownTotal)")
        }
        let total = range.total ?? knownTotal
        if let total, part.upperBound != total {
            return .refused("the part ends at \(part.upperBound) and not at \(total)")
        }
        if let length = fields.first("content-length"),
            ContentRange.number(length.utf8) != part.count
        {
            return .refused("the part's length is not that of its Content-Range")
        }
        if let mismatch = validator.mismatch(in: fields) {
            return .refused(mismatch)
        }
        return .append(total: total)
    }
}

/// The value of `Content-Range` (RFC 9110 §14.4) in bytes, the only unit that is requested.
package struct ContentRange: Hashable, Sendable {
    /// The first byte of the part and the one after its last; nil in a 416, which has no part.
    package let part: Range<Int>?
    /// The length of the whole body; nil when the origin does not know it (`*`).
    package let total: Int?

    /// Nil for text that is malformed or contradicts itself: a part that ends before it begins or
    /// beyond the whole, neither part nor total, or numbers beyond 63 bits.
    package init?(_ value: String) {
        var rest = Array(value.utf8)[...]
        let unit = rest.prefix { $0 != FieldSyntax.space }
        // Units are case-insensitive (RFC 9110 §14.1).
        guard FieldSyntax.text(unit).lowercased() == "bytes" else { return nil }
        rest = rest.dropFirst(unit.count + 1)
        let sides = rest.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard sides.count == 2 else { return nil }
        let unknown = [UInt8(ascii: "*")]
        if sides[1].elementsEqual(unknown) {
            total = nil
        } else {
            guard let number = ContentRange.number(sides[1]) else { return nil }
            total = number
        }
        if sides[0].elementsEqual(unknown) {
            guard total != nil else { return nil }
            part = nil
        } else {
            let ends = sides[0].split(
                separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
            guard ends.count == 2, let first = ContentRange.number(ends[0]),
                let last = ContentRange.number(ends[1]), first <= last, last < total ?? .max
            else { return nil }
            part = first..<last + 1
        }
    }

    /// One or more digits; nil when the number has no room in an `Int`.
    static func number(_ digits: some Collection<UInt8>) -> Int? {
        digits.allSatisfy(\.isDecimalDigit) ? Int(FieldSyntax.text(digits)) : nil
    }
}

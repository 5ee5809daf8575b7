import PrefetchModel

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

package import PrefetchModel

/// The response directives of `Cache-Control` that a private cache obeys (RFC 9111 §5.2.2).
///
/// `s-maxage` and `proxy-revalidate` are for shared caches (§5.2.2.10, §5.2.2.8). `private` and
/// `public` permit nothing new to a private cache (§5.2.2.7, §5.2.2.9). Unknown directives are
/// ignored (§5.2.3). Names are compared case-insensitively. An argument may be a token or a quoted
/// string, whichever its definition says (§5.2).
package struct CacheControl: Hashable, Sendable {
    /// The least of all `max-age` (§5.2.2.1).
    ///
    /// §4.2.1 lets a doubled directive mean its first value or a stale response; the least is never
    /// longer than either, and does not depend on the order.
    package private(set) var maxAge: Duration?
    /// Whether there was an invalid `max-age`; the response counts as stale (§4.2.1).
    package private(set) var hasInvalidMaxAge = false
    /// `no-store` (§5.2.2.5), even with an argument, which it does not take.
    private var hasNoStore = false
    /// `must-understand` (§5.2.2.3).
    private var hasMustUnderstand = false
    /// `no-cache` without field names (§5.2.2.4).
    ///
    /// With names it forbids only handing on those fields unvalidated. This cache hands on no
    /// response fields, so nothing needs validation. An unreadable list counts as no names.
    package private(set) var requiresValidation = false
    /// `must-revalidate` (§5.2.2.2): never to be used once stale, whatever happens to the origin.
    package private(set) var mustRevalidate = false
    /// `immutable` (RFC 8246 §2): the origin will not change the response while it is fresh.
    package private(set) var isImmutable = false
    /// The least of all `stale-while-revalidate` (RFC 5861 §3); invalid ones are ignored.
    package private(set) var staleWhileRevalidate: Duration?

    /// Whether the response must not be stored: `no-store` without `must-understand`. The latter
    /// lets a cache store a response with a status that it understands; others are never stored
    /// here.
    package var forbidsStoring: Bool { hasNoStore && !hasMustUnderstand }

    /// Larger numbers count as this one (§1.2.2): 68 years, longer than any cache.
    static let largestSeconds: Int64 = 1 << 31

    /// Whether the response must not be used once it is stale, even when the origin is unreachable
    /// (§4.2.4): with `must-revalidate` or `no-cache`.
    package var forbidsStaleUse: Bool { mustRevalidate || requiresValidation }

    /// Several `Cache-Control` fields form one list.
    package init(_ fields: [HeaderField]) {
        for value in fields.values(of: "cache-control") { read(value) }
    }

    /// Reads the value of the field as the cache stores it; nil without the field.
    package init(text: String?) {
        if let text { read(text) }
    }

    private mutating func read(_ value: String) {
        for directive in Directive.list(value) {
            switch directive.name {
            case "no-store":
                hasNoStore = true
            case "must-understand":
                hasMustUnderstand = true
            case "no-cache":
                if !directive.namesFields { requiresValidation = true }
            case "must-revalidate":
                mustRevalidate = true
            case "immutable":
                isImmutable = true
            case "max-age":
                if let duration = directive.duration {
                    maxAge = min(maxAge ?? duration, duration)
                } else {
                    hasInvalidMaxAge = true
                }
            case "stale-while-revalidate":
                if let duration = directive.duration {
                    staleWhileRevalidate = min(staleWhileRevalidate ?? duration, duration)
                }
            default:
                break
            }
        }
    }

    /// A number of seconds, saturating at 2³¹; nil unless the text is one or more digits (§1.2.2).
    static func deltaSeconds(_ bytes: some Collection<UInt8>) -> Int64? {
        number(bytes, atMost: largestSeconds)
    }

    /// A number that saturates; nil unless the text is one or more digits. `most` is below 10¹⁷.
    static func number(_ bytes: some Collection<UInt8>, atMost most: Int64) -> Int64? {
        guard !bytes.isEmpty, bytes.allSatisfy(\.isDecimalDigit) else { return nil }
        return bytes.reduce(0) { min($0 * 10 + Int64($1 - 48), most) }
    }
}

private struct Directive {
    let name: String
    /// The token, or the content of the quoted string; nil without a well-formed one.
    let argument: [UInt8]?

    /// The argument as a number of seconds; nil if it is not a number.
    var duration: Duration? {
        argument.flatMap { CacheControl.deltaSeconds($0) }.map { .seconds($0) }
    }

    /// Whether the argument is a list of at least one field name and of nothing else.
    var namesFields: Bool {
        guard let argument else { return false }
        let members = FieldSyntax.members(of: FieldSyntax.text(argument))
        return !members.isEmpty && members.allSatisfy { FieldSyntax.isToken($0) }
    }

    /// Splits a list at the commas outside quoted strings; members without a name are left out.
    ///
    /// A quotation mark that is not closed, or does not follow an equals sign, quotes nothing.
    /// This reading of a broken value hides no directive.
    static func list(_ value: String) -> [Directive] {
        let bytes = Array(value.utf8)
        var result: [Directive] = []
        var start = 0
        var index = 0
        while index <= bytes.count {
            if index == bytes.count || bytes[index] == FieldSyntax.comma {
                if let directive = Directive(FieldSyntax.trimmed(bytes[start..<index])) {
                    result.append(directive)
                }
                start = index + 1
            } else if bytes[index] == FieldSyntax.quote, index > start,
                bytes[index - 1] == UInt8(ascii: "="), let end = endOfString(bytes[index...])
            {
                // Linear in total: only the last string of a value can lack its end.
                index = end
                continue
            }
            index += 1
        }
        return result
    }

    private init?(_ member: ArraySlice<UInt8>) {
        let name = member.prefix(while: \.isTokenByte)
        guard !name.isEmpty else { return nil }
        self.name = FieldSyntax.text(name).lowercased()
        let rest = member[name.endIndex...]
        let value = rest.dropFirst()
        if rest.first != UInt8(ascii: "=") {
            argument = nil
        } else if FieldSyntax.isToken(value) {
            argument = Array(value)
        } else if value.first == FieldSyntax.quote,
            Directive.endOfString(value) == value.endIndex
        {
            argument = Directive.unescaped(value.dropFirst().dropLast())
        } else {
            argument = nil
        }
    }

    /// The index after the closing quotation mark of the string that the bytes begin with.
    private static func endOfString(_ bytes: ArraySlice<UInt8>) -> Int? {
        var index = bytes.startIndex + 1
        while index < bytes.endIndex {
            switch bytes[index] {
            case FieldSyntax.quote: return index + 1
            case FieldSyntax.backslash: index += 2
            default: index += 1
            }
        }
        return nil
    }

    private static func unescaped(_ content: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        var isEscaped = false
        for byte in content {
            if byte == FieldSyntax.backslash, !isEscaped {
                isEscaped = true
            } else {
                result.append(byte)
                isEscaped = false
            }
        }
        return result
    }
}

/// An entity tag that can be sent back byte for byte (RFC 9110 §8.8.3).
struct EntityTag: Hashable, Sendable {
    let text: String
    let isWeak: Bool

    /// The quoted part, for weak comparison (RFC 9110 §8.8.3.2).
    var opaqueTag: Substring { isWeak ? text.dropFirst(2) : text[...] }

    /// Nil for a value that is not a single tag, or cannot be sent.
    ///
    /// Unquoted tags are accepted: origins that forget the quotation marks compare text. But `*`
    /// and anything that reads as a list would match more than its own response (RFC 9110 §13.1.2).
    init?(_ text: String) {
        guard Validator.isSendable(text) else { return nil }
        let isWeak = text.utf8.starts(with: "W/".utf8) || text.utf8.starts(with: "w/".utf8)
        let opaque = text.utf8.dropFirst(isWeak ? 2 : 0)
        let isQuoted =
            opaque.count >= 2 && opaque.first == FieldSyntax.quote
            && opaque.last == FieldSyntax.quote
        let inner = isQuoted ? opaque.dropFirst().dropLast() : opaque
        guard !inner.contains(FieldSyntax.quote) else { return nil }
        if !isQuoted {
            guard !opaque.isEmpty, !opaque.contains(FieldSyntax.comma),
                !opaque.elementsEqual("*".utf8)
            else { return nil }
        }
        self.text = text
        self.isWeak = isWeak
    }

    /// Compares bytes: strings would equate different compositions of a letter.
    func weaklyMatches(_ other: EntityTag) -> Bool {
        opaqueTag.utf8.elementsEqual(other.opaqueTag.utf8)
    }
}

enum Validator {
    /// Servers refuse field lines of some 8 KiB, so that a longer validator would make the URL
    /// permanently unreachable.
    static let largestBytes = 8192

    /// Whether the text is allowed in a field value (RFC 9110 §5.5) and has the received bytes.
    ///
    /// U+FFFD replaces bytes that were not UTF-8 and are lost.
    static func isSendable(_ text: String) -> Bool {
        guard !text.isEmpty, text.utf8.count <= largestBytes else { return false }
        return text.unicodeScalars.allSatisfy {
            $0 == "\t" || ($0.value >= 0x20 && $0.value != 0x7F && $0 != "\u{FFFD}")
        }
    }
}

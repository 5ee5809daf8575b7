/// The name of a variant in a run: `main` for the one that the plain flags describe, else the NAME
/// of `--variant NAME=SPEC`.
///
/// 1…64 bytes: ASCII letters and digits, `-`, `_` and `.`, beginning with a letter or digit. So a
/// name needs no quoting in a shell, a comma-separated list or JSON, and cannot be mistaken for a
/// flag. Case-sensitive.
///
/// Runs add `~2` and so on to the name of a later line's variant, see ``VariantSet/adding(_:)``.
package struct VariantName: Hashable, Sendable {
    package let text: String

    package static let maximumBytes = 64

    /// The variant that the plain flags describe; reserved.
    package static let main = VariantName(unchecked: "main")
    /// The variant of `--store-original`.
    package static let original = VariantName(unchecked: "original")

    package init?(_ text: String) {
        let parts = text.split(separator: "~", maxSplits: 1, omittingEmptySubsequences: false)
        let base = parts[0].utf8
        guard let first = base.first, first.isLetter || first.isDecimalDigit,
            base.count <= VariantName.maximumBytes, base.allSatisfy(VariantName.allows),
            parts.count == 1 || VariantName.isNumber(parts[1])
        else { return nil }
        self.text = text
    }

    /// Whether a run has numbered it, so that no flag or field may define it.
    package var isNumbered: Bool { text.utf8.contains(UInt8(ascii: "~")) }

    /// The name of another recipe's variant.
    func numbered(_ number: Int) -> VariantName {
        precondition(!isNumbered && number > 1, "the first variant has the plain name")
        return VariantName(unchecked: "\(text)~\(number)")
    }

    private static func isNumber(_ text: Substring) -> Bool {
        guard let number = Int(text), (2...VariantSet.maximumCount).contains(number) else {
            return false
        }
        return text == "\(number)"
    }

    private init(unchecked text: String) {
        self.text = text
    }

    private static func allows(_ byte: UInt8) -> Bool {
        byte.isLetter || byte.isDecimalDigit || byte == UInt8(ascii: "-")
            || byte == UInt8(ascii: "_") || byte == UInt8(ascii: ".")
    }
}

extension VariantName: CustomStringConvertible {
    package var description: String { text }
}

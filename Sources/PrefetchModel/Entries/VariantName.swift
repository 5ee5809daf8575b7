/// The name of a variant in a run: `main` for the one that the plain flags describe, else the NAME
/// of `--variant NAME=SPEC`.
///
/// 1…64 bytes: ASCII letters and digits, `-`, `_` and `.`, beginning with a letter or digit. So a
/// name needs no quoting in a shell, a comma-separated list or JSON, and cannot be mistaken for a
/// flag. Case-sensitive.
package struct VariantName: Hashable, Sendable {
    package let text: String

    package static let maximumBytes = 64

    /// The variant that the plain flags describe; reserved.
    package static let main = VariantName(unchecked: "main")
    /// The variant of `--store-original`.
    package static let original = VariantName(unchecked: "original")

    /// Returns nil for an invalid name.
    package init?(_ text: String) {
        guard let first = text.utf8.first, first.isLetter || first.isDecimalDigit,
            text.utf8.count <= VariantName.maximumBytes, text.utf8.allSatisfy(VariantName.allows)
        else { return nil }
        self.text = text
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

/// What a run calls one of the variants that it keeps of each image: `main` for the one that the
/// plain flags describe, else the NAME of `--variant NAME=SPEC`.
///
/// 1…64 bytes: letters and digits of ASCII, `-`, `_` and `.`, the first of them a letter or digit. So a
/// name needs no quoting in a shell, in a list with commas or in JSON, and is never taken for a flag.
/// Capitals and small letters differ.
package struct VariantName: Hashable, Sendable {
    package let text: String

    package static let maximumBytes = 64

    /// What the plain flags describe; no other variant can have this name.
    package static let main = VariantName(unchecked: "main")
    /// What `--store-original` keeps.
    package static let original = VariantName(unchecked: "original")

    /// Returns nil for what is no name.
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

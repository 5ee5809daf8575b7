package import PrefetchModel

/// Directives of the field `X-Robots-Tag` that exclude an image, such as `noai`.
///
/// The field is a comma-separated list of directives. A name in front, as in
/// `otherbot: noindex, nofollow`, limits the rest of the field to that client.
package struct RobotsDirectives: Hashable, Sendable {
    /// In lower case, and in alphabetical order.
    package let names: [String]

    package static let none = RobotsDirectives(names: [])

    private static let client = "prefetch"
    /// Directives with a value; their colon does not follow a client's name.
    private static let namesWithValue: Set = [
        "unavailable_after", "max-snippet", "max-image-preview", "max-video-preview",
    ]

    private init(names: [String]) {
        self.names = names
    }

    /// Parses names separated by commas; nil if one is empty or has other characters than letters,
    /// digits, `-` and `_`.
    package init?(_ text: String) {
        let names = text.lowercased().split(separator: ",", omittingEmptySubsequences: false)
        let areValid = names.allSatisfy { name in
            !name.isEmpty
                && name.utf8.allSatisfy {
                    $0.isLetter || $0.isDecimalDigit || $0 == UInt8(ascii: "-")
                        || $0 == UInt8(ascii: "_")
                }
        }
        guard areValid else { return nil }
        self.init(names: Set(names.map { String($0) }).sorted())
    }

    package func first(in fields: [HeaderField]) -> String? {
        guard !names.isEmpty else { return nil }
        for value in fields.values(of: "x-robots-tag") {
            var isForUs = true
            for member in FieldSyntax.members(of: value.lowercased()) {
                var directive = member
                if let colon = member.firstIndex(of: UInt8(ascii: ":")) {
                    let name = FieldSyntax.text(FieldSyntax.trimmed(member[..<colon]))
                    // A time after a date's comma is no name.
                    guard FieldSyntax.isToken(name.utf8),
                        !RobotsDirectives.namesWithValue.contains(name)
                    else { continue }
                    isForUs = name == RobotsDirectives.client || name == "*"
                    directive = FieldSyntax.trimmed(member[(colon + 1)...])
                }
                let text = FieldSyntax.text(directive)
                if isForUs, names.contains(text) { return text }
            }
        }
        return nil
    }
}

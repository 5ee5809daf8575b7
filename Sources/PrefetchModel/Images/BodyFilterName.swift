/// The name of a filter that turns bodies into images, as recipes have it: `base64`, or a digest of
/// the command, which may hold secrets.
package struct BodyFilterName: Hashable, Sendable, CustomStringConvertible {
    package let description: String

    package static let base64 = BodyFilterName(unchecked: "base64")

    private init(unchecked text: String) {
        description = text
    }

    /// Takes the name in a recipe; nil for a text that isn't made of letters, digits and `-`.
    package init?(_ text: some StringProtocol) {
        let isAllowed: (UInt8) -> Bool = {
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) || $0.isDecimalDigit
                || $0 == UInt8(ascii: "-")
        }
        guard !text.isEmpty, text.utf8.allSatisfy(isAllowed) else { return nil }
        description = String(text)
    }
}

/// A choice of a filter, in place of the run's.
package enum BodyFiltering: Hashable, Sendable {
    case none
    case filtered(BodyFilterName)

    var name: BodyFilterName? {
        switch self {
        case .none: nil
        case .filtered(let name): name
        }
    }
}

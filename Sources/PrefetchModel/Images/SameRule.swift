/// The meaning of ``Recipe/Encoding/same`` for sources of one format.
package struct SameRule: Hashable, Sendable {
    /// An item of ``Recipe/canonicalText``, by its first characters.
    package enum Item: String, Sendable {
        case quality = "q="
        case background = "background="
        case maximumBytes = "max="
        case effort = "effort="
        case animation = "animated="
        case keepsLarger = "larger"
    }

    /// Whether the source's own data is kept, without the metadata that the recipe strips.
    package let keepsData: Bool
    /// The format of a result that is encoded from pixels.
    package let encoded: EncodedImageFormat
    /// The items without effect on the result.
    package let irrelevant: [Item]

    /// The source is encoded again.
    package static func encoded(
        as format: EncodedImageFormat, ignoring irrelevant: [Item]
    ) -> SameRule {
        SameRule(keepsData: false, encoded: format, irrelevant: irrelevant)
    }

    /// The source's data is kept; results that show other pixels are encoded.
    package static func kept(orEncodedAs format: EncodedImageFormat) -> SameRule {
        SameRule(
            keepsData: true, encoded: format,
            irrelevant: [.quality, .maximumBytes, .effort, .keepsLarger])
    }
}

/// The rule of each decoded format, by the format's raw value.
package typealias SameRules = [String: SameRule]

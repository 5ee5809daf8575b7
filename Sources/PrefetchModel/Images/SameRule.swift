/// The meaning of ``Recipe/Encoding/same`` for sources of one format.
package struct SameRule: Hashable, Sendable {
    /// An item of ``Recipe/canonicalText``, by its first characters.
    package enum RecipeItem: String, Sendable {
        case quality = "q="
        case background = "background="
        case maximumBytes = "max="
        case effort = "effort="
        case animation = "animated="
        case keepsLarger = "larger"
    }

    /// The sources that keep their own data, without the metadata that the recipe strips.
    package enum Keeping: Sendable {
        case never
        /// Animations, lossless pictures, and lossy ones of no higher quality than the recipe's.
        case unlessFiner
        case always
    }

    package let keeping: Keeping
    package let encoded: EncodedImageFormat
    package let irrelevant: [RecipeItem]

    /// The source is encoded again.
    package static func encoded(
        as format: EncodedImageFormat, ignoring irrelevant: [RecipeItem]
    ) -> SameRule {
        SameRule(keeping: .never, encoded: format, irrelevant: irrelevant)
    }

    /// A lossy format; its data is kept if encoding it again would gain nothing.
    package static func keptUnlessFiner(encodedAs format: EncodedImageFormat) -> SameRule {
        SameRule(keeping: .unlessFiner, encoded: format, irrelevant: [])
    }

    /// The source's data is kept; results that show other pixels are encoded.
    package static func kept(orEncodedAs format: EncodedImageFormat) -> SameRule {
        SameRule(
            keeping: .always, encoded: format,
            irrelevant: [.quality, .maximumBytes, .effort, .keepsLarger])
    }
}

/// The rule of each decoded format, by the format's raw value.
package typealias SameRules = [String: SameRule]

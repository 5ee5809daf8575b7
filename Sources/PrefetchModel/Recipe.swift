/// What is stored of a fetched image: everything that changes the stored bytes, and nothing else.
///
/// The canonical text is the `recipe` column of the cache and is compared byte by byte, so a
/// change of its meaning needs a new text. Forms: `original` · `same;q=85;strip=safe` ·
/// `jpeg;q=85;strip=safe` · `png;strip=safe`, each but `original` with `;larger` appended when a
/// re-encoding larger than its source is kept.
package struct Recipe: Hashable, Sendable {
    package enum Encoding: String, CaseIterable, Sendable {
        /// JPEG stays JPEG, PNG stays PNG.
        case same
        case jpeg
        case png
        /// The source's bytes as they came, after ``SourceCheck``.
        case original
    }

    package let encoding: Encoding
    /// JPEG quality in libjpeg's scale, 1…100.
    package let quality: Int
    /// Whether a re-encoding that is not smaller than its source is kept all the same.
    package let keepsLarger: Bool

    package static let defaultQuality = 85

    /// - Precondition: `quality` is within 1…100.
    package init(
        encoding: Encoding = .same, quality: Int = Recipe.defaultQuality, keepsLarger: Bool = false
    ) {
        precondition((1...100).contains(quality), "JPEG quality is within 1…100")
        self.encoding = encoding
        self.quality = quality
        self.keepsLarger = keepsLarger
    }

    package var canonicalText: String {
        let suffix = keepsLarger ? ";larger" : ""
        return switch encoding {
        case .original: "original"
        case .png: "png;strip=safe\(suffix)"
        case .same, .jpeg: "\(encoding.rawValue);q=\(quality);strip=safe\(suffix)"
        }
    }
}

/// How a source is looked at before it is stored as it came; every other recipe decodes it anyway.
///
/// No part of the recipe: the stored bytes are the same.
package enum SourceCheck: String, CaseIterable, Sendable {
    /// Decoded whole: what is stored can be shown.
    case decode
    /// Followed from segment to segment: what is stored is whole, but a JPEG's data may be
    /// damaged inside.
    case structure
}

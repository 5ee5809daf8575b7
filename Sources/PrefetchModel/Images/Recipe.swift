/// What is stored of a fetched image: everything that changes the stored bytes, and nothing else.
///
/// The canonical text is the `recipe` column of the cache and is compared byte by byte, so a
/// change of its meaning needs a new text. Forms: `original` · `same;q=85;strip=safe` ·
/// `jpeg;q=85;strip=safe` · `png;strip=safe`, and `webp`, `avif` and `auto` as `jpeg`; each but `original` with
/// `;larger` appended when a re-encoding larger than its source is kept.
///
/// Between `strip` and `larger` stands, in this order and only where it is not the default and
/// the format has to do with it: `formats=jpeg+webp` (`auto`) · `background=rrggbb` (`jpeg`, `auto`) · `max=n` (all but
/// `png` and `auto`) · `effort=name` (all but `jpeg`) · `animated=name` · the ``transformations`` in their order, as
/// in `resize=800x600;blur=2` · `linear`.
package struct Recipe: Hashable, Sendable {
    package enum Encoding: String, CaseIterable, Sendable {
        /// JPEG stays JPEG and PNG stays PNG; WebP, AVIF and GIF keep their data, without the metadata that
        /// ``Recipe/stripping`` names; BMP and icons, which are not encoded, become PNG.
        case same
        case jpeg
        case png
        case webp
        case avif
        /// The smallest of ``Recipe/allowedFormats`` at one quality.
        case auto
        /// The source's bytes as they came, after ``SourceCheck``.
        case original
    }

    /// What happens to all that a file holds beside its pixels.
    package enum Stripping: String, CaseIterable, Sendable {
        /// Colour profiles and colour spaces go, too: the pixels are taken for sRGB.
        case all
        /// What changes how the pixels look stays: an ICC profile that is not sRGB's, a PNG's
        /// gamma and colour space. The rest goes, positions with it. Pixels are turned upright,
        /// or the orientation is all that is left of EXIF.
        case safe
        /// Everything stays, the orientation as a tag.
        case none
    }

    /// What happens to pictures of several frames. Of no effect on ``Encoding/original``.
    package enum Animation: String, CaseIterable, Sendable {
        /// They stay what they are, whatever the encoding, with the metadata that ``Recipe/stripping`` leaves.
        case keep
        /// The first frame is the picture; of a GIF's `same` makes a PNG.
        case first
        /// They fail.
        case refuse
    }

    package var encoding: Encoding
    /// 1…100, in libjpeg's scale; other formats take what looks alike.
    package var quality: Int {
        didSet { Recipe.check(quality) }
    }
    /// Whether a re-encoding that is not smaller than its source is kept all the same.
    package var keepsLarger: Bool
    /// Of no effect on ``Encoding/original``.
    package var stripping = Stripping.safe
    /// What shows through transparent pixels in a JPEG.
    package var background = RGBColor.white

    /// The size that what loses detail gives up quality for, in bytes, above 0; nil for none. Nothing gets a quality
    /// below 30 for it, and a PNG keeps its size, as does what ``Encoding/auto`` makes.
    package var maximumStoredBytes: Int?

    package var effort = EncodingEffort.balanced

    /// What ``Encoding/auto`` picks from; one or more.
    package var allowedFormats = Recipe.defaultFormats

    package var animation = Animation.keep
    /// Of no effect on ``Encoding/original``. Where they change the picture, what is made of them is stored at any size.
    package var transformations: [Transformation] = []
    /// Whether a picture is resized in linear light, and not in its samples' own encoding.
    package var isLinear = false

    package static let defaultQuality = 85
    package static let defaultFormats: Set<EncodedImageFormat> = [.jpeg, .png, .webp]

    /// - Precondition: `quality` is within 1…100.
    package init(
        encoding: Encoding = .same, quality: Int = Recipe.defaultQuality, keepsLarger: Bool = false
    ) {
        Recipe.check(quality)
        self.encoding = encoding
        self.quality = quality
        self.keepsLarger = keepsLarger
    }

    private static func check(_ quality: Int) {
        precondition((1...100).contains(quality), "quality is within 1…100")
    }

    package var canonicalText: String {
        var text = encoding.rawValue
        if encoding == .original { return text }
        if encoding != .png { text += ";q=\(quality)" }
        text += ";strip=\(stripping.rawValue)"
        if encoding == .auto, allowedFormats != Recipe.defaultFormats {
            text += ";formats=\(EncodedImageFormat.text(of: allowedFormats))"
        }
        if background != .white, showsBackground { text += ";background=\(background)" }
        if encoding != .png, encoding != .auto, let maximumStoredBytes {
            text += ";max=\(maximumStoredBytes)"
        }
        if encoding != .jpeg, effort != .balanced { text += ";effort=\(effort.rawValue)" }
        if animation != .keep { text += ";animated=\(animation.rawValue)" }
        for transformation in transformations { text += ";\(transformation)" }
        if isLinear, resizes { text += ";linear" }
        if keepsLarger { text += ";larger" }
        return text
    }
}

extension Recipe {
    /// Whether any step makes the picture another size.
    package var resizes: Bool {
        transformations.contains { if case .resize = $0 { true } else { false } }
    }

    /// Whether what is transparent may be laid over ``background``.
    package var showsBackground: Bool {
        switch encoding {
        case .jpeg: true
        case .auto: allowedFormats.contains(.jpeg)
        case .same: addsAlpha
        case .png, .webp, .avif, .original: false
        }
    }

    /// Whether something may be transparent that is not so in the source.
    package var addsAlpha: Bool { transformations.contains(where: \.addsAlpha) }

    /// Scales what has more pixels down to so many, before every other step.
    package mutating func scaleDown(toPixels count: Int) {
        transformations.insert(.resize(.pixels(count)), at: 0)
    }

    /// Takes another size in place of the last one, or behind all other steps where there is none.
    package mutating func replaceSize(with geometry: ResizeGeometry) {
        let last = transformations.lastIndex { step in
            switch step {
            case .resize(.pixels): false
            case .resize: true
            case .crop, .rotate, .flip, .blur, .tint, .round: false
            }
        }
        if let last {
            transformations[last] = .resize(geometry)
        } else {
            transformations.append(.resize(geometry))
        }
    }

    /// The same without any change of the picture.
    package var untransformed: Recipe {
        var recipe = self
        recipe.transformations = []
        recipe.isLinear = false
        return recipe
    }

    /// What a recipe comes to for a source of that format: recipes with the same result here make the
    /// same bytes of it. (`same` of a JPEG is `jpeg`, and a PNG has no quality.)
    ///
    /// `text` is a ``canonicalText``; one of another form is its own result.
    package static func effectiveText(of text: String, forSource format: String) -> String {
        var parts = text.split(separator: ";")
        guard let encoding = parts.first.flatMap({ Encoding(rawValue: String($0)) }),
            let source = ImageFormat(rawValue: format)
        else { return text }
        // What `same` is, and what has nothing to do with that.
        let (same, irrelevant): (Encoding, [String])
        switch source {
        case .jpeg: (same, irrelevant) = (.jpeg, ["background=", "effort=", "animated="])
        case .png: (same, irrelevant) = (.png, ["q=", "max="])
        // Across formats the result is always made.
        case .bmp: (same, irrelevant) = (.png, ["q=", "max=", "larger", "animated="])
        // It may hold a PNG already.
        case .icon: (same, irrelevant) = (.png, ["q=", "max=", "animated="])
        // The data stays as it is; but of an animation's first frame a PNG is made.
        case .webp, .gif, .avif:
            guard !parts.contains("animated=first") else { return text }
            (same, irrelevant) = (.same, ["q=", "max=", "effort=", "larger"])
        case .tiff, .heif, .jpegXL, .jpeg2000, .svg, .pdf: return text
        }
        guard encoding == .same || encoding == same else { return text }
        // Rounded corners show the background, and what is transformed is made at any size: as written.
        guard
            !parts.contains(where: { part in
                Transformation.Name.allCases.contains { part.hasPrefix($0.rawValue + "=") }
            })
        else { return text }
        parts[0] = Substring(same.rawValue)
        parts.removeAll { part in irrelevant.contains { part.hasPrefix($0) } }
        return parts.joined(separator: ";")
    }
}

/// How much time is given to making a file small. A PNG's pixels are the same.
package enum EncodingEffort: String, CaseIterable, Sendable {
    case fast
    case balanced
    case small
}

/// A format that images are encoded in.
package enum EncodedImageFormat: String, CaseIterable, Sendable {
    case jpeg
    case png
    case webp
    case avif

    /// In the order of the cases: `jpeg+webp`.
    package static func text(of formats: Set<EncodedImageFormat>) -> String {
        allCases.filter(formats.contains).map(\.rawValue).joined(separator: "+")
    }

    /// Reads names with a separator between them; nil where one is none, or stands twice, and without any.
    package static func formats(
        in text: String, separator: Character
    ) -> Set<EncodedImageFormat>? {
        var result: Set<EncodedImageFormat> = []
        for part in text.split(separator: separator, omittingEmptySubsequences: false) {
            guard let format = EncodedImageFormat(rawValue: String(part)),
                result.insert(format).inserted
            else { return nil }
        }
        return result
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

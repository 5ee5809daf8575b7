/// The complete description of a stored variant: every setting that affects its bytes, and no
/// other.
///
/// The canonical text is the `recipe` column of the cache and is compared byte by byte. So a change
/// of its meaning needs a new text. Forms: `original` · `same;q=85;strip=safe` ·
/// `jpeg;q=85;strip=safe` · `png;strip=safe`; `webp`, `avif` and `auto` as `jpeg`. `;larger` is
/// appended, except to `original`, if re-encodings larger than their source are kept. At the end
/// stands `;filter=name` if a filter turned the body into the source, also for `original`.
///
/// Between `strip` and `larger` stand non-default settings that affect the format, in this order:
/// `formats=jpeg+webp` (`auto`) · `background=rrggbb` (`jpeg`, `auto`) · `max=n` (all but `png` and
/// `auto`) · `effort=name` (all but `jpeg`) · `animated=name` · the ``transformations`` in order,
/// as in `resize=800x600;blur=2` · `linear`.
package struct Recipe: Hashable, Sendable {
    package enum Encoding: String, CaseIterable, Sendable {
        /// The source's format, encoded at ``Recipe/quality`` if it is lossy. GIFs, animations and
        /// lossless WebP and AVIF keep their data, without the metadata that ``Recipe/stripping``
        /// removes. BMP and icons, which have no encoder, become PNG.
        case same
        case jpeg
        case png
        case webp
        case avif
        /// The smallest of ``Recipe/allowedFormats`` at one quality.
        case auto
        /// The source's unchanged bytes, after ``SourceCheck``.
        case original

        /// The format that every source is encoded in; nil for `same`, `auto` and `original`.
        package var format: EncodedImageFormat? { EncodedImageFormat(rawValue: rawValue) }
    }

    package enum Stripping: String, CaseIterable, Sendable {
        /// Removes all, including colour profiles and colour spaces: pixels are treated as sRGB.
        case all
        /// Keeps metadata that affects the appearance: an ICC profile other than sRGB's, a PNG's
        /// gamma and colour space. Removes the rest, including positions. The EXIF orientation is
        /// applied, or is the only EXIF tag that remains.
        case safe
        /// Keeps all. Where the source's rows are kept, so is the orientation's tag.
        case none
    }

    /// The treatment of animations. Ignored by ``Encoding/original``.
    package enum Animation: String, CaseIterable, Sendable {
        /// Keeps all frames. A format without frames keeps the data, or takes the first frame of a
        /// transformed animation.
        case keep
        /// Uses the first frame; `same` makes a PNG of a GIF's.
        case first
        case refuse
    }

    /// Steps that save memory, each with those before it.
    package enum Economy: Int, CaseIterable, Comparable, Sendable {
        case none
        /// Larger pictures are not tried lossless, since they would only grow.
        case lossyData
        /// No encoder makes a trial that takes more memory than its result.
        case withoutTrials
        /// Lossy data is kept instead of encoded again.
        case keepingData

        package static func < (left: Economy, right: Economy) -> Bool {
            left.rawValue < right.rawValue
        }
    }

    package var encoding: Encoding
    /// 1…100 on libjpeg's scale; other formats use a visually equivalent setting.
    package var quality: Int {
        didSet { Recipe.check(quality) }
    }
    /// How much memory the encoders may save at the cost of a smaller or better result. Not part of
    /// the text: it follows from the source and the memory of the run.
    package var economy = Economy.none
    /// Whether to keep a re-encoding that is not smaller than its source.
    package var keepsLarger: Bool
    /// Ignored by ``Encoding/original``.
    package var stripping = Stripping.safe
    /// The colour behind transparent pixels in a JPEG.
    package var background = RGBColor.white

    /// The target size in bytes for lossy formats, above 0; nil for none. Reduces the quality, down
    /// to 30. Ignored by PNG and ``Encoding/auto``.
    package var maximumStoredBytes: Int?

    package var effort = EncodingEffort.balanced

    /// The candidates of ``Encoding/auto``; at least one.
    package var allowedFormats = Recipe.defaultFormats

    package var animation = Animation.keep
    /// Ignored by ``Encoding/original``. If they change the picture, the result is stored even if
    /// it is larger.
    package var transformations: [Transformation] = []
    /// Whether to resize in linear light instead of in the samples' encoding.
    package var isLinear = false
    /// The filter that turned the body into the source; nil for none.
    package var bodyFilter: BodyFilterName?

    package static let defaultQuality = 85
    package static let defaultFormats: Set<EncodedImageFormat> = [.jpeg, .png, .webp]

    package init(
        encoding: Encoding = .same, quality: Int = Recipe.defaultQuality, keepsLarger: Bool = false
    ) {
        Recipe.check(quality)
        self.encoding = encoding
        self.quality = quality
        self.keepsLarger = keepsLarger
    }

    /// The recipe of stored originals that other variants can be made of.
    package static func original(filteredBy filter: BodyFilterName?) -> Recipe {
        var recipe = Recipe(encoding: .original)
        recipe.bodyFilter = filter
        return recipe
    }

    private static func check(_ quality: Int) {
        precondition((1...100).contains(quality), "quality is within 1…100")
    }

    package var canonicalText: String {
        let settings = encoding == .original ? encoding.rawValue : encodingText
        return bodyFilter.map { "\(settings)\(Recipe.filterItem)\($0)" } ?? settings
    }

    private static let filterItem = ";filter="

    /// The canonical text without the filter, of a recipe that encodes.
    private var encodingText: String {
        var text = encoding.rawValue
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
    package var resizes: Bool {
        transformations.contains { if case .resize = $0 { true } else { false } }
    }

    /// Whether two canonical texts name the same filter of bodies, or none.
    package static func haveSameFilter(_ first: String, _ second: String) -> Bool {
        first.firstRange(of: filterItem).map { first[$0.upperBound...] }
            == second.firstRange(of: filterItem).map { second[$0.upperBound...] }
    }

    /// Whether transparent pixels may be composited over ``background``.
    package var showsBackground: Bool {
        switch encoding {
        case .jpeg: true
        case .auto: allowedFormats.contains(.jpeg)
        case .same: addsAlpha
        default: false
        }
    }

    package var addsAlpha: Bool { transformations.contains(where: \.addsAlpha) }

    /// Adds a first step that scales larger pictures down to this number of pixels.
    package mutating func scaleDown(toPixels count: Int) {
        transformations.insert(.resize(.pixels(count)), at: 0)
    }

    /// Replaces the last size step, or appends one.
    package mutating func replaceSize(with geometry: ResizeGeometry) {
        let last = transformations.lastIndex { step in
            switch step {
            case .resize(.pixels): false
            case .resize: true
            default: false
            }
        }
        if let last {
            transformations[last] = .resize(geometry)
        } else {
            transformations.append(.resize(geometry))
        }
    }

    /// Replaces the last crop, or inserts one as the first step after ``scaleDown(toPixels:)``.
    package mutating func replaceCrop(with geometry: CropGeometry) {
        let last = transformations.lastIndex { if case .crop = $0 { true } else { false } }
        if let last {
            transformations[last] = .crop(geometry)
        } else {
            transformations.insert(.crop(geometry), at: limitsPixels ? 1 : 0)
        }
    }

    /// Replaces all steps but ``scaleDown(toPixels:)``.
    package mutating func replaceSteps(with steps: [Transformation]) {
        transformations.replaceSubrange((limitsPixels ? 1 : 0)..., with: steps)
    }

    private var limitsPixels: Bool {
        if case .resize(.pixels)? = transformations.first { true } else { false }
    }

    package var untransformed: Recipe {
        var recipe = self
        recipe.transformations = []
        recipe.isLinear = false
        return recipe
    }

    /// The effective recipe for a source format: recipes with equal results produce the same bytes.
    /// For example, `same` of a JPEG is `jpeg`, and a PNG has no quality.
    ///
    /// `text` is a ``canonicalText``; any other form is returned unchanged. `rule` is the source
    /// format's rule, nil for a format that is not decoded.
    package static func effectiveText(of text: String, under rule: SameRule?) -> String {
        var parts = text.split(separator: ";")
        guard let rule, let encoding = parts.first.flatMap({ Encoding(rawValue: String($0)) })
        else { return text }
        // The first frame of an animation is encoded.
        let mayKeep = rule.keeping != .never
        if mayKeep, parts.contains("animated=first") { return text }
        let same = mayKeep ? Encoding.same.rawValue : rule.encoded.rawValue
        guard encoding == .same || encoding.rawValue == same else { return text }
        // Rounded corners show the background, and transformed images are stored at any size.
        guard
            !parts.contains(where: { Transformation.StepName(ofItem: $0) != nil })
        else { return text }
        parts[0] = Substring(same)
        parts.removeAll { part in rule.irrelevant.contains { part.hasPrefix($0.rawValue) } }
        return parts.joined(separator: ";")
    }
}

/// The time spent on reducing the file size. A PNG's pixels do not change.
package enum EncodingEffort: String, CaseIterable, Sendable {
    case fast
    case balanced
    case small
}

package enum EncodedImageFormat: String, CaseIterable, Sendable {
    case jpeg
    case png
    case webp
    case avif

    /// The names in the order of the cases: `jpeg+webp`.
    package static func text(of formats: Set<EncodedImageFormat>) -> String {
        allCases.filter(formats.contains).map(\.rawValue).joined(separator: "+")
    }

    /// Parses names with a separator; nil for an empty list, an unknown name or a repeated one.
    package static func formats(in text: String, separator: Character) -> Set<EncodedImageFormat>? {
        var result: Set<EncodedImageFormat> = []
        for part in text.split(separator: separator, omittingEmptySubsequences: false) {
            guard let format = EncodedImageFormat(rawValue: String(part)),
                result.insert(format).inserted
            else { return nil }
        }
        return result
    }
}

/// The check of a source before its bytes are stored unchanged; all other recipes decode it anyway.
///
/// Not part of the recipe, since it does not affect the stored bytes.
package enum SourceCheck: String, CaseIterable, Sendable {
    /// A complete decode, so stored images can be shown.
    case decode
    /// A walk over the segments: stored files are complete, but a JPEG's compressed data may be
    /// damaged.
    case structure
}

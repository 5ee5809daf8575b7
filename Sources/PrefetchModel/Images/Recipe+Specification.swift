/// The SPEC of `--variant NAME=SPEC`: a comma-separated list, in any order and each item once, of
///
/// - one format, a bare word: `same` (the default), `jpeg`, `png`, `webp`, `avif`, `auto` or
///   `original`;
/// - `q=N`: quality, 1…100; for all formats but `png` and `original`;
/// - `strip=safe`, `all` or `none`: for all formats but `original`;
/// - `allow-formats=jpeg+webp`: the candidates of `auto`, of `jpeg`, `png`, `webp` and `avif`; for
///   `auto`;
/// - `background=COLOUR`: `#rgb`, `#rrggbb` or a basic name of CSS; for `jpeg` and `auto`;
/// - `max-bytes=SIZE`: at least 1, in the form of size flags; for `same`, `jpeg`, `webp` and
///   `avif`;
/// - `effort=fast`, `balanced` or `small`: for all formats but `jpeg` and `original`;
/// - `animated=keep`, `first` or `refuse`: for all formats but `original`;
/// - `keep-larger`: for all formats but `original`;
/// - a size like `256x256` or `resize=256x256^`, and the other steps of ``Transformation``, each
///   any number of times: for all formats but `original`. Steps are applied in the given order; all
///   other items may stand anywhere;
/// - `linear`: together with a size.
///
/// A missing item has the plain flag's default, not the run's value of that flag, which describes
/// `main`. So the same SPEC means the same in every run, and another `--quality` for `main` does
/// not re-encode other variants.
///
/// An item without effect on the format is rejected, although the plain flags accept it. A script
/// may pass `--quality` with every `--encode`, but `png,q=80` is probably a mistake.
extension Recipe {
    /// Repeats no part of the text.
    package static let overlayInList = UserError(
        .usage,
        "'overlay=' is for --transform and --variant, since lists open no files; "
            + "'variants=' selects such a variant")

    /// Reads the file of an overlay and returns its digest.
    package typealias OverlayReader = (_ file: String) throws(UserError) -> ContentDigest

    /// The reader for lists, which may be written by others and open no files.
    package static func refuseOverlay(_ file: String) throws(UserError) -> ContentDigest {
        throw overlayInList
    }

    /// Parses a SPEC.
    ///
    /// - Throws: For an item that is empty, unknown, repeated, without effect or has an invalid
    ///   value, for two formats, and the reader's error.
    package init(
        specification text: String, overlay: OverlayReader = refuseOverlay
    ) throws(UserError) {
        var recipe = Recipe()
        var encoding: Encoding?
        var given: [SpecificationSetting] = []
        var transforms = false
        for item in Recipe.items(text) {
            let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let (name, value) = (String(parts[0]), parts.count > 1 ? String(parts[1]) : nil)
            if let steps = try Recipe.steps(name, value, overlay) {
                recipe.transformations += steps
                transforms = true
            } else if let setting = SpecificationSetting(rawValue: name) {
                guard !given.contains(setting) else { throw Recipe.repeated(setting.shown) }
                given.append(setting)
                guard setting.set(value, of: &recipe) else { throw setting.mistake(in: value) }
            } else if value == nil, let format = Encoding(rawValue: name) {
                guard encoding != format else { throw Recipe.repeated(name) }
                if let encoding {
                    throw given.last == .formats
                        ? Recipe.formatsWithComma(format)
                        : UserError(.usage, "'\(encoding)' and '\(format)' are both formats")
                }
                encoding = format
            } else {
                throw Recipe.unknown(item, name: name)
            }
        }
        recipe.encoding = encoding ?? recipe.encoding
        if recipe.encoding == .original, transforms {
            throw UserError(
                .usage,
                "'original' is the bytes as they came, so no size and no other step has an effect on it"
            )
        }
        if let idle = given.first(where: { !$0.matters(to: recipe) }) {
            throw idle == .isLinear && recipe.encoding != .original
                ? UserError(.usage, "'linear' is about resizing, and no size is given")
                : Recipe.withoutEffect(idle, on: recipe.encoding)
        }
        self = recipe
    }

    /// Parses a list of steps without other items.
    ///
    /// - Throws: For an item that is empty, not a step, or has an invalid value, and the reader's
    ///   error.
    package static func steps(
        in text: String, overlay: OverlayReader = refuseOverlay
    ) throws(UserError) -> [Transformation] {
        var result: [Transformation] = []
        for item in items(text) {
            let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard
                let steps = try steps(
                    String(parts[0]), parts.count > 1 ? String(parts[1]) : nil, overlay)
            else { throw noStep(item) }
            result += steps
        }
        return result
    }

    /// The mistake of a value of a plain flag that has an item in a SPEC: `takes 1 to 100`. Nil for
    /// a value of this one item, so joined items keep their meaning. Overlays are allowed, and not
    /// read.
    package static func mistake(in value: String, ofFlag flag: String) -> String? {
        switch flag {
        case "encode":
            return Encoding(rawValue: value) == nil
                ? "takes \(Encoding.allCases.map(\.rawValue).listed(with: "or"))" : nil
        case "resize":
            return ResizeGeometry(text: value) == nil
                ? "takes \(Transformation.StepName.resize.form)" : nil
        case "transform":
            do {
                _ = try steps(in: value) { _ in .zero }
                return nil
            } catch {
                return "has a mistake: \(error.message)"
            }
        default:
            var recipe = Recipe()
            guard let setting = SpecificationSetting.allCases.first(where: { $0.flag == flag })
            else { return nil }
            let isRight = setting.set(itemValue(value, ofFlag: flag), of: &recipe)
            return isRight ? nil : "takes \(setting.form)"
        }
    }

    /// The formats of `allow-formats` have commas between them in a flag, and + in a SPEC.
    private static func itemValue(_ value: String, ofFlag flag: String) -> String {
        flag == SpecificationSetting.formats.flag ? value.replacing(",", with: "+") : value
    }

    /// The item of a SPEC that means the same as a plain flag, which is named without hyphens; nil
    /// if there is none. `value` is nil for a switch, else one that ``check(_:ofFlag:)`` accepts.
    package static func specificationItem(flag: String, value: String?) -> String? {
        switch flag {
        case "encode", "transform": return value
        case "resize": return value.map { "resize=\($0)" }
        default:
            guard let setting = SpecificationSetting.allCases.first(where: { $0.flag == flag })
            else { return nil }
            return value.map { setting.shown + itemValue($0, ofFlag: flag) } ?? setting.rawValue
        }
    }

    /// Splits a list at its commas, except at those within a value: `border=4,#fff` and
    /// `round=8:tl,tr`.
    private static func items(_ text: String) -> [String] {
        var items: [String] = []
        // The continuations that the last item still takes.
        var (colours, corners) = (0, 0)
        for item in text.split(separator: ",", omittingEmptySubsequences: false) {
            if colours > 0 && (item.hasPrefix("#") || RGBColor.isName(item)) {
                colours -= 1
                items[items.count - 1] += "," + item
            } else if corners > 0 && Corners.isName(item) {
                corners -= 1
                items[items.count - 1] += "," + item
            } else {
                let name = Transformation.StepName(ofItem: item)
                colours = name == .border || name == .rotate ? 1 : 0
                corners = name == .round && item.contains(":") ? 3 : 0
                items.append(String(item))
            }
        }
        return items
    }

    private static func steps(
        _ name: String, _ value: String?, _ overlay: OverlayReader
    ) throws(UserError) -> [Transformation]? {
        guard let value else {
            if ResizeGeometry.isLikely(name) {
                guard let geometry = ResizeGeometry(text: name) else {
                    throw UserError(
                        .usage, "'\(name)' is not \(Transformation.StepName.resize.form)")
                }
                return [.resize(geometry)]
            }
            guard let step = Transformation.StepName(rawValue: name) else { return nil }
            if let steps = Transformation.steps(step, nil) { return steps }
            throw UserError(.usage, "'\(step.shown)' needs \(step.form)")
        }
        guard let step = Transformation.StepName(rawValue: name) else { return nil }
        if step == .overlay, let (file, gravity) = Transformation.overlayParts(value) {
            return [.overlay(try overlay(file), gravity)]
        }
        guard step != .overlay, let steps = Transformation.steps(step, value) else {
            throw UserError(.usage, "'\(step.shown)' takes \(step.form), not '\(value)'")
        }
        return steps
    }

    /// The items other than formats.
    enum SpecificationSetting: String, CaseIterable {
        case quality = "q"
        case stripping = "strip"
        case formats = "allow-formats"
        case background
        case maximumBytes = "max-bytes"
        case effort
        case animated
        case keepsLarger = "keep-larger"
        case isLinear = "linear"
        case scaleDownPixels = "scale-down-pixels"

        /// Takes the name in a ``Recipe/canonicalText``.
        init?(canonicalName name: String) {
            switch name {
            case "formats": self = .formats
            case "max": self = .maximumBytes
            case "larger": self = .keepsLarger
            default: self.init(rawValue: name)
            }
        }

        var takesValue: Bool { self != .keepsLarger && self != .isLinear }

        /// The equivalent plain flag, without its hyphens.
        var flag: String {
            switch self {
            case .quality: "quality"
            case .maximumBytes: "max-stored-bytes"
            case .effort, .stripping, .formats, .background, .animated, .keepsLarger, .isLinear,
                .scaleDownPixels:
                rawValue
            }
        }

        /// The item as users write it.
        var shown: String { takesValue ? rawValue + "=" : rawValue }

        /// Whether it affects the stored bytes; see ``Recipe/canonicalText``.
        func matters(to recipe: Recipe) -> Bool {
            switch self {
            case .isLinear: recipe.encoding != .original && recipe.resizes
            case .background: recipe.showsBackground
            default: matters(to: recipe.encoding)
            }
        }

        func matters(to encoding: Encoding) -> Bool {
            switch (self, encoding) {
            case (_, .original), (.effort, .jpeg): false
            case (.formats, _): encoding == .auto
            case (.background, _): encoding == .jpeg || encoding == .auto
            case (.quality, .png), (.maximumBytes, .png), (.maximumBytes, .auto): false
            default: true
            }
        }

        /// The values that it takes, in messages.
        var form: String {
            func choices<Choice: RawRepresentable<String> & CaseIterable>(_: Choice.Type) -> String
            {
                Choice.allCases.map(\.rawValue).listed(with: "or")
            }
            return switch self {
            case .quality: "1 to 100"
            case .stripping: choices(Stripping.self)
            case .formats:
                EncodedImageFormat.allCases.map(\.rawValue).listed(with: "and")
                    + " with + between them"
            case .background: "#rgb, #rrggbb or a basic colour of CSS"
            case .maximumBytes: "a size like 200KiB"
            case .effort: choices(EncodingEffort.self)
            case .animated: choices(Animation.self)
            case .scaleDownPixels: "a number of pixels"
            case .keepsLarger, .isLinear: "no value"
            }
        }

        func set(_ value: String?, of recipe: inout Recipe) -> Bool {
            guard let value else {
                if self == .isLinear { recipe.isLinear = true }
                if self == .keepsLarger { recipe.keepsLarger = true }
                return !takesValue
            }
            switch self {
            case .quality:
                guard let quality = Int(value), (1...100).contains(quality) else { return false }
                recipe.quality = quality
            case .stripping: return replace(&recipe.stripping, Stripping(rawValue: value))
            case .formats:
                let formats = EncodedImageFormat.formats(in: value, separator: "+")
                return replace(&recipe.allowedFormats, formats)
            case .background: return replace(&recipe.background, RGBColor(text: value))
            case .maximumBytes:
                guard let size = ByteCount(quantity: value), size.bytes > 0 else { return false }
                recipe.maximumStoredBytes = size.bytes
            case .effort: return replace(&recipe.effort, EncodingEffort(rawValue: value))
            case .animated: return replace(&recipe.animation, Animation(rawValue: value))
            case .scaleDownPixels:
                guard case .pixels(let count)? = ResizeGeometry(text: value + "@") else {
                    return false
                }
                recipe.scaleDown(toPixels: count)
            case .keepsLarger, .isLinear: return false
            }
            return true
        }

        private func replace<Value>(_ old: inout Value, _ new: Value?) -> Bool {
            if let new { old = new }
            return new != nil
        }

        func mistake(in value: String?) -> UserError {
            guard let value else { return UserError(.usage, "'\(shown)' needs a value") }
            return UserError(
                .usage,
                takesValue
                    ? "'\(shown)' takes \(form), not '\(value)'" : "'\(rawValue)' takes \(form)")
        }
    }
}

// MARK: Messages

extension Recipe {
    fileprivate static func repeated(_ name: String) -> UserError {
        UserError(.usage, "'\(name)' stands twice")
    }

    /// The message for a comma in the list of `allow-formats=`, which ends the item.
    fileprivate static func formatsWithComma(_ format: Encoding) -> UserError {
        UserError(
            .usage,
            "'allow-formats=' takes formats with + between them, so '+\(format)', not ',\(format)'")
    }

    fileprivate static func withoutEffect(
        _ setting: SpecificationSetting, on encoding: Encoding
    ) -> UserError {
        let others = Encoding.allCases.filter(setting.matters).map(\.rawValue)
        return UserError(
            .usage,
            "'\(setting.shown)' has no effect on \(encoding), only on "
                + others.listed(with: "and"))
    }

    fileprivate static func noStep(_ item: String) -> UserError {
        let steps = Transformation.StepName.allCases
        let word = item.filter { $0 != " " }.prefix { $0 != "=" }
        let guess =
            steps.first { String(word).isNearly($0.rawValue) }
            .map { " (did you mean '\($0.shown)'?)" } ?? ""
        let known = (["sizes"] + steps.map(\.shown)).listed(with: "and")
        return UserError(.usage, "unknown step '\(item)'\(guess); the steps are \(known)")
    }

    fileprivate static func unknown(_ item: String, name: String) -> UserError {
        let formats = Encoding.allCases.map(\.rawValue)
        let settings = SpecificationSetting.allCases.map(\.shown)
        let steps = Transformation.StepName.allCases.map(\.shown)
        let known = (formats + settings + steps).joined(separator: ", ")
        guard !item.isEmpty else {
            return UserError(.usage, "an item is empty; known are \(known)")
        }
        let advice = nearest(to: name).map { " (did you mean '\($0)'?)" } ?? ""
        return UserError(.usage, "unknown item '\(item)'\(advice); known are \(known)")
    }

    /// The item that a misspelled name probably means.
    private static func nearest(to name: String) -> String? {
        // A small number may mean a quality or a size.
        if ResizeGeometry(text: name) != nil { return "q=\(name)' or 'resize=\(name)" }
        if let stripping = Stripping(rawValue: name) { return "strip=\(stripping)" }
        if let effort = EncodingEffort(rawValue: name) { return "effort=\(effort)" }
        if let animation = Animation(rawValue: name) { return "animated=\(animation)" }
        if let format = Encoding.allCases.first(where: { name.isNearly($0.rawValue) }) {
            return format.rawValue
        }
        let setting = SpecificationSetting.allCases.first {
            name.isNearly($0.flag) || $0.rawValue.count > 1 && name.isNearly($0.rawValue)
        }
        if let setting { return setting.shown }
        let step = Transformation.StepName.allCases.first { name.isNearly($0.rawValue) }
        return step?.shown
    }
}

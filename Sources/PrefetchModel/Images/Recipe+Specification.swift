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
    /// A one-line message that names the invalid item and the allowed values.
    package struct SpecificationProblem: Error, Hashable, Sendable {
        package let message: String
        /// The form of the invalid value, `takes 1 to 100`, without the item and the value; nil
        /// for another mistake.
        package var requirement: String?

        package init(message: String, requirement: String? = nil) {
            self.message = message
            self.requirement = requirement
        }

        /// Repeats no part of the text.
        package static let overlayInList = SpecificationProblem(
            message:
                "'overlay=' is for --transform and --variant, since lists open no files; "
                + "'variants=' selects such a variant")
    }

    /// Reads the file of an overlay and returns its digest.
    package typealias OverlayReader = (_ file: String) throws(SpecificationProblem) -> ContentDigest

    /// The reader for lists, which may be written by others and open no files.
    package static func refuseOverlay(
        _ file: String
    ) throws(SpecificationProblem) -> ContentDigest {
        throw .overlayInList
    }

    /// Parses a SPEC.
    ///
    /// - Throws: For an item that is empty, unknown, repeated, without effect or has an invalid
    ///   value, for two formats, and the reader's error.
    package init(
        specification text: String, overlay: OverlayReader = refuseOverlay
    ) throws(SpecificationProblem) {
        var recipe = Recipe()
        var encoding: Encoding?
        var given: [Setting] = []
        var transforms = false
        for item in Recipe.items(text) {
            let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let (name, value) = (String(parts[0]), parts.count > 1 ? String(parts[1]) : nil)
            if let steps = try Recipe.steps(name, value, overlay) {
                recipe.transformations += steps
                transforms = true
            } else if let setting = Setting(rawValue: name) {
                guard !given.contains(setting) else { throw .repeated(setting.shown) }
                given.append(setting)
                try setting.set(value, of: &recipe)
            } else if value == nil, let format = Encoding(rawValue: name) {
                guard encoding != format else { throw .repeated(name) }
                if let encoding {
                    throw given.last == .formats
                        ? .formatsWithComma(format) : .twoFormats(encoding, format)
                }
                encoding = format
            } else {
                throw .unknown(item, name: name)
            }
        }
        recipe.encoding = encoding ?? recipe.encoding
        if recipe.encoding == .original, transforms { throw .transformedOriginal }
        if let idle = given.first(where: { !$0.matters(to: recipe) }) {
            throw idle == .isLinear && recipe.encoding != .original
                ? .linearWithoutSize : .withoutEffect(idle, on: recipe.encoding)
        }
        self = recipe
    }

    /// Parses a list of steps without other items.
    ///
    /// - Throws: For an item that is empty, not a step, or has an invalid value, and the reader's
    ///   error.
    package static func steps(
        in text: String, overlay: OverlayReader = refuseOverlay
    ) throws(SpecificationProblem) -> [Transformation] {
        var result: [Transformation] = []
        for item in items(text) {
            let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard
                let steps = try steps(
                    String(parts[0]), parts.count > 1 ? String(parts[1]) : nil, overlay)
            else { throw .noStep(item) }
            result += steps
        }
        return result
    }

    /// Checks a value of a plain flag that has an item in a SPEC. What passes is the value of this
    /// one item, so joined items keep their meaning.
    ///
    /// - Throws: For any text that the flag alone would refuse. Overlays are allowed, and not read.
    package static func check(
        _ value: String, ofFlag flag: String
    ) throws(SpecificationProblem) {
        switch flag {
        case "encode":
            guard Encoding(rawValue: value) == nil else { return }
            let formats = SpecificationProblem.list(Encoding.allCases.map(\.rawValue))
            throw .value(value, of: flag, takes: formats)
        case "resize":
            guard ResizeGeometry(text: value) == nil else { return }
            throw .value(value, of: flag, takes: Transformation.Name.resize.form)
        case "transform": _ = try steps(in: value) { _ in .zero }
        default:
            var recipe = Recipe()
            try Setting.allCases.first { $0.flag == flag }?.set(
                itemValue(value, ofFlag: flag), of: &recipe)
        }
    }

    /// The formats of `allow-formats` have commas between them in a flag, and + in a SPEC.
    private static func itemValue(_ value: String, ofFlag flag: String) -> String {
        flag == Setting.formats.flag ? value.replacing(",", with: "+") : value
    }

    /// The item of a SPEC that means the same as a plain flag, which is named without hyphens; nil
    /// if there is none. `value` is nil for a switch, else one that ``check(_:ofFlag:)`` accepts.
    package static func specificationItem(flag: String, value: String?) -> String? {
        switch flag {
        case "encode", "transform": return value
        case "resize": return value.map { "resize=\($0)" }
        default:
            guard let setting = Setting.allCases.first(where: { $0.flag == flag }) else {
                return nil
            }
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
                let name = Transformation.Name(ofItem: item)
                colours = name == .border || name == .rotate ? 1 : 0
                corners = name == .round && item.contains(":") ? 3 : 0
                items.append(String(item))
            }
        }
        return items
    }

    /// The steps of an item; nil if it is not a step.
    private static func steps(
        _ name: String, _ value: String?, _ overlay: OverlayReader
    ) throws(SpecificationProblem) -> [Transformation]? {
        guard let value else {
            if ResizeGeometry.isLikely(name) {
                guard let geometry = ResizeGeometry(text: name) else {
                    throw SpecificationProblem(
                        message: "'\(name)' is not \(Transformation.Name.resize.form)")
                }
                return [.resize(geometry)]
            }
            guard let step = Transformation.Name(rawValue: name) else { return nil }
            if let steps = Transformation.steps(step, nil) { return steps }
            throw SpecificationProblem(message: "'\(step.shown)' needs \(step.form)")
        }
        guard let step = Transformation.Name(rawValue: name) else { return nil }
        if step == .overlay, let (file, gravity) = Transformation.overlayParts(value) {
            return [.overlay(try overlay(file), gravity)]
        }
        guard step != .overlay, let steps = Transformation.steps(step, value) else {
            throw .value(value, of: "'\(step.shown)'", takes: step.form)
        }
        return steps
    }

    /// The items other than formats.
    fileprivate enum Setting: String, CaseIterable {
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

        func set(_ value: String?, of recipe: inout Recipe) throws(SpecificationProblem) {
            guard let value else {
                guard !takesValue else { throw .noValue(self) }
                if self == .isLinear { recipe.isLinear = true } else { recipe.keepsLarger = true }
                return
            }
            switch self {
            case .quality:
                guard let quality = Int(value), (1...100).contains(quality) else {
                    throw .value(value, of: self, takes: "1 to 100")
                }
                recipe.quality = quality
            case .stripping:
                recipe.stripping = try choice(value)
            case .formats:
                guard let formats = EncodedImageFormat.formats(in: value, separator: "+") else {
                    let names = EncodedImageFormat.allCases.map(\.rawValue)
                    throw .value(
                        value, of: self,
                        takes: SpecificationProblem.list(names, "and") + " with + between them")
                }
                recipe.allowedFormats = formats
            case .background:
                guard let colour = RGBColor(text: value) else {
                    throw .value(value, of: self, takes: "#rgb, #rrggbb or a basic colour of CSS")
                }
                recipe.background = colour
            case .maximumBytes:
                guard let size = ByteCount(quantity: value), size.bytes > 0 else {
                    throw .value(value, of: self, takes: "a size like 200KiB")
                }
                recipe.maximumStoredBytes = size.bytes
            case .effort:
                recipe.effort = try choice(value)
            case .animated:
                recipe.animation = try choice(value)
            case .scaleDownPixels:
                guard case .pixels(let count)? = ResizeGeometry(text: value + "@") else {
                    throw .value(value, of: self, takes: "a number of pixels")
                }
                recipe.scaleDown(toPixels: count)
            case .keepsLarger, .isLinear:
                throw SpecificationProblem(message: "'\(rawValue)' takes no value")
            }
        }

        private func choice<Choice: RawRepresentable<String> & CaseIterable>(
            _ value: String
        ) throws(SpecificationProblem) -> Choice {
            guard let choice = Choice(rawValue: value) else {
                throw .value(
                    value, of: self,
                    takes: SpecificationProblem.list(Choice.allCases.map(\.rawValue)))
            }
            return choice
        }
    }
}

extension Recipe.SpecificationProblem {
    fileprivate static func repeated(_ name: String) -> Self {
        Self(message: "'\(name)' stands twice")
    }

    fileprivate static func twoFormats(
        _ first: Recipe.Encoding, _ second: Recipe.Encoding
    ) -> Self {
        Self(message: "'\(first)' and '\(second)' are both formats")
    }

    /// The message for a comma in the list of `allow-formats=`, which ends the item.
    fileprivate static func formatsWithComma(_ format: Recipe.Encoding) -> Self {
        Self(
            message:
                "'allow-formats=' takes formats with + between them, so '+\(format)', not ',\(format)'"
        )
    }

    fileprivate static func withoutEffect(
        _ setting: Recipe.Setting, on encoding: Recipe.Encoding
    ) -> Self {
        let others = Recipe.Encoding.allCases.filter(setting.matters).map(\.rawValue)
        return Self(
            message:
                "'\(setting.shown)' has no effect on \(encoding), only on \(list(others, "and"))")
    }

    fileprivate static func noValue(_ setting: Recipe.Setting) -> Self {
        Self(message: "'\(setting.shown)' needs a value")
    }

    fileprivate static func value(
        _ value: String, of setting: Recipe.Setting, takes allowed: String
    ) -> Self {
        .value(value, of: "'\(setting.shown)'", takes: allowed)
    }

    fileprivate static func value(_ value: String, of item: String, takes allowed: String) -> Self {
        Self(message: "\(item) takes \(allowed), not '\(value)'", requirement: "takes \(allowed)")
    }

    fileprivate static let transformedOriginal = Self(
        message:
            "'original' is the bytes as they came, so no size and no other step has an effect on it"
    )

    fileprivate static func noStep(_ item: String) -> Self {
        let steps = Transformation.Name.allCases
        let word = item.filter { $0 != " " }.prefix { $0 != "=" }
        let guess =
            steps.first { String(word).isNearly($0.rawValue) }
            .map { " (did you mean '\($0.shown)'?)" } ?? ""
        let known = ["sizes"] + steps.map(\.shown)
        return Self(message: "unknown step '\(item)'\(guess); the steps are \(list(known, "and"))")
    }

    fileprivate static let linearWithoutSize = Self(
        message: "'linear' is about resizing, and no size is given")

    fileprivate static func unknown(_ item: String, name: String) -> Self {
        let formats = Recipe.Encoding.allCases.map(\.rawValue)
        let settings = Recipe.Setting.allCases.map(\.shown)
        let steps = Transformation.Name.allCases.map(\.shown)
        let known = (formats + settings + steps).joined(separator: ", ")
        guard !item.isEmpty else { return Self(message: "an item is empty; known are \(known)") }
        let advice = nearest(to: name).map { " (did you mean '\($0)'?)" } ?? ""
        return Self(message: "unknown item '\(item)'\(advice); known are \(known)")
    }

    /// The item that a misspelled name probably means.
    private static func nearest(to name: String) -> String? {
        // A small number may mean a quality or a size.
        if ResizeGeometry(text: name) != nil { return "q=\(name)' or 'resize=\(name)" }
        if let stripping = Recipe.Stripping(rawValue: name) { return "strip=\(stripping)" }
        if let effort = EncodingEffort(rawValue: name) { return "effort=\(effort)" }
        if let animation = Recipe.Animation(rawValue: name) { return "animated=\(animation)" }
        if let format = Recipe.Encoding.allCases.first(where: { name.isNearly($0.rawValue) }) {
            return format.rawValue
        }
        let setting = Recipe.Setting.allCases.first {
            name.isNearly($0.flag) || $0.rawValue.count > 1 && name.isNearly($0.rawValue)
        }
        if let setting { return setting.shown }
        let step = Transformation.Name.allCases.first { name.isNearly($0.rawValue) }
        return step?.shown
    }

    fileprivate static func list(_ words: [String], _ conjunction: String = "or") -> String {
        words.listed(with: conjunction)
    }
}

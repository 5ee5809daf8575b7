/// The SPEC of `--variant NAME=SPEC`: a comma-separated list, in any order and each item once, of
///
/// - one format, a bare word: `same` (where there is none), `jpeg`, `png` or `original`;
/// - `q=N`: JPEG quality, 1…100; of `same` and `jpeg`;
/// - `strip=safe`, `all` or `none`: of all formats but `original`;
/// - `background=COLOUR`: `#rgb`, `#rrggbb` or a basic name of CSS; of `jpeg`;
/// - `max-bytes=SIZE`: at least 1, as flags take sizes; of `same` and `jpeg`;
/// - `effort=fast`, `balanced` or `small`: of `same` and `png`;
/// - `animated=keep`, `first` or `refuse`: of all formats but `original`;
/// - `keep-larger`: of all formats but `original`.
///
/// What is left out has the default of the plain flag, not what the plain flags of the run say: they
/// describe `main`. So a SPEC tells the whole recipe, a name means the same in every run that spells it
/// the same, and another `--quality` for `main` makes no other variant anew.
///
/// An item without effect on the format is refused, where the plain flags let it pass: a default
/// `--quality` may stand in a script whatever `--encode` says, but whoever writes `png,q=80` expects
/// something that will not come.
extension Recipe {
    /// Why a text is no SPEC: one line that names the item, and says what is allowed.
    package struct SpecificationProblem: Error, Hashable, Sendable {
        package let message: String
    }

    /// - Throws: for an item that is empty, unknown, repeated, without effect, or has a value that is not
    ///   good, and for two formats.
    package init(specification text: String) throws(SpecificationProblem) {
        var recipe = Recipe()
        var encoding: Encoding?
        var given: [Setting] = []
        for item in text.split(separator: ",", omittingEmptySubsequences: false) {
            let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let (name, value) = (String(parts[0]), parts.count > 1 ? String(parts[1]) : nil)
            if let setting = Setting(rawValue: name) {
                guard !given.contains(setting) else { throw .repeated(setting.shown) }
                given.append(setting)
                try setting.set(value, of: &recipe)
            } else if value == nil, let format = Encoding(rawValue: name) {
                guard encoding != format else { throw .repeated(name) }
                if let encoding { throw .twoFormats(encoding, format) }
                encoding = format
            } else {
                throw .unknown(String(item), name: name)
            }
        }
        recipe.encoding = encoding ?? recipe.encoding
        if let idle = given.first(where: { !$0.matters(to: recipe.encoding) }) {
            throw .withoutEffect(idle, on: recipe.encoding)
        }
        self = recipe
    }

    /// The items that are no formats.
    fileprivate enum Setting: String, CaseIterable {
        case quality = "q"
        case stripping = "strip"
        case background
        case maximumBytes = "max-bytes"
        case effort
        case animated
        case keepsLarger = "keep-larger"

        var takesValue: Bool { self != .keepsLarger }

        /// The plain flag that does the same, without its hyphens.
        var flag: String {
            switch self {
            case .quality: "quality"
            case .maximumBytes: "max-stored-bytes"
            case .effort: "png-effort"
            case .stripping, .background, .animated, .keepsLarger: rawValue
            }
        }

        /// As people write it.
        var shown: String { takesValue ? rawValue + "=" : rawValue }

        /// Whether it is part of what the format makes, as ``Recipe/canonicalText`` has it.
        func matters(to encoding: Encoding) -> Bool {
            switch (self, encoding) {
            case (_, .original), (.background, .same), (.effort, .jpeg): false
            case (.quality, .png), (.maximumBytes, .png), (.background, .png): false
            case (_, .same), (_, .jpeg), (_, .png): true
            }
        }

        func set(_ value: String?, of recipe: inout Recipe) throws(SpecificationProblem) {
            guard let value else {
                guard !takesValue else { throw .noValue(self) }
                recipe.keepsLarger = true
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
                recipe.pngEffort = try choice(value)
            case .animated:
                recipe.animation = try choice(value)
            case .keepsLarger:
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
        Self(message: "'\(setting.shown)' takes \(allowed), not '\(value)'")
    }

    fileprivate static func unknown(_ item: String, name: String) -> Self {
        let formats = Recipe.Encoding.allCases.map(\.rawValue)
        let known = (formats + Recipe.Setting.allCases.map(\.shown)).joined(separator: ", ")
        guard !item.isEmpty else { return Self(message: "an item is empty; known are \(known)") }
        let near =
            Recipe.Stripping(rawValue: name).map { "strip=\($0)" }
            ?? PNGEffort(rawValue: name).map { "effort=\($0)" }
            ?? Recipe.Animation(rawValue: name).map { "animated=\($0)" }
            ?? formats.first { name.isNearly($0) }
            ?? Recipe.Setting.allCases.first {
                name.isNearly($0.flag) || $0.rawValue.count > 1 && name.isNearly($0.rawValue)
            }?.shown
        let advice = near.map { " (did you mean '\($0)'?)" } ?? ""
        return Self(message: "unknown item '\(item)'\(advice); known are \(known)")
    }

    /// `same, jpeg or png`.
    fileprivate static func list(_ words: [String], _ conjunction: String = "or") -> String {
        guard let last = words.last, words.count > 1 else { return words.first ?? "" }
        return words.dropLast().joined(separator: ", ") + " \(conjunction) " + last
    }
}

import PrefetchModel

/// The fields of a line about the variants of its image; see ``EntryFields``.
struct VariantFields {
    enum VariantField: String, CaseIterable {
        case encode
        case quality
        case resize
        case crop
        case transform
        case animated
        case variant
        case variants

        /// Whether it describes the variant `main`.
        var isAboutMain: Bool { self != .variant && self != .variants }

        init?(_ name: EntryFields.Bytes) {
            guard
                let field = VariantField.allCases.first(where: {
                    name.elementsEqual($0.rawValue.utf8)
                })
            else { return nil }
            self = field
        }
    }

    private(set) var main = RecipeChanges.none
    /// The line's own variants.
    private(set) var own: [RequestedVariant] = []
    /// The selected variants of the run; nil for all, and if they are unknown.
    private(set) var selection: VariantSelection?
    /// The value of `variants`; nil without it.
    private var names: [VariantName]?
    private var given: [VariantField] = []

    var isEmpty: Bool { given.isEmpty }
    /// Whether no field differs from the run's settings.
    var changesNothing: Bool {
        isEmpty || main == .none && own.isEmpty && selection == nil
    }

    /// Adds a field.
    ///
    /// - Throws: a problem if the field is a duplicate or its value invalid.
    mutating func add(_ field: VariantField, _ value: EntryFields.Bytes) throws {
        guard field == .variant || !given.contains(field) else {
            throw EntryFields.problem("duplicate field '\(field.rawValue)'")
        }
        given.append(field)
        let text = String(decoding: value, as: UTF8.self)
        func valid<Parsed>(
            _ parsed: Parsed?, takes allowed: @autoclosure () -> String
        ) throws -> Parsed {
            if let parsed { return parsed }
            throw EntryFields.problem(field.rawValue, takes: allowed(), value)
        }
        switch field {
        case .encode:
            main.encoding = try valid(
                Recipe.Encoding(rawValue: text),
                takes: Recipe.Encoding.allCases.map(\.rawValue).listed(with: "or"))
        case .quality:
            main.quality = try valid(
                Int(text).flatMap { (1...100).contains($0) ? $0 : nil }, takes: "1 to 100")
        case .resize:
            main.resize = try valid(
                ResizeGeometry(text: text), takes: Transformation.StepName.resize.form)
        case .animated:
            main.animation = try valid(
                Recipe.Animation(rawValue: text),
                takes: Recipe.Animation.allCases.map(\.rawValue).listed(with: "or"))
        case .crop:
            main.crop = try valid(
                CropGeometry(text: text), takes: Transformation.StepName.crop.form)
        case .transform:
            let steps = try VariantFields.parsed(field, value) { () throws(UserError) in
                try Recipe.steps(in: text)
            }
            try VariantFields.checkCount(of: steps, field)
            main.steps = steps
        case .variant:
            try addOwn(text, value)
        case .variants:
            names = try VariantFields.names(text)
        }
    }

    private mutating func addOwn(_ text: String, _ value: EntryFields.Bytes) throws {
        // As in a list of names, an invalid one is not repeated.
        guard let equals = text.firstIndex(of: "="),
            let name = VariantName(String(text[..<equals])), !name.isNumbered
        else { throw EntryFields.problem("field 'variant' takes NAME=SPEC, as in web=jpeg,q=60") }
        guard name != .main else {
            throw EntryFields.problem(
                "field 'variant': the fields encode=, resize= and others describe main")
        }
        guard !own.contains(where: { $0.name == name }) else {
            throw EntryFields.problem("field 'variant': '\(name)' is given twice")
        }
        guard own.count < VariantSet.maximumCount else {
            throw EntryFields.problem("more than \(VariantSet.maximumCount) variants")
        }
        let recipe = try VariantFields.parsed(.variant, of: "\(name): ", value) {
            () throws(UserError) in
            try Recipe(specification: String(text[text.index(after: equals)...]))
        }
        try VariantFields.checkCount(of: recipe.transformations, .variant)
        guard name != .original || recipe.encoding == .original else {
            throw EntryFields.problem(
                "field 'variant': the name original is reserved for original=original")
        }
        own.append(RequestedVariant(name: name, recipe: recipe))
    }

    private static func parsed<Parsed>(
        _ field: VariantField, of variant: String = "", _ value: EntryFields.Bytes,
        _ parse: () throws(UserError) -> Parsed
    ) throws -> Parsed {
        try EntryFields.checked(parse) { error in
            error == Recipe.overlayInList
                ? EntryFields.problem("field '\(field.rawValue)': \(variant)\(error.message)")
                : EntryFields.problem(field.rawValue, because: variant + error.message, value)
        }
    }

    /// Each step costs time for each image, and a line has room for thousands.
    private static func checkCount(of steps: [Transformation], _ field: VariantField) throws {
        guard steps.count <= maximumSteps else {
            throw EntryFields.problem("field '\(field.rawValue)': more than \(maximumSteps) steps")
        }
    }

    private static let maximumSteps = 64

    private static func names(_ text: String) throws -> [VariantName] {
        var names: [VariantName] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            // Not repeated in the message: it may be part of a URL with a password.
            guard let name = VariantName(String(part)) else {
                throw EntryFields.problem(
                    "field 'variants' takes comma-separated names, as in main,web")
            }
            guard names.count < VariantSet.maximumCount else {
                throw EntryFields.problem("more than \(VariantSet.maximumCount) variants")
            }
            guard !names.contains(name) else {
                throw EntryFields.problem("variant '\(name)' is named twice")
            }
            names.append(name)
        }
        return names
    }

    /// Finds the selected variants among the run's.
    private mutating func select(from known: VariantSet) throws {
        guard let names else { return }
        var picked: VariantSelection = []
        var count = 0
        for name in names where !own.contains(where: { $0.name == name }) {
            guard let position = known.position(of: name) else {
                let others = known.map(\.name.text).joined(separator: ", ")
                throw EntryFields.problem("unknown variant '\(name)': this run makes \(others)")
            }
            picked.insert(.position(position))
            count += 1
        }
        // Without a selection the entry needs no extras.
        selection = count == known.count ? nil : picked
    }

    /// Checks the combination of all fields.
    ///
    /// - Throws: a problem if fields contradict each other or the run.
    mutating func check(in known: VariantSet?) throws {
        if let names, !names.contains(.main), let field = given.first(where: \.isAboutMain) {
            throw EntryFields.problem(
                "field '\(field.rawValue)' is for the variant main, which is not among the variants"
            )
        }
        if let known {
            if let variant = own.first(where: { known.position(of: $0.name) != nil }) {
                throw EntryFields.problem(
                    "field 'variant': this run makes '\(variant.name)'; choose another name")
            }
            try select(from: known)
            guard
                (selection?.rawValue.nonzeroBitCount ?? known.count) + own.count
                    <= VariantSet.maximumCount
            else { throw EntryFields.problem("more than \(VariantSet.maximumCount) variants") }
        }
        if var recipe = known?.main {
            main.apply(to: &recipe)
            guard recipe.encoding != .original || recipe.transformations.isEmpty else {
                throw EntryFields.problem(
                    "encode=original stores the downloaded bytes, so it cannot be combined with a size or other steps"
                )
            }
        }
        if main.encoding == .original, known?.main?.stripping == .all {
            throw EntryFields.problem(
                "encode=original cannot be combined with --strip all: it stores the metadata, too")
        }
        try checkAnimation(known?.main)
    }

    /// Checks the format against the animation rule; either may be set by the line or by the run.
    private func checkAnimation(_ recipe: Recipe?) throws {
        guard main.encoding != nil || main.animation != nil,
            (main.encoding ?? recipe?.encoding) == .original,
            let asked = main.animation ?? recipe?.animation, asked != .keep
        else { return }
        let format = main.encoding == nil ? "--encode original" : "encode=original"
        let frames = main.animation == nil ? "--animated \(asked)" : "animated=\(asked)"
        throw EntryFields.problem(
            "\(format) cannot be combined with \(frames): it stores animations")
    }
}

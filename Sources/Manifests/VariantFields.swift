import PrefetchModel

/// The fields of a line about the variants of its image; see ``EntryFields``.
struct VariantFields {
    enum Field: String, CaseIterable {
        case encode
        case quality
        case resize
        case animated
        case variants

        init?(_ name: Slice<UnsafeBufferPointer<UInt8>>) {
            guard let field = Field.allCases.first(where: { name.elementsEqual($0.rawValue.utf8) })
            else { return nil }
            self = field
        }
    }

    private(set) var encoding: Recipe.Encoding?
    private(set) var quality: Int?
    private(set) var resize: ResizeGeometry?
    private(set) var animation: Recipe.Animation?
    /// The selected variants; nil for all, and if the run's variants are unknown.
    private(set) var selection: VariantSelection?
    private var given: [Field] = []
    /// Whether `variants` excludes `main`.
    private var lacksMain = false

    var isEmpty: Bool { given.isEmpty }
    /// Whether no field differs from the run's settings.
    var changesNothing: Bool {
        encoding == nil && quality == nil && resize == nil && animation == nil && selection == nil
    }

    /// Adds a field.
    ///
    /// - Throws: a problem if the field is a duplicate or its value invalid.
    mutating func add(
        _ field: Field, _ value: Slice<UnsafeBufferPointer<UInt8>>, in known: VariantSet?
    ) throws(LineProblem) {
        guard !given.contains(field) else {
            throw EntryFields.problem("duplicate field '\(field.rawValue)'")
        }
        given.append(field)
        let text = String(decoding: value, as: UTF8.self)
        func problem(takes allowed: String) -> LineProblem {
            EntryFields.problem(field.rawValue, takes: allowed, value)
        }
        switch field {
        case .encode:
            guard let encoding = Recipe.Encoding(rawValue: text) else {
                throw problem(takes: Recipe.Encoding.allCases.map(\.rawValue).listed(with: "or"))
            }
            self.encoding = encoding
        case .quality:
            guard let quality = Int(text), (1...100).contains(quality) else {
                throw problem(takes: "1 to 100")
            }
            self.quality = quality
        case .resize:
            guard let geometry = ResizeGeometry(text: text) else {
                throw problem(takes: Transformation.Name.resize.form)
            }
            resize = geometry
        case .animated:
            guard let animation = Recipe.Animation(rawValue: text) else {
                throw problem(takes: Recipe.Animation.allCases.map(\.rawValue).listed(with: "or"))
            }
            self.animation = animation
        case .variants:
            try addVariants(text, in: known)
        }
    }

    private mutating func addVariants(
        _ text: String, in known: VariantSet?
    ) throws(LineProblem) {
        var names: Set<VariantName> = []
        var picked: VariantSelection = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            // Not repeated in the message: it may be part of a URL with a password.
            guard let name = VariantName(String(part)) else {
                throw EntryFields.problem(
                    "field 'variants' takes comma-separated names, as in main,web")
            }
            guard names.count < VariantSet.maximumCount else {
                throw EntryFields.problem("more than \(VariantSet.maximumCount) variants")
            }
            guard names.insert(name).inserted else {
                throw EntryFields.problem("variant '\(name)' is named twice")
            }
            guard let known else { continue }
            guard let position = known.position(of: name) else {
                let others = known.map(\.name.text).joined(separator: ", ")
                throw EntryFields.problem("unknown variant '\(name)': this run makes \(others)")
            }
            picked.insert(.position(position))
        }
        lacksMain = !names.contains(.main)
        // Without a selection the entry needs no extras.
        selection = known == nil || names.count == known?.count ? nil : picked
    }

    /// Checks the combination of all fields.
    ///
    /// - Throws: a problem if fields contradict each other or the run.
    func check(in known: VariantSet?) throws(LineProblem) {
        if lacksMain, let field = given.first(where: { $0 != .variants }) {
            throw EntryFields.problem(
                "field '\(field.rawValue)' is for the variant main, which is not among the variants"
            )
        }
        if let main = known?.main, (encoding ?? main.encoding) == .original {
            let (before, after) = (main.transformations.isEmpty, resize == nil)
            guard before && after else {
                throw EntryFields.problem(
                    "encode=original stores the downloaded bytes, so it cannot be combined with a size or other steps"
                )
            }
        }
        if encoding == .original, known?.main?.stripping == .all {
            throw EntryFields.problem(
                "encode=original cannot be combined with --strip all: it stores the metadata, too")
        }
        try checkAnimation(known?.main)
    }

    /// Checks the format against the animation rule; either may be set by the line or by the run.
    private func checkAnimation(_ main: Recipe?) throws(LineProblem) {
        guard encoding != nil || animation != nil,
            (encoding ?? main?.encoding) == .original,
            let asked = animation ?? main?.animation, asked != .keep
        else { return }
        let format = encoding == nil ? "--encode original" : "encode=original"
        let frames = animation == nil ? "--animated \(asked)" : "animated=\(asked)"
        throw EntryFields.problem(
            "\(format) cannot be combined with \(frames): it stores animations")
    }
}

/// A variant that a run, or an entry of it, asks for.
package struct RequestedVariant: Hashable, Sendable {
    package let name: VariantName
    package var recipe: Recipe { didSet { recipeText = recipe.canonicalText } }
    /// The canonical text of the recipe, made once: every entry is looked up and stored by it.
    package private(set) var recipeText: String

    package init(name: VariantName, recipe: Recipe) {
        self.name = name
        self.recipe = recipe
        recipeText = recipe.canonicalText
    }
}

/// The variants that a run, or an entry of it, asks for: 1…64 with different names, `main` first where
/// it is among them, the others in the order in which they were given.
///
/// Two of them may have the same recipe, and then are the same bytes. Nearly every run asks for one
/// variant, which needs no memory beyond the value itself.
package struct VariantSet: Hashable, Sendable {
    /// `main`, or the first of the others where that is left out: what the fields of a report's line
    /// describe.
    package private(set) var primary: RequestedVariant
    private var others: [RequestedVariant] = []

    /// As many as a ``VariantSelection`` can tell apart.
    package static let maximumCount = 64

    /// Why a list of variants is no set.
    package enum Problem: Error, Hashable, Sendable {
        case empty
        case tooMany
        /// The first name that stands twice.
        case duplicate(VariantName)
    }

    /// A run that asks for `main` alone.
    package init(main recipe: Recipe) {
        self.init(RequestedVariant(name: .main, recipe: recipe))
    }

    package init(_ variant: RequestedVariant) {
        primary = variant
    }

    /// Brings `main` to the front.
    ///
    /// - Throws: when there are none, more than ``maximumCount``, or two of one name.
    package init(_ variants: [RequestedVariant]) throws(Problem) {
        guard let first = variants.first else { throw .empty }
        guard variants.count <= VariantSet.maximumCount else { throw .tooMany }
        var names: Set<VariantName> = []
        for variant in variants where !names.insert(variant.name).inserted {
            throw .duplicate(variant.name)
        }
        let main = variants.firstIndex { $0.name == .main }
        primary = main.map { variants[$0] } ?? first
        others = variants
        others.remove(at: main ?? 0)
    }

    /// The recipe of `main`; nil where an entry leaves it out.
    package var main: Recipe? { primary.name == .main ? primary.recipe : nil }

    package mutating func setPrimaryRecipe(_ recipe: Recipe) {
        primary.recipe = recipe
    }

    /// The position of a variant, to pick it; nil for an unknown name.
    package func position(of name: VariantName) -> Int? {
        firstIndex { $0.name == name }
    }
}

extension VariantSet: RandomAccessCollection {
    package var startIndex: Int { 0 }
    package var endIndex: Int { 1 + others.count }

    package subscript(position: Int) -> RequestedVariant {
        position == 0 ? primary : others[position - 1]
    }
}

extension VariantSet {
    /// What an entry of the run asks for: of the run's variants those that it picks, `main` with its own
    /// format, quality, size and treatment of animations.
    ///
    /// The other variants stay as they are: what is called `web` is made the same way of every image.
    /// A quality is of no effect on a format that has none, as with the flag. An entry that picks none
    /// of the run's variants, which a manifest cannot say, asks for all of them.
    package func applying(_ extras: EntryExtras?) -> VariantSet {
        guard let extras, extras.changesVariants else { return self }
        var result = picking(extras.variants)
        guard var recipe = result.main else { return result }
        if let encoding = extras.encoding { recipe.encoding = encoding }
        if let quality = extras.quality { recipe.quality = quality }
        if let geometry = extras.resize { recipe.replaceSize(with: geometry) }
        if let animation = extras.animation { recipe.animation = animation }
        result.primary.recipe = recipe
        return result
    }

    private func picking(_ selection: VariantSelection?) -> VariantSet {
        guard let selection else { return self }
        let picked = indices.filter { selection.contains(.position($0)) }
        guard let first = picked.first else { return self }
        var result = VariantSet(self[first])
        // The run's order has `main` in front.
        result.others = picked.dropFirst().map { self[$0] }
        return result
    }
}

/// Which of the run's variants an entry asks for, by their positions in the run's ``VariantSet``; 8
/// bytes, since millions of entries may have one.
package struct VariantSelection: OptionSet, Hashable, Sendable {
    package let rawValue: UInt64

    package init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    /// The variant at that position alone.
    ///
    /// - Precondition: the position is within 0…63.
    package static func position(_ position: Int) -> VariantSelection {
        precondition(
            (0..<VariantSet.maximumCount).contains(position), "a set has 64 variants at most")
        return VariantSelection(rawValue: 1 << UInt64(position))
    }
}

/// A variant that a run, or one of its entries, requests.
package struct RequestedVariant: Hashable, Sendable {
    package let name: VariantName
    package var recipe: Recipe { didSet { recipeText = recipe.canonicalText } }
    /// The canonical text of the recipe, computed once because every look-up and write needs it.
    package private(set) var recipeText: String

    package init(name: VariantName, recipe: Recipe) {
        self.name = name
        self.recipe = recipe
        recipeText = recipe.canonicalText
    }
}

/// The variants that a run, or one of its entries, requests: 1…64 with different names. `main` is
/// first if included; the others are in the given order.
///
/// Variants with the same recipe are the same bytes. Nearly every run requests one variant, which
/// needs no allocation.
package struct VariantSet: Hashable, Sendable {
    /// `main`, or the first variant without it; described by the fields of a report line.
    package private(set) var primary: RequestedVariant
    private var others: [RequestedVariant] = []

    /// The number of positions in a ``VariantSelection``.
    package static let maximumCount = 64

    package init(main recipe: Recipe) {
        self.init(RequestedVariant(name: .main, recipe: recipe))
    }

    package init(_ variant: RequestedVariant) {
        primary = variant
    }

    /// Moves `main` to the front. Refuses no variants, more than ``maximumCount``, and equal names.
    package init(_ variants: [RequestedVariant]) throws(UserError) {
        guard let first = variants.first, variants.count <= VariantSet.maximumCount else {
            throw UserError(
                .usage, "--variant: 1 to \(VariantSet.maximumCount) variants, including main")
        }
        var names: Set<VariantName> = []
        for variant in variants where !names.insert(variant.name).inserted {
            throw UserError(.usage, "--variant \(variant.name) is given twice")
        }
        let main = variants.firstIndex { $0.name == .main }
        primary = main.map { variants[$0] } ?? first
        others = variants
        others.remove(at: main ?? 0)
    }

    /// The recipe of `main`; nil if the entry excludes it.
    package var main: Recipe? { primary.name == .main ? primary.recipe : nil }

    /// The position of a variant, for a ``VariantSelection``; nil for an unknown name.
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
    /// The variants that an entry of the run requests: its selection, with `main` changed by its
    /// fields, and its own variants.
    ///
    /// The run's other variants do not change: `web` has one recipe for every image. An empty
    /// selection without own variants, which manifests cannot express, means all variants.
    package func applying(_ extras: EntryExtras?) -> VariantSet {
        guard let extras, extras.changesVariants else { return self }
        var result = picking(extras.variants, adding: extras.ownVariants)
        if var recipe = result.main {
            extras.main.apply(to: &recipe)
            result.primary.recipe = recipe
        }
        result.filter(by: extras.bodyFilter.map(\.name) ?? primary.recipe.bodyFilter)
        return result
    }

    /// Makes all variants of filtered bodies; nil for unfiltered ones.
    package mutating func filter(by name: BodyFilterName?) {
        primary.recipe.bodyFilter = name
        for index in others.indices { others[index].recipe.bodyFilter = name }
    }

    private func picking(
        _ selection: VariantSelection?, adding own: [RequestedVariant]
    ) -> VariantSet {
        guard let selection else {
            var result = self
            result.others += own
            return result
        }
        // The run's order has `main` first.
        let picked = indices.filter { selection.contains(.position($0)) }.map { self[$0] } + own
        guard let first = picked.first else { return self }
        var result = VariantSet(first)
        result.others = Array(picked.dropFirst())
        return result
    }
}

extension VariantSet {
    /// The set with the variants of another line of the same key appended; nil for more than
    /// ``maximumCount``.
    ///
    /// Variants with a name that has another recipe here are called `NAME~2`, `NAME~3`, …
    package func adding(_ line: VariantSet) -> VariantSet? {
        var result = self
        for variant in line where result.position(of: variant) == nil {
            guard result.count < VariantSet.maximumCount else { return nil }
            result.others.append(result.renamed(variant))
        }
        return result
    }

    /// The positions of a line's variants among the first `count`; nil if any is missing.
    package func positions(of line: VariantSet, within count: Int) -> [Int]? {
        var positions: [Int] = []
        for variant in line {
            guard let position = position(of: variant), position < count else { return nil }
            positions.append(position)
        }
        return positions
    }

    /// The position of a variant, by whatever name if its own has another recipe here.
    private func position(of variant: RequestedVariant) -> Int? {
        var recipe: Int?
        var isNameTaken = false
        for (position, other) in enumerated() {
            let isSame = other.recipeText == variant.recipeText
            if other.name == variant.name {
                if isSame { return position }
                isNameTaken = true
            }
            if isSame, recipe == nil { recipe = position }
        }
        return isNameTaken ? recipe : nil
    }

    private func renamed(_ variant: RequestedVariant) -> RequestedVariant {
        guard position(of: variant.name) != nil else { return variant }
        var number = 2
        while position(of: variant.name.numbered(number)) != nil { number += 1 }
        return RequestedVariant(name: variant.name.numbered(number), recipe: variant.recipe)
    }

    /// Names and recipes in order. Two sets with equal texts store the same.
    package var text: String {
        map { "\($0.name)=\($0.recipeText)" }.joined(separator: "\n")
    }

    /// Reads a ``text``; nil for any other text.
    package init?(text: String) {
        var variants: [RequestedVariant] = []
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: "=", maxSplits: 1)
            guard parts.count == 2, let name = VariantName(String(parts[0])),
                let recipe = Recipe(canonicalText: String(parts[1]))
            else { return nil }
            variants.append(RequestedVariant(name: name, recipe: recipe))
        }
        guard let first = variants.first else { return nil }
        self.init(first)
        others = Array(variants.dropFirst())
    }
}

/// The variants of a run that an entry requests, by position in the run's ``VariantSet``. 8 bytes,
/// since millions of entries may have one.
package struct VariantSelection: OptionSet, Hashable, Sendable {
    package let rawValue: UInt64

    package init(rawValue: UInt64) {
        self.rawValue = rawValue
    }

    package static func position(_ position: Int) -> VariantSelection {
        precondition(
            (0..<VariantSet.maximumCount).contains(position), "a set has 64 variants at most")
        return VariantSelection(rawValue: 1 << UInt64(position))
    }
}

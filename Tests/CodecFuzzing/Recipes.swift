import Codecs
package import PrefetchModel

extension Recipe {
    /// Recipes that together cover every path through the codecs.
    package static let samples: [Recipe] =
        [
            Recipe(encoding: .same),
            make(.same, quality: 100, .none),
            make(.same, quality: 40, .all, keepsLarger: true),
            make(.same, .safe, effort: .small, maximumStoredBytes: 600),
            make(.same, quality: 30, .none, effort: .fast),
            Recipe(encoding: .jpeg),
            make(
                .jpeg, quality: 60, .none, maximumStoredBytes: 2000,
                background: RGBColor(red: 51, green: 102, blue: 204)),
            Recipe(encoding: .png),
            make(.png, .none, effort: .small, keepsLarger: true),
            make(.png, .all, effort: .fast),
            Recipe(encoding: .original),
            make(.same, .safe, animation: .first),
            make(.png, .none, animation: .first),
            make(.jpeg, .safe, animation: .refuse),
        ] + encoded

    /// Recipes of formats that a build may lack.
    private static let encoded: [Recipe] = {
        var recipes: [Recipe] = []
        if EncodedImageFormat.webp.isMade {
            recipes += [
                Recipe(encoding: .webp),
                make(.webp, quality: 40, .none, effort: .small, maximumStoredBytes: 2000),
                make(.webp, quality: 95, .all, effort: .fast, animation: .first, keepsLarger: true),
                Recipe(encoding: .auto),
            ]
        }
        if EncodedImageFormat.avif.isMade {
            recipes += [
                make(.avif, .safe, animation: .first),
                make(.avif, quality: 30, .none, effort: .fast),
            ]
            var smallest = make(.auto, quality: 60, .none, effort: .fast)
            smallest.allowedFormats = Set(EncodedImageFormat.allCases.filter(\.isMade))
            recipes.append(smallest)
        }
        return recipes
    }()

    private static func make(
        _ encoding: Encoding, quality: Int = Recipe.defaultQuality, _ stripping: Stripping,
        effort: EncodingEffort = .balanced, maximumStoredBytes: Int? = nil,
        background: RGBColor = .white, animation: Animation = .keep, keepsLarger: Bool = false
    ) -> Recipe {
        var recipe = Recipe(encoding: encoding, quality: quality, keepsLarger: keepsLarger)
        recipe.stripping = stripping
        recipe.effort = effort
        recipe.maximumStoredBytes = maximumStoredBytes
        recipe.background = background
        recipe.animation = animation
        return recipe
    }

    /// Derives a recipe from the bytes, so that a fuzzer's input is only an image. Nearly every
    /// change of the input selects another recipe.
    ///
    /// - Parameters:
    ///   - bytes: The whole input.
    ///   - encodings: The encodings to choose from.
    ///   - steps: The steps to choose one to three from, as text; empty for none.
    package init(
        hashing bytes: UnsafeRawBufferPointer, encodings: [Encoding], steps: [String] = []
    ) {
        // FNV-1a. Its low bits are good enough after one more mixing step.
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        hash ^= hash >> 29
        func chosen<Element>(_ elements: [Element]) -> Element {
            let (quotient, remainder) = hash.quotientAndRemainder(
                dividingBy: UInt64(elements.count))
            hash = quotient
            return elements[Int(remainder)]
        }
        self.init(encoding: chosen(encodings), quality: chosen([85, 100, 60, 30, 5, 93]))
        stripping = chosen([.safe, .safe, .all, .none])
        effort = chosen([.balanced, .fast, .balanced, .small])
        maximumStoredBytes = chosen([nil, nil, nil, 400, 4000])
        background = chosen([.white, RGBColor(red: 51, green: 102, blue: 204)])
        keepsLarger = chosen([false, false, true])
        animation = chosen([.keep, .keep, .first, .refuse])
        guard !steps.isEmpty else { return }
        let text = (0..<chosen([1, 2, 3])).map { _ in chosen(steps) }.joined(separator: ",")
        do {
            transformations = try Recipe.steps(in: text)
        } catch {
            preconditionFailure("\(text): \(error)")
        }
    }
}

import PrefetchModel
import Testing

@Suite(.timeLimit(.minutes(15))) struct RecipeTests {
    /// Existing caches contain these texts.
    @Test func canonicalTextsOfDefaultsAreStable() {
        #expect(Recipe().canonicalText == "same;q=85;strip=safe")
        #expect(Recipe(encoding: .jpeg, quality: 40).canonicalText == "jpeg;q=40;strip=safe")
        #expect(Recipe(encoding: .png).canonicalText == "png;strip=safe")
        #expect(Recipe(encoding: .original).canonicalText == "original")
        #expect(Recipe(keepsLarger: true).canonicalText == "same;q=85;strip=safe;larger")
        #expect(Recipe(encoding: .png, keepsLarger: true).canonicalText == "png;strip=safe;larger")
    }

    @Test(arguments: [
        "same", "jpeg", "png", "webp", "avif", "auto", "original",
        "webp,q=1,strip=none,effort=small",
        "auto,allow-formats=png+avif,animated=first", "jpeg,background=#0a0b0c,max-bytes=20000",
        "same,800x600!,linear,round=2.5,tint=#01020304,keep-larger", "png,rotate=90,crop=9x9+1+2",
    ])
    func canonicalTextReadsBack(specification: String) throws {
        let recipe = try Recipe(specification: specification)
        #expect(Recipe(canonicalText: recipe.canonicalText)?.canonicalText == recipe.canonicalText)
    }

    @Test(arguments: [
        "", "same", "jpg;q=85;strip=safe", "same;q=0;strip=safe", "same;q=101;strip=safe",
        "same;strip=safe;q=85", "same;q=85;strip=safe;", "same;q=85;strip=safe;resize",
        "png;q=85;strip=safe", "same;q=85;strip=safe;max=0", "original;strip=safe",
        "same;q=085;strip=safe",
    ])
    func otherTextsAreNoRecipes(text: String) {
        #expect(Recipe(canonicalText: text) == nil)
    }

    @Test func canonicalTextIncludesStripping() {
        for stripping in [Recipe.Stripping.all, .none] {
            var recipe = Recipe(keepsLarger: true)
            recipe.stripping = stripping
            #expect(recipe.canonicalText == "same;q=85;strip=\(stripping);larger")
            recipe.encoding = .original
            #expect(recipe.canonicalText == "original")
        }
    }

    @Test func canonicalTextIncludesBackgroundOfJPEG() {
        var recipe = Recipe(encoding: .jpeg, keepsLarger: true)
        recipe.background = RGBColor(red: 255, green: 128, blue: 0)
        #expect(recipe.canonicalText == "jpeg;q=85;strip=safe;background=ff8000;larger")
        for encoding in [Recipe.Encoding.same, .png, .original] {
            recipe.encoding = encoding
            #expect(
                recipe.canonicalText == Recipe(encoding: encoding, keepsLarger: true).canonicalText)
        }
    }

    @Test func canonicalTextIncludesMaximumSizeOfJPEG() {
        var recipe = Recipe(encoding: .jpeg, keepsLarger: true)
        recipe.background = RGBColor(red: 0, green: 0, blue: 0)
        recipe.maximumStoredBytes = 20_000
        #expect(
            recipe.canonicalText
                == "jpeg;q=85;strip=safe;background=000000;max=20000;larger")
        recipe.encoding = .same
        #expect(recipe.canonicalText == "same;q=85;strip=safe;max=20000;larger")
        recipe.encoding = .png
        #expect(recipe.canonicalText == "png;strip=safe;larger")
        recipe.encoding = .original
        #expect(recipe.canonicalText == "original")
    }

    @Test func canonicalTextIncludesAnimation() {
        for animation in [Recipe.Animation.first, .refuse] {
            for encoding in [Recipe.Encoding.same, .jpeg, .png] {
                var recipe = Recipe(encoding: encoding, keepsLarger: true)
                let usual = Recipe(encoding: encoding).canonicalText
                recipe.animation = animation
                #expect(recipe.canonicalText == usual + ";animated=\(animation);larger")
            }
        }
        var recipe = Recipe(encoding: .original)
        recipe.animation = .first
        #expect(recipe.canonicalText == "original")
    }

    /// Kept data has no quality, but an animation's first frame is encoded.
    @Test(arguments: [EncodedImageFormat.webp, .png, .avif])
    func keptDataIgnoresQuality(format: EncodedImageFormat) {
        func effective(_ text: String) -> String {
            Recipe.effectiveText(of: text, under: .kept(orEncodedAs: format))
        }
        #expect(effective("same;q=85;strip=safe;max=9;effort=small;larger") == "same;strip=safe")
        #expect(effective("same;q=85;strip=all") == "same;strip=all")
        for text in [
            "same;q=85;strip=safe;animated=first", "jpeg;q=85;strip=safe", "png;strip=all",
        ] {
            #expect(effective(text) == text)
        }
    }

    @Test func ignoresOptionsWithoutEffectOnSame() {
        func effective(_ text: String) -> String {
            Recipe.effectiveText(of: text, under: .encoded(as: .png, ignoring: [.quality]))
        }
        #expect(effective("same;q=85;strip=safe;larger") == "png;strip=safe;larger")
        #expect(effective("png;strip=safe;larger") == "png;strip=safe;larger")
        for text in ["jpeg;q=85;strip=safe", "same;q=85;strip=safe;blur=2", "anything"] {
            #expect(effective(text) == text)
        }
        #expect(
            Recipe.effectiveText(of: "same;q=85;strip=safe", under: nil) == "same;q=85;strip=safe")
    }

    @Test func canonicalTextIncludesEffortOfPNG() {
        for effort in [EncodingEffort.fast, .small] {
            var recipe = Recipe(encoding: .png, keepsLarger: true)
            recipe.effort = effort
            #expect(recipe.canonicalText == "png;strip=safe;effort=\(effort);larger")
            recipe.encoding = .same
            recipe.maximumStoredBytes = 9
            #expect(recipe.canonicalText == "same;q=85;strip=safe;max=9;effort=\(effort);larger")
            recipe.encoding = .jpeg
            #expect(recipe.canonicalText == "jpeg;q=85;strip=safe;max=9;larger")
            recipe.encoding = .original
            #expect(recipe.canonicalText == "original")
        }
    }
}

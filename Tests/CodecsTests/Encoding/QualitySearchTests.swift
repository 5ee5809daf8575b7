import PrefetchModel
import Testing

@testable import Codecs

@Suite(.serialized, .timeLimit(.minutes(15))) struct QualitySearchTests {
    @Test func findsTheBestQualityInAFewTrials() throws {
        for wanted in 30..<100 {
            var trials = 0
            let found = try QualitySearch.best(below: 100) { quality throws(CodecError) in
                trials += 1
                return quality <= wanted ? quality : nil
            }
            #expect(found == wanted)
            #expect(trials <= 7)
        }
        let none = try QualitySearch.best(below: 85) { _ throws(CodecError) -> Int? in nil }
        #expect(none == nil)
        #expect(try QualitySearch.best(below: 30) { quality throws(CodecError) in quality } == nil)
    }

    private func recipe(_ most: Int?, _ encoding: Recipe.Encoding = .same) -> Recipe {
        var recipe = Recipe(encoding: encoding, quality: 95)
        recipe.maximumStoredBytes = most
        return recipe
    }

    /// A noisy JPEG of the highest quality.
    private func noise() throws -> [UInt8] {
        var state: UInt32 = 7
        let pixels = (0..<160 * 120 * 3).map { _ -> UInt8 in
            state = state &* 1_664_525 &+ 1_013_904_223
            return UInt8(state >> 26) + 96
        }
        return try Pixels(width: 160, height: 120, samples: pixels).jpeg(quality: 98)
    }

    @Test func requantisesUntilItFits() throws {
        let source = try noise()
        let whole = try stored(source, recipe(nil)).bytes.count
        let least = try stored(source, Recipe(quality: 30)).bytes.count
        for percent in [95, 80, 60, 40] {
            let most = whole * percent / 100
            let result = try stored(source, recipe(most))
            #expect(result.bytes.count <= most)
            // The next higher quality would not fit: at most one step is unused.
            #expect(result.bytes.count > most * 85 / 100 || most < least)
            #expect(try stored(source, recipe(most)).bytes == result.bytes)
            #expect(try stored(result.bytes, recipe(most)).isSource)
        }
        // An unreachable target: as small as the minimum quality gives.
        #expect(try stored(source, recipe(100)).bytes.count == least)
        // No quality is lost without a gain.
        #expect(try stored(source, recipe(whole)).bytes.count == whole)
        var lower = Recipe(quality: 20)
        let lowest = try stored(source, lower).bytes.count
        lower.maximumStoredBytes = 100
        #expect(try stored(source, lower).bytes.count == lowest)
    }

    @Test(arguments: 1...8)
    func turnsAndFitsTogether(orientation: Int) throws {
        let exif = JPEGTests.exif(orientation: orientation)
        let source = JPEGTests.inserting(exif, into: try noise())
        let whole = try stored(source, recipe(nil)).bytes.count
        let result = try stored(source, recipe(whole * 2 / 3))
        #expect(result.bytes.count <= whole * 2 / 3)
        let after = try imageHeader(result.bytes)
        #expect(after.displayedSize.width == result.image.widthInPixels)
        #expect(after.displayedSize.height == result.image.heightInPixels)
    }

    @Test func encodesUntilItFits() throws {
        let png = try stored(noise(), Recipe(encoding: .png)).bytes
        let whole = try stored(png, recipe(nil, .jpeg)).bytes.count
        let least = try stored(png, Recipe(encoding: .jpeg, quality: 30)).bytes.count
        for percent in [90, 60] {
            let most = whole * percent / 100
            let result = try stored(png, recipe(most, .jpeg))
            #expect(result.bytes.count <= most && result.bytes.count > most * 85 / 100)
        }
        #expect(try stored(png, recipe(100, .jpeg)).bytes.count == least)
        #expect(try stored(png, recipe(100)).bytes == stored(png).bytes)
    }
}

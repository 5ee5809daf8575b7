import CodecFuzzing
import Foundation
import PrefetchModel
import Testing

@testable import Codecs

/// Several results of one source are decoded once, and each equals the result of the recipe alone.
@Suite(.serialized, .timeLimit(.minutes(15))) struct SeveralRecipesTests {
    private func entry(
        _ source: [UInt8], _ recipes: [Recipe], check: SourceCheck = .decode,
        limits: CodecLimits = CodecLimits(), cancellation: Cancellation? = nil
    ) throws -> ProcessedEntry {
        try source.withUnsafeBytes {
            try ImageProcessor.process(
                $0, header: header(of: $0, limits: limits), recipes: recipes, limits: limits,
                check: check, cancellation: cancellation)
        }
    }

    /// A result without times.
    private struct Outcome: Equatable {
        var bytes: [UInt8]?
        var isSource = false
        var format: ImageFormat?
        var size: [Int] = []
        var error: CodecError?

        init(_ result: Result<ProcessedImage, CodecError>) {
            switch result {
            case .success(let image):
                format = image.format
                size = [image.widthInPixels, image.heightInPixels]
                switch image.output {
                case .source: isSource = true
                case .encoded(let made): bytes = made.withUnsafeBytes { [UInt8]($0) }
                }
            case .failure(let error): self.error = error
            }
        }
    }

    /// Compares all recipes together with each alone.
    private func check(_ source: [UInt8], _ recipes: [Recipe], _ name: String) throws {
        let together = try entry(source, recipes).results.map(Outcome.init)
        for (recipe, outcome) in zip(recipes, together) {
            let alone = Outcome(try entry(source, [recipe]).results[0])
            #expect(outcome == alone, "\(name): \(recipe.canonicalText)")
        }
    }

    private static let jpegs = [95, 85, 60, 30].map { Recipe(encoding: .jpeg, quality: $0) }

    @Test(arguments: Samples.jpegs + Samples.pngs)
    func equalSeparateRuns(source: [UInt8]) throws {
        try check(source, Recipe.samples + SeveralRecipesTests.jpegs, "a sample")
    }

    /// Covers all kinds of pixels, damage and animations.
    @Test(.enabled(if: TestData.isAvailable))
    func equalSeparateRunsOnCorpus() throws {
        let recipes = (Recipe.samples + SeveralRecipesTests.jpegs).filter {
            $0.effort != .small
        }
        var count = 0
        for folder in ["png", "jpeg"] {
            for (index, file) in try TestData.expectations(in: folder).enumerated()
            where index % 9 == 0 || file.path.contains("pngsuite/") {
                let source = try TestData.bytes(file.path)
                guard let header = try? imageHeader(source), header.pixels < 1_000_000,
                    (try? entry(source, [])) != nil
                else { continue }
                count += 1
                try check(source, recipes, file.path)
            }
        }
        #expect(count > 150)
    }

    @Test func decodeOnce() throws {
        let recipes = [
            Recipe(encoding: .png), Recipe(encoding: .jpeg), Recipe(encoding: .jpeg, quality: 40),
            Recipe(encoding: .original),
        ]
        let made = try entry(Samples.colourPNG, recipes)
        let durations = try made.results.map { try $0.get().decodeDuration }
        #expect(durations[0] > .zero)
        #expect(durations[1...].allSatisfy { $0 == .zero })
        #expect(made.decodeDuration == durations[0])
        #expect(made.isDecoded)
    }

    /// Several qualities of a JPEG are made one by one, each with its own time.
    @Test func qualitiesOfAJPEGAreMadeOneByOne() throws {
        let samples = (0..<256 * 192 * 3).map { UInt8(truncatingIfNeeded: $0 / 7 + $0 % 5 * 9) }
        let upright = try Pixels(width: 256, height: 192, samples: samples).jpeg(quality: 95)
        let turned = upright[..<2] + JPEGFile.orientationSegment(6) + upright[2...]
        var kept = Recipe(quality: 50)
        kept.stripping = .none
        var small = Recipe(quality: 90)
        small.maximumStoredBytes = 3000
        let recipes = [Recipe(quality: 80), Recipe(quality: 30), kept, small, Recipe(quality: 100)]
        for source in [upright, Array(turned)] {
            try check(source, recipes, "a gradient")
            let results = try entry(source, recipes).results.map { try $0.get() }
            #expect(results[0].decodeDuration > .zero)
            #expect(results[1].decodeDuration > .zero)
            #expect(Set(results.prefix(3).compactMap { Outcome(.success($0)).bytes }).count == 3)
        }
    }

    @Test func whatHasNoCodeIsMadeByItself() throws {
        try check(HandmadeJPEG.withHugeCoefficients(), SeveralRecipesTests.jpegs, "no codes")
    }

    @Test func impossibleRecipeDoesNotAffectOthers() throws {
        let animation = AnimationTests.Animation()
        let source = AnimationTests.Animation.file(animation.chunks)
        var refusing = Recipe(encoding: .jpeg)
        refusing.animation = .refuse
        let results = try entry(
            source, [refusing, Recipe(encoding: .original), Recipe(encoding: .png)]
        ).results
        guard case .failure(.unsupported) = results[0] else {
            Issue.record("\(results[0])")
            return
        }
        #expect(try results[1].get().format == .png)
        #expect(try results[2].get().format == .png)
    }

    /// The structure check accepts a JPEG with a damaged scan.
    @Test func damageFailsAllDecodingRecipes() throws {
        var damaged: [UInt8]?
        for place in (300..<Samples.baselineJPEG.count - 20) where damaged == nil {
            var source = Samples.baselineJPEG
            source[place] ^= 0x55
            if refusal(source) != nil, structureRefusal(source) == nil { damaged = source }
        }
        let source = try #require(damaged)
        let recipes = [
            Recipe(encoding: .png), Recipe(encoding: .original), Recipe(encoding: .jpeg),
        ]
        for result in try entry(source, recipes).results {
            guard case .failure(.corrupt) = result else {
                Issue.record("\(result)")
                continue
            }
        }
        let checked = try entry(source, recipes, check: .structure).results
        #expect(throws: CodecError.self) { try checked[0].get() }
        #expect(try checked[1].get().format == .jpeg)
        #expect(throws: CodecError.self) { try checked[2].get() }
    }

    @Test func structureCheckAloneDecodesNothing() throws {
        let original = [Recipe(encoding: .original)]
        #expect(try !entry(Samples.colourPNG, original, check: .structure).isDecoded)
        #expect(try entry(Samples.colourPNG, original).isDecoded)
        #expect(try entry(Samples.colourPNG, []).results.isEmpty)
    }

    @Test func equivalentRecipesShareOneResult() throws {
        let made = try entry(
            Samples.baselineJPEG,
            [
                Recipe(quality: 20, keepsLarger: true),
                Recipe(encoding: .jpeg, quality: 20, keepsLarger: true),
                Recipe(quality: 10, keepsLarger: true),
            ]
        ).results.map { try $0.get() }
        guard case .encoded(let one) = made[0].output, case .encoded(let other) = made[1].output
        else {
            Issue.record("nothing was made")
            return
        }
        #expect(one === other)
        #expect(Outcome(.success(made[2])) != Outcome(.success(made[0])))
    }

    @Test func cancellationEndsAllRecipes() throws {
        let cancellation = Cancellation()
        cancellation.cancel()
        #expect(throws: CodecError.cancelled) {
            try entry(
                Samples.colourPNG, [Recipe(), Recipe(encoding: .jpeg)], cancellation: cancellation)
        }
    }

    @Test func timeLimitAppliesToEachRecipe() throws {
        var limits = CodecLimits()
        limits.maximumTime = .zero
        let results = try entry(Samples.colourPNG, SeveralRecipesTests.jpegs, limits: limits)
            .results
        #expect(results.count == 4)
        for result in results {
            guard case .failure(.limitExceeded) = result else {
                Issue.record("\(result)")
                continue
            }
        }
    }

    // MARK: - Memory

    /// The memory of a process beyond the estimate: pages that the allocator keeps.
    private static let slack = 6 << 20

    /// The peak memory of this process in bytes. (The value of `getrusage` includes its parent's.)
    private static var peakMemory: Int {
        let text = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix("VmHWM:") } ?? ""
        return 1024 * (line.split(separator: " ").compactMap { Int($0) }.first ?? 0)
    }

    private static let manyRecipes: [Recipe] = {
        var background = Recipe(encoding: .jpeg, quality: 70)
        background.background = RGBColor(red: 1, green: 2, blue: 3)
        return [
            Recipe(encoding: .png), Recipe(encoding: .jpeg), Recipe(quality: 50),
            Recipe(encoding: .original), background,
        ]
    }()

    /// A picture of four megapixels that is neither flat nor noise, as JPEG and as PNG.
    private static func largePictures() throws -> [[UInt8]] {
        let (width, height) = (2048, 2048)
        let samples = (0..<width * height * 3).map { place -> UInt8 in
            let (y, x) = (place / 3).quotientAndRemainder(dividingBy: width)
            return UInt8(truncatingIfNeeded: x / 9 + y / 5 + place % 7)
        }
        let jpeg = try Pixels(width: width, height: height, samples: samples).jpeg(quality: 92)
        let png = try stored(jpeg, Recipe(encoding: .png), effort: .fast).bytes
        return [jpeg, png]
    }

    /// In separate processes, where nothing else allocates.
    @Test(.enabled(if: !TestData.hasSanitizer, "sanitizers keep what was freed"))
    func estimateCoversAllRecipesTogether() async throws {
        for source in try Self.largePictures() {
            let file = FileManager.default.temporaryDirectory.appending(
                path: "several-\(UUID().uuidString)")
            try Data(source).write(to: file)
            defer { try? FileManager.default.removeItem(at: file) }
            await #expect(processExitsWith: .success) { [path = file.path as String] in
                let recipes = SeveralRecipesTests.manyRecipes
                let source = try Data(contentsOf: URL(filePath: path))
                try source.withUnsafeBytes { bytes in
                    let header = try header(of: bytes)
                    // Loads all libraries.
                    _ = try stored(Samples.colourPNG, Recipe(encoding: .jpeg))
                    let before = SeveralRecipesTests.peakMemory
                    let made = try ImageProcessor.process(bytes, header: header, recipes: recipes)
                    let taken = SeveralRecipesTests.peakMemory - before
                    let need = ImageProcessor.memoryNeed(of: header, for: recipes, within: .max)
                    guard made.results.allSatisfy({ (try? $0.get()) != nil }) else { exit(2) }
                    guard taken > 12 << 20 else { exit(3) }
                    guard taken <= need + SeveralRecipesTests.slack else { exit(4) }
                }
            }
        }
    }

    /// In separate processes, where nothing else allocates.
    @Test(
        .enabled(if: !TestData.hasSanitizer, "sanitizers keep what was freed"),
        arguments: [
            "grey", "border=300,#ff000080", "2600x2600~#00ff00", "circle", "rotate=33",
            "rotate=90,rotate=10,#123456", "round=90:tl", "crop=1900x2000,grey,border=200,#f00",
        ])
    func estimateCoversEachStep(steps: String) async throws {
        for source in try Self.largePictures() {
            let file = FileManager.default.temporaryDirectory.appending(
                path: "steps-\(UUID().uuidString)")
            try Data(source).write(to: file)
            defer { try? FileManager.default.removeItem(at: file) }
            await #expect(processExitsWith: .success, "\(steps)") {
                [path = file.path as String, steps = steps as String] in
                let source = try Data(contentsOf: URL(filePath: path))
                try source.withUnsafeBytes { bytes in
                    let header = try header(of: bytes)
                    // Loads all libraries.
                    _ = try stored(Samples.colourPNG, Recipe(encoding: .jpeg))
                    // The encoder of a JPEG takes little, so that the steps decide the peak.
                    let recipe = try Recipe(specification: "jpeg," + steps)
                    let before = SeveralRecipesTests.peakMemory
                    let made = try ImageProcessor.process(bytes, header: header, recipes: [recipe])
                    let taken = SeveralRecipesTests.peakMemory - before
                    let need = ImageProcessor.memoryNeed(of: header, for: [recipe], within: .max)
                    guard (try? made.results[0].get()) != nil else { exit(2) }
                    guard taken > 12 << 20 else { exit(3) }
                    guard taken <= need + SeveralRecipesTests.slack else { exit(4) }
                }
            }
        }
    }

    @Test func moreRecipesNeedMoreMemory() throws {
        for source in Samples.jpegs + Samples.pngs {
            let header = try imageHeader(source)
            for recipe in Recipe.samples {
                for budget in [0, Int.max] {
                    let need = header.decodeMemoryBytes(for: header.settled(recipe, within: budget))
                    let known = ImageProcessor.memoryNeed(
                        of: header, for: [recipe], within: budget)
                    // If memory allows, a PNG that is only verified is decompressed at once.
                    let isWhole =
                        budget > 0 && recipe.encoding == .original && header.format == .png
                    #expect(isWhole ? known > need : known == need)
                }
            }
            let all = ImageProcessor.memoryNeed(of: header, for: Recipe.samples, within: .max)
            let most =
                Recipe.samples.map {
                    header.decodeMemoryBytes(for: header.settled($0, within: .max))
                }.max() ?? 0
            #expect(all > most)
        }
        // Saturates.
        var wide = Samples.colourPNG
        wide.replaceSubrange(
            16..<24, with: AnimationTests.bytes(0x7FFF_FFFF) + AnimationTests.bytes(0x7FFF_FFFF))
        let header = try imageHeader(wide, limits: CodecLimits(maximumPixels: 1 << 62))
        var larger = Recipe(encoding: .png, keepsLarger: true)
        larger.stripping = .all
        #expect(
            ImageProcessor.memoryNeed(
                of: header, for: [Recipe(encoding: .jpeg), larger], within: .max) == .max)
    }
}

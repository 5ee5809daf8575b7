import PrefetchModel
import SeededRandom
import Testing

@testable import Codecs

/// The plan of steps for pictures of a certain size.
struct TransformationPlanTests {
    private func plan(
        _ steps: String, _ width: Int, _ height: Int, format: ImageFormat = .png,
        orientation: Int = 1, isLinear: Bool = false
    ) throws -> TransformationPlan {
        var recipe = Recipe()
        recipe.transformations = try Recipe.steps(in: steps)
        recipe.isLinear = isLinear
        return try TransformationPlan(
            recipe, of: header(width, height, format: format, orientation: orientation))
    }

    private func header(
        _ width: Int, _ height: Int, format: ImageFormat = .png, orientation: Int = 1
    ) -> ImageHeader {
        ImageHeader(
            format: format, widthInPixels: width, heightInPixels: height, bitDepth: 8,
            isProgressiveOrInterlaced: false, orientation: orientation, channels: 3,
            memory: DecoderMemory(coefficientBytes: 3 * width * height), sourceBytes: 1000)
    }

    @Test(arguments: [
        ("300x300", 300, 200), ("resize=300", 300, 200), ("x100", 150, 100), ("1000x100", 150, 100),
        ("300x300^", 300, 300), ("300x300!", 300, 300), ("50%", 300, 200), ("60000@", 300, 200),
        // Neither of these enlarges.
        ("9000x9000", 600, 400), ("9000@", 116, 77), ("9000x9000^", 600, 400),
        ("700x100^", 600, 100),
        ("700x100!", 700, 100), ("1x1", 1, 1), ("100%", 600, 400), ("600x400!", 600, 400),
        ("crop=100x50", 100, 50), ("crop=100x50+550+375", 50, 25), ("crop=9000x9", 600, 9),
        ("rotate=90", 400, 600), ("rotate=180", 600, 400), ("rotate=270,300x300", 200, 300),
        ("flip=h", 600, 400), ("blur=2,round=4,tint=#fff", 600, 400),
        ("crop=200x200,50%", 100, 100), ("50%,crop=200x100", 200, 100),
    ])
    func resultsHaveTheirSize(steps: String, width: Int, height: Int) throws {
        #expect(try plan(steps, 600, 400).size == .init(width: width, height: height), "\(steps)")
        // The size is for the oriented picture.
        #expect(
            try plan(steps, 400, 600, orientation: 6).size == .init(width: width, height: height))
    }

    /// Sizes by `smallest_max_size`, `longest_max_size`, `center_crop` and `pad` of albumentations,
    /// which img2dataset uses, of 600 × 400 and of 60 × 40 pixels.
    @Test(arguments: [
        // keep_ratio, keep_ratio_largest, center_crop, border
        ("256^+", (384, 256), (384, 256)), ("256x256+", (256, 171), (256, 171)),
        ("256x256^+", (256, 256), (256, 256)), ("256x256~#fff+", (256, 256), (256, 256)),
        // with resize_only_if_bigger
        ("256^", (384, 256), (60, 40)), ("256x256", (256, 171), (60, 40)),
        ("256x256^>", (256, 256), (60, 40)), ("256x256~#fff>", (256, 256), (60, 40)),
        // The default crops and pads a smaller picture, too.
        ("50x50^", (50, 50), (50, 40)), ("50x30^>", (50, 30), (50, 30)),
        ("50x50^>", (50, 50), (60, 40)), ("256x256~#fff", (256, 256), (256, 256)),
        ("900+", (900, 600), (900, 600)), ("x80+", (120, 80), (120, 80)),
        ("1200x900^+", (1200, 900), (1200, 900)),
    ])
    func smallerPicturesAreScaledOnRequest(
        steps: String, large: (Int, Int), small: (Int, Int)
    ) throws {
        #expect(try plan(steps, 600, 400).size == .init(width: large.0, height: large.1))
        #expect(try plan(steps, 60, 40).size == .init(width: small.0, height: small.1))
        #expect(
            try plan(steps, 40, 60, orientation: 6).size
                == .init(width: small.0, height: small.1))
    }

    @Test func sizesOfHugePicturesAreFound() throws {
        let plan = try plan("1000000000^+", 1, 1_000_000_000)
        #expect(plan.mostPixels > 1 << 50)
    }

    @Test(arguments: [
        "9000x9000", "100%", "600x400!", "600x400^", "crop=600x400", "crop=9000x9000",
        "rotate=auto",
        "1000000@", "tint=#ff000000", "700x600^",
        "700x600^>", "9000x9000~#fff>", "400^", "9000^",
    ])
    func omitsStepsWithoutEffect(steps: String) throws {
        #expect(try plan(steps, 600, 400).isEmpty)
    }

    /// A long strip never vanishes.
    @Test func sidesHaveAtLeastOnePixel() throws {
        #expect(try plan("10x10", 60_000, 3).size == .init(width: 10, height: 1))
        #expect(try plan("1@", 60_000, 3).size == .init(width: 1, height: 1))
    }

    /// Results have at most the pixels of the limit, and nearly as many. One side differs by less
    /// than a pixel from the length in proportion to the other, unless that is 1.
    @Test(arguments: [1, 2, 7, 100, 8999, 120_000, 1_000_000, 2_000_000, 1_000_000_000])
    func pixelLimitIsNeverExceeded(limit: Int) throws {
        var random = SplitMix(seed: UInt64(limit))
        let sides =
            [1, 2, 3, 5, 16, 300, 400, 3024, 4032, 65_535, 1_000_000_000]
            + (0..<60).map { _ in Int.random(in: 1...20_000, using: &random) }
        for width in sides {
            for height in sides {
                let size = try plan("\(limit)@", width, height).size
                guard width * height > limit else {
                    #expect(size == .init(width: width, height: height))
                    continue
                }
                #expect(size.width * size.height <= limit, "\(width)×\(height)")
                #expect((size.width + 1) * (size.height + 1) > limit, "\(width)×\(height)")
                let ratio = Double(width) / Double(height)
                let (wide, high) = (Double(size.width), Double(size.height))
                #expect(
                    min(wide, high) == 1 || abs(wide - high * ratio) < 1
                        || abs(high - wide / ratio) < 1, "\(width)×\(height): \(size)")
            }
        }
    }

    @Test func refusesPartOutsidePicture() {
        for steps in ["crop=5x5+600+0", "crop=5x5+0+400", "50%,crop=5x5+300+0"] {
            #expect(throws: CodecError.self) { try plan(steps, 600, 400) }
        }
    }

    @Test(arguments: [
        ("300x300", 2), ("151x151", 2), ("150x150", 4), ("75x75", 4), ("resize=74", 8),
        ("resize=37", 8),
        ("resize=9", 8),
        ("300x150", 2), ("150x150!", 2), ("resize=300", 2), ("resize=301", 1),
        ("flip=h,resize=9", 1),
        ("crop=99x99,resize=9", 1),
        ("100x400^", 1), ("1x1!", 8),
    ])
    func decodersLeaveAFactorOfTwo(steps: String, scale: Int) throws {
        let plan = try plan(steps, 1200, 600, format: .jpeg)
        #expect(plan.scale.rawValue == scale, "\(steps)")
        #expect(try self.plan(steps, 1200, 600).scale == .full)
        #expect(try self.plan(steps, 1200, 600, format: .jpeg, isLinear: true).scale == .full)
    }

    /// A picture over the limit is accepted if it is decoded at a smaller scale.
    @Test func countsDecodedPixels() throws {
        let limits = CodecLimits(maximumPixels: 1_000_000)
        let large = header(4000, 3000, format: .jpeg)
        func check(_ steps: String) throws {
            var recipe = Recipe()
            recipe.transformations = steps.isEmpty ? [] : try Recipe.steps(in: steps)
            try large.checkPixels(for: recipe, limits)
        }
        #expect(throws: CodecError.self) { try check("") }
        try check("resize=500")
        #expect(throws: CodecError.self) { try check("resize=2000") }
        #expect(throws: CodecError.self) { try check("rotate=90,resize=500") }
        #expect(throws: CodecError.self) { try check("resize=500,9000x9000!") }
    }

    @Test func thumbnailNeedsLittleMemory() throws {
        let large = header(20_000, 20_000, format: .jpeg)
        var recipe = Recipe()
        recipe.transformations = try Recipe.steps(in: "256x256")
        #expect(large.decodeMemoryBytes(for: recipe) < 64 << 20)
        #expect(large.decodeMemoryBytes(for: Recipe(encoding: .png)) > 1 << 30)
        recipe.transformations = [.resize(.exact(width: 1_000_000_000, height: 1_000_000_000))]
        #expect(large.decodeMemoryBytes(for: recipe) > 1 << 60)
    }
}

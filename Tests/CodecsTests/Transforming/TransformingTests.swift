import CPNG
import CodecFuzzing
import Foundation
import PrefetchModel
import Testing

@testable import Codecs

/// Steps applied to pixels.
@Suite(.timeLimit(.minutes(15))) struct TransformingTests {
    let interruption = Interruption(CodecLimits(), nil)

    /// Samples by row and column, with any number of channels.
    struct Picture: Equatable {
        let width: Int
        let height: Int
        let channels: Int
        var samples: [UInt8]

        init(_ raster: borrowing Raster) {
            width = raster.widthInPixels
            height = raster.heightInPixels
            channels = raster.channels
            samples = raster.rows.packed
        }

        func largestDifference(from other: Picture) -> Int {
            guard (width, height, channels) == (other.width, other.height, other.channels) else {
                return .max
            }
            return zip(samples, other.samples).map { abs(Int($0) - Int($1)) }.max() ?? 0
        }
    }

    func raster(
        channels: Int, width: Int = 61, height: Int = 43, orientation: Int = 1
    ) throws -> Raster {
        let picture = ResampledPicture(photograph: 7, width, height, channels: channels)
        let stride = width * channels + 1
        let rows = try #require(malloc(stride * height)).bindMemory(
            to: UInt8.self, capacity: stride * height)
        for y in 0..<height {
            rows[y * stride] = 0
            for x in 0..<width {
                for (channel, sample) in picture[x, y].enumerated() {
                    rows[y * stride + 1 + x * channels + channel] = UInt8(sample)
                }
            }
        }
        var image = cpng_image_of(rows, UInt32(width), UInt32(height), 3, nil)
        image.color_type = [0, 0, 4, 2, 6][channels]
        image.row_bytes = width * channels
        image.filter_distance = Int32(channels)
        return Raster(owning: image, orientation: orientation)
    }

    func plan(_ steps: String, _ raster: borrowing Raster) throws -> TransformationPlan {
        var recipe = Recipe()
        recipe.transformations = try Recipe.steps(in: steps, overlay: Self.overlay)
        return try TransformationPlan(
            recipe,
            of: ImageHeader(
                format: .png, widthInPixels: raster.widthInPixels,
                heightInPixels: raster.heightInPixels, bitDepth: 8,
                isProgressiveOrInterlaced: false, orientation: raster.orientation,
                channels: raster.channels, sourceBytes: 0))
    }

    func transformed(_ raster: borrowing Raster, _ steps: String) throws -> Picture {
        var result = try raster.transformed(
            by: try plan(steps, raster), Self.overlays(), interruption)
        try result.turn(interruption)
        return Picture(result)
    }

    /// Steps on stored rows give the same result as on the oriented picture.
    @Test(
        arguments: 1...8,
        [
            "30x30", "20x30^", "50x20!", "80x80!", "50%", "700@", "crop=20x10+3+5",
            "crop=20x10:south-east",
            "rotate=90", "rotate=180", "rotate=270", "flip=h", "flip=v",
            "rotate=90,flip=h,crop=9x20+1+2",
            "flip=v,rotate=270,20x20^", "crop=40x20:west,rotate=90,resize=15", "blur=1.5",
            "round=9",
            "tint=#30609080", "rotate=90,blur=2,round=5,tint=#00ff0040,flip=v", "grey",
            "border=3,#ff000080", "64x50~#00ff00", "64x51~#0000ff80", "30x30~#fff", "rotate=30",
            "rotate=200.5,#123456", "round=9:tl,br", "circle", "overlay=mark@south-east",
            "rotate=90,round=9:tr,border=2,#000,overlay=mark@west,rotate=-3,flip=v,circle,grey",
        ])
    func everyOrientationGivesTheSamePicture(orientation: Int, steps: String) throws {
        let stored = try raster(channels: 3, orientation: orientation)
        var upright = try stored.copy()
        try upright.turn(interruption)
        let (left, right) = (try transformed(stored, steps), try transformed(upright, steps))
        // The order of summing columns and rows may differ.
        let isExact = !["blur", "resize", "30x30", "20x", "50", "80", "700"].contains {
            steps.contains($0)
        }
        #expect(left.largestDifference(from: right) <= (isExact ? 0 : 2), "\(steps)")
    }

    @Test(arguments: 1...4)
    func turnsComposeToNothing(channels: Int) throws {
        let raster = try raster(channels: channels)
        let whole = Picture(raster)
        for steps in [
            "rotate=90,rotate=270", "flip=h,flip=h", "rotate=180,flip=h,flip=v",
            "rotate=90,flip=h,rotate=90,flip=h", "flip=v,rotate=90,flip=h,rotate=270",
        ] {
            #expect(try transformed(raster, steps) == whole, "\(steps)")
        }
    }

    @Test func aQuarterTurnIsClockwise() throws {
        let raster = try raster(channels: 1, width: 3, height: 2)
        let source = Picture(raster).samples
        let turned = try transformed(raster, "rotate=90")
        #expect((turned.width, turned.height) == (2, 3))
        #expect(
            turned.samples == [3, 0, 4, 1, 5, 2].map { source[$0] })
        #expect(try transformed(raster, "flip=h").samples == [2, 1, 0, 5, 4, 3].map { source[$0] })
        #expect(try transformed(raster, "flip=v").samples == [3, 4, 5, 0, 1, 2].map { source[$0] })
        #expect(try transformed(raster, "crop=2x1+1+1").samples == [4, 5].map { source[$0] })
    }

    /// Compares with a plain Gaussian.
    @Test(arguments: 1...4, [0.5, 1.0, 3.3, 12.0])
    func blursByAGaussian(channels: Int, deviation: Double) throws {
        let raster = try raster(channels: channels)
        let source = Picture(raster)
        let made = try transformed(raster, "blur=\(deviation)")
        let reach = Int(4 * deviation) + 1
        let kernel = (-reach...reach).map { exp(-Double($0 * $0) / (2 * deviation * deviation)) }
        let hasAlpha = channels % 2 == 0
        func premultiplied(_ x: Int, _ y: Int) -> [Double] {
            let place = (y * source.width + x) * channels
            let pixel = source.samples[place..<place + channels].map(Double.init)
            guard hasAlpha, let alpha = pixel.last else { return pixel }
            return pixel.dropLast().map { $0 * alpha / 255 } + [alpha]
        }
        var (squares, count) = (0.0, 0)
        for y in stride(from: 0, to: source.height, by: 3) {
            for x in stride(from: 0, to: source.width, by: 3) {
                var (sum, weights) = ([Double](repeating: 0, count: channels), 0.0)
                for (down, weightDown) in zip(-reach...reach, kernel) {
                    for (across, weightAcross) in zip(-reach...reach, kernel) {
                        let pixel = premultiplied(
                            min(max(x + across, 0), source.width - 1),
                            min(max(y + down, 0), source.height - 1))
                        let weight = weightDown * weightAcross
                        weights += weight
                        for channel in 0..<channels { sum[channel] += weight * pixel[channel] }
                    }
                }
                let alpha = hasAlpha ? (sum.last ?? 0) / weights : 255
                for channel in 0..<channels {
                    let isAlpha = hasAlpha && channel == channels - 1
                    let value = sum[channel] / weights / (isAlpha ? 1 : max(alpha, 1) / 255)
                    let sample = made.samples[(y * made.width + x) * channels + channel]
                    // Nearly invisible colours do not count.
                    guard isAlpha || alpha > 16 else { continue }
                    squares += (Double(sample) - value) * (Double(sample) - value)
                    count += 1
                }
            }
        }
        let error = squares / Double(max(count, 1))
        #expect(count > 100)
        // Three box filters only approximate a Gaussian; 35 dB is a mean error of 4.5.
        #expect(10 * log10(255 * 255 / error) > 35, "\(error)")
    }

    @Test(arguments: 1...4, ["blur=0.3", "blur=2", "blur=50", "20x20", "90x7!"])
    func blurKeepsFlatColour(channels: Int, steps: String) throws {
        let raster = try raster(channels: channels)
        let colour: [UInt8] = [200, 100, 7, 255]
        let rows = try #require(raster.rows.rows)
        for y in 0..<raster.heightInPixels {
            for place in 0..<raster.bytesPerRow {
                let channel = place % channels
                rows[y * raster.stride + 1 + place] =
                    channels % 2 == 0 && channel == channels - 1 ? 255 : colour[channel]
            }
        }
        let made = try transformed(raster, steps)
        for (place, sample) in made.samples.enumerated() {
            let channel = place % channels
            let expected = channels % 2 == 0 && channel == channels - 1 ? 255 : colour[channel]
            #expect(sample == expected)
            if sample != expected { return }
        }
    }

    @Test func roundsCorners() throws {
        let raster = try raster(channels: 3, width: 40, height: 30)
        let made = try transformed(raster, "round=10")
        #expect(made.channels == 4)
        func alpha(_ x: Int, _ y: Int) -> UInt8 { made.samples[(y * 40 + x) * 4 + 3] }
        for (x, y) in [(0, 0), (39, 0), (0, 29), (39, 29), (2, 2)] { #expect(alpha(x, y) == 0) }
        for (x, y) in [(10, 0), (0, 10), (20, 15), (4, 4), (35, 25)] { #expect(alpha(x, y) == 255) }
        // Symmetric, and with the area that the circles leave.
        var covered = 0.0
        for y in 0..<30 {
            for x in 0..<40 {
                #expect(alpha(x, y) == alpha(39 - x, y) && alpha(x, y) == alpha(x, 29 - y))
                covered += Double(alpha(x, y)) / 255
            }
        }
        #expect(abs(covered - (1200 - (4 - Double.pi) * 100)) < 1)
    }

    @Test func tintBlendsByAlpha() throws {
        let raster = try raster(channels: 1)
        let source = Picture(raster)
        // A tint turns grey into RGB.
        let made = try transformed(raster, "tint=#ff000080")
        #expect(made.channels == 3)
        for (place, sample) in source.samples.enumerated() {
            let base = Int(sample) * 127
            #expect(Int(made.samples[3 * place]) == (255 * 128 + base + 127) / 255)
            #expect(Int(made.samples[3 * place + 1]) == (base + 127) / 255)
        }
        #expect(try transformed(raster, "tint=#808080ff").samples.allSatisfy { $0 == 128 })
    }

    // MARK: Whole images

    private func results(_ source: [UInt8], _ recipes: [Recipe]) throws -> [[UInt8]?] {
        try source.withUnsafeBytes { bytes in
            try ImageProcessor.process(
                bytes, header: header(of: bytes), recipes: recipes
            ).results.map { result in
                guard case .success(let image) = result else { return nil }
                switch image.output {
                case .source: return source
                case .encoded(let made): return made.withUnsafeBytes { [UInt8]($0) }
                }
            }
        }
    }

    private static let specifications = [
        "10x10", "jpeg,resize=15", "png,5x5^", "jpeg,crop=8x8:north,q=60", "png,round=3", "same",
        "png,rotate=90", "jpeg,round=4,background=black", "linear,resize=9", "png",
        "jpeg,strip=none,resize=12",
        "900x900", "jpeg,q=50", "strip=all,4x4!", "2x2", "png,tint=#ff000040,blur=1",
    ]

    /// One decode serves all recipes, and each result equals the recipe's alone.
    @Test(arguments: Samples.jpegs + Samples.pngs)
    func equalSeparateRuns(source: [UInt8]) throws {
        let recipes = try Self.specifications.map { try Recipe(specification: $0) }
        let together = try results(source, recipes)
        for (number, recipe) in recipes.enumerated() {
            let alone = try results(source, [recipe])[0]
            #expect(alone != nil && together[number] == alone, "\(recipe.canonicalText)")
        }
        let backwards = try results(source, recipes.reversed())
        #expect(Array(backwards.reversed()) == together)
    }

    @Test(.enabled(if: TestData.isAvailable))
    func equalSeparateRunsOnCorpus() throws {
        let recipes = try Self.specifications.map { try Recipe(specification: $0) }
        var count = 0
        for folder in ["png", "jpeg"] {
            for (index, file) in try TestData.expectations(in: folder).enumerated()
            where index % 12 == 0 || file.path.contains("pngsuite/basn") {
                let source = try TestData.bytes(file.path)
                guard let header = try? imageHeader(source), header.pixels < 400_000,
                    let together = try? results(source, recipes)
                else { continue }
                count += 1
                for (number, recipe) in recipes.enumerated() {
                    let alone = try results(source, [recipe])[0]
                    #expect(together[number] == alone, "\(file.path) \(recipe.canonicalText)")
                    guard let alone, alone != source else { continue }
                    let made = try imageHeader(alone)
                    let plan = try TransformationPlan(recipe, of: header)
                    guard !plan.isEmpty else { continue }
                    let size = TransformationPlan.Size(
                        width: made.widthInPixels, height: made.heightInPixels)
                    #expect(size == plan.size, "\(file.path) \(recipe.canonicalText)")
                    #expect(made.orientation == 1)
                }
            }
        }
        #expect(count > 60)
    }

    /// A picture that is not larger is stored as without a size.
    @Test(arguments: Samples.jpegs + Samples.pngs)
    func keepsSmallPictures(source: [UInt8]) throws {
        var recipe = Recipe()
        recipe.transformations = [.resize(.fit(width: 900, height: 900))]
        #expect(try results(source, [recipe]) == results(source, [Recipe()]))
    }

    @Test func cropOutsideFailsAlone() throws {
        let recipes = try ["crop=5x5+900+0", "10x10"].map { try Recipe(specification: $0) }
        let made = try results(Samples.colourPNG, recipes)
        #expect(made.map { $0 != nil } == [false, true])
    }
}

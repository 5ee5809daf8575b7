import CPNG
import PrefetchModel
import SeededRandom
import Testing

@testable import Codecs

/// Every frame of an animation is transformed, and shown for as long as before.
@Suite(.timeLimit(.minutes(15)))
struct AnimationTransformingTests {
    /// A displayed picture: red, green, blue and alpha of each pixel; colours that are fully
    /// transparent are zero.
    struct Picture: Hashable {
        let width: Int
        let height: Int
        var pixels: [SIMD4<UInt8>]

        init(width: Int, height: Int) {
            self.width = width
            self.height = height
            pixels = Array(repeating: .zero, count: width * height)
        }

        init(_ raster: borrowing Raster) {
            self.init(width: raster.widthInPixels, height: raster.heightInPixels)
            guard let rows = raster.rows.rows else { return }
            let channels = raster.channels
            for y in 0..<height {
                for x in 0..<width {
                    let sample = rows + y * raster.stride + 1 + x * channels
                    let alpha = channels == 4 ? sample[3] : 255
                    self[x, y] =
                        alpha == 0 ? .zero : SIMD4(sample[0], sample[1], sample[2], alpha)
                }
            }
        }

        subscript(x: Int, y: Int) -> SIMD4<UInt8> {
            get { pixels[y * width + x] }
            set { pixels[y * width + x] = newValue }
        }

        var mirrored: Picture {
            var result = self
            for y in 0..<height { for x in 0..<width { result[x, y] = self[width - 1 - x, y] } }
            return result
        }
    }

    struct Shown: Hashable {
        var picture: Picture
        var delay: FrameDelay
    }

    /// The frames of a file as a viewer shows them.
    static func shown(_ file: [UInt8]) throws -> (frames: [Shown], plays: Int) {
        try file.withUnsafeBytes { bytes in
            let header = try header(of: bytes)
            let codec = try #require(header.format.codec)
            let source = try codec.open(bytes, header, CodecLimits())
            let animated = try #require(source as? any AnimationDecoding)
            let description = try #require(animated.animation)
            let interruption = Interruption(CodecLimits(), nil)
            var canvas = try AnimationCanvas(
                of: header, isOpaque: description.isOpaque, interruption)
            var frames: [Shown] = []
            try animated.decodeFrames(interruption) { frame, control throws(CodecError) in
                try canvas.draw(frame, control, interruption)
                frames.append(Shown(picture: Picture(canvas.picture), delay: control.delay))
            }
            #expect(frames.count == description.frames)
            return (frames, description.plays)
        }
    }

    // MARK: Sources

    /// A random animated PNG, and its frames by the rules of the standard.
    struct Sample {
        static let (width, height) = (24, 17)
        var file: [UInt8] = []
        var frames: [Shown] = []
        let plays: Int

        /// - Parameters:
        ///   - seed: Each gives another animation.
        ///   - alphas: The alphas of pixels.
        ///   - isStaticImageAFrame: Whether the static image is shown.
        init(seed: UInt64, alphas: [UInt8], isStaticImageAFrame: Bool) {
            var random = SplitMix(seed: seed)
            plays = Int.random(in: 0...3, using: &random)
            let (width, height) = (Sample.width, Sample.height)
            let count = Int.random(in: 2...6, using: &random)
            var chunks: [(type: UInt32, data: [UInt8])] = [
                (.IHDR, be(width) + be(height) + [8, 6, 0, 0, 0]), (.acTL, be(count) + be(plays)),
            ]
            if !isStaticImageAFrame {
                chunks.append((.IDAT, Sample.stream(Picture(width: width, height: height))))
            }
            var (canvas, before) = (
                Picture(width: width, height: height), Picture(width: width, height: height)
            )
            var number = 0
            var last: (disposal: Int, x: Int, y: Int, frame: Picture)?
            for index in 0..<count {
                let isWhole = index == 0 && isStaticImageAFrame
                let x = isWhole ? 0 : Int.random(in: 0..<width, using: &random)
                let y = isWhole ? 0 : Int.random(in: 0..<height, using: &random)
                var frame = Picture(
                    width: isWhole ? width : Int.random(in: 1...(width - x), using: &random),
                    height: isWhole ? height : Int.random(in: 1...(height - y), using: &random))
                // Few colours in stripes, for encoders to keep them exactly.
                let colours = (0..<4).map { _ in
                    SIMD4<UInt8>(
                        .random(in: 0...255, using: &random), .random(in: 0...255, using: &random),
                        .random(in: 0...255, using: &random),
                        alphas.randomElement(using: &random) ?? 255)
                }
                for place in frame.pixels.indices {
                    frame.pixels[place] = colours[place / frame.width / 2 % 4]
                    if frame.pixels[place].w == 0 { frame.pixels[place] = .zero }
                }
                let disposal = Int.random(in: 0...2, using: &random)
                let blending = Int.random(in: 0...1, using: &random)
                let delay = [(0, 100), (3, 100), (1, 10), (77, 1000)].randomElement(using: &random)
                let (units, perSecond) = delay ?? (1, 10)
                chunks.append(
                    (
                        .fcTL,
                        be(number) + be(frame.width) + be(frame.height) + be(x) + be(y)
                            + be(units).suffix(2) + be(perSecond).suffix(2)
                            + [UInt8(disposal), UInt8(blending)]
                    ))
                number += 1
                if isWhole {
                    chunks.append((.IDAT, Sample.stream(frame)))
                } else {
                    chunks.append((.fdAT, be(number) + Sample.stream(frame)))
                    number += 1
                }
                switch last {
                case (1, let x, let y, let frame)?:
                    for row in 0..<frame.height {
                        for column in 0..<frame.width { canvas[x + column, y + row] = .zero }
                    }
                case (2, _, _, _)?: canvas = before
                default: break
                }
                before = canvas
                for row in 0..<frame.height {
                    for column in 0..<frame.width {
                        let pixel = frame[column, row]
                        let below = canvas[x + column, y + row]
                        canvas[x + column, y + row] =
                            blending == 1 ? Sample.over(pixel, below) : pixel
                    }
                }
                last = (disposal, x, y, frame)
                frames.append(
                    Shown(
                        picture: canvas,
                        delay: FrameDelay(numerator: units, denominator: perSecond)))
            }
            chunks.append((.IEND, []))
            file = AnimationTests.Animation.file(chunks)
        }

        /// PNG third edition, section 13.16, rounded.
        private static func over(_ top: SIMD4<UInt8>, _ bottom: SIMD4<UInt8>) -> SIMD4<UInt8> {
            let above = Double(top.w) / 255
            let below = Double(bottom.w) / 255 * (1 - above)
            guard above + below > 0 else { return .zero }
            var result = SIMD4<UInt8>.zero
            for channel in 0..<3 {
                let mixed = Double(top[channel]) * above + Double(bottom[channel]) * below
                result[channel] = UInt8((mixed / (above + below)).rounded())
            }
            result.w = UInt8(((above + below) * 255).rounded())
            return result
        }

        static func stream(_ picture: Picture) -> [UInt8] {
            AnimationTests.deflated(
                (0..<picture.height).flatMap { y in
                    [0]
                        + (0..<picture.width).flatMap { x in
                            let pixel = picture[x, y]
                            return [pixel.x, pixel.y, pixel.z, pixel.w]
                        }
                })
        }
    }

    private static let opaque: [UInt8] = [255]
    private static let binary: [UInt8] = [0, 255]
    private static let partial: [UInt8] = [0, 100, 255]

    private func recipe(_ encoding: Recipe.Encoding, _ steps: [Transformation]) -> Recipe {
        var recipe = Recipe(encoding: encoding)
        recipe.transformations = steps
        return recipe
    }

    /// A specification that may end with a comma.
    private func recipe(_ specification: String) throws -> Recipe {
        let parts = specification.split(separator: ",", omittingEmptySubsequences: true)
        return try Recipe(specification: parts.joined(separator: ","))
    }

    /// The same times in units; a second has `perSecond` of them.
    private func timed(_ frames: [Shown], perSecond: Int) -> [Shown] {
        frames.map {
            Shown(
                picture: $0.picture,
                delay: FrameDelay(
                    numerator: $0.delay.units(perSecond: perSecond), denominator: perSecond))
        }
    }

    /// Neighbours of equal pictures as one frame.
    private func merged(_ frames: [Shown]) -> [Shown] {
        frames.reduce(into: []) { merged, frame in
            guard let last = merged.last, last.picture == frame.picture else {
                return merged.append(frame)
            }
            merged[merged.count - 1].delay = FrameDelay(
                numerator: last.delay.numerator + frame.delay.numerator,
                denominator: last.delay.denominator)
        }
    }

    // MARK: Frames

    @Test(arguments: [opaque, binary, partial], [false, true])
    func sourceIsComposedByTheStandard(alphas: [UInt8], isStaticImageAFrame: Bool) throws {
        for seed in 0..<40 {
            let sample = Sample(
                seed: UInt64(seed), alphas: alphas, isStaticImageAFrame: isStaticImageAFrame)
            let shown = try Self.shown(sample.file)
            #expect(shown.frames == sample.frames, "seed \(seed)")
            #expect(shown.plays == sample.plays)
        }
    }

    @Test(arguments: [opaque, binary, partial])
    func everyFrameIsMirrored(alphas: [UInt8]) throws {
        for seed in 0..<40 {
            let sample = Sample(seed: UInt64(seed), alphas: alphas, isStaticImageAFrame: true)
            let expected = sample.frames.map {
                Shown(picture: $0.picture.mirrored, delay: $0.delay)
            }
            for encoding in [Recipe.Encoding.same, .png] {
                let made = try stored(sample.file, recipe(encoding, [.flip(.horizontal)]))
                #expect(made.image.format == .png)
                let shown = try Self.shown(made.bytes)
                #expect(shown.frames == expected, "seed \(seed)")
                #expect(shown.plays == sample.plays)
            }
            #if WebP
                let webP = merged(timed(expected, perSecond: 1_000))
                guard webP.count > 1 else { continue }
                for encoding in [Recipe.Encoding.webp, .auto] {
                    let made = try stored(sample.file, recipe(encoding, [.flip(.horizontal)]))
                    #expect(made.image.format == .webp)
                    let shown = try Self.shown(made.bytes)
                    #expect(shown.frames == webP, "seed \(seed)")
                    #expect(shown.plays == sample.plays)
                }
            #endif
        }
    }

    #if GIF && WebP
        /// Palettes stay exact, unless that exceeds a limit, and after steps that mix few colours.
        @Test(arguments: [opaque, binary], ["", "flip=h", "crop=20x15", "border=2,#00ff00"])
        func palettesStayExactInWebP(alphas: [UInt8], steps: String) throws {
            for seed in 0..<20 {
                let sample = Sample(seed: UInt64(seed), alphas: alphas, isStaticImageAFrame: true)
                let source = try gif(of: sample.file)
                let exact = try stored(source, recipe("png,\(steps)"))
                let wanted = merged(timed(try Self.shown(exact.bytes).frames, perSecond: 1_000))
                guard wanted.count > 1 else { continue }
                for quality in [30, 100] {
                    var recipe = try recipe("webp,\(steps)")
                    recipe.quality = quality
                    let made = try stored(source, recipe)
                    #expect(try Self.shown(made.bytes).frames == wanted, "seed \(seed)")
                    recipe.maximumStoredBytes = made.bytes.count - 1
                    #expect(try stored(source, recipe).bytes != made.bytes)
                }
            }
        }
    #endif

    #if GIF
        /// The pixels of a GIF are opaque or transparent.
        func gif(of file: [UInt8]) throws -> [UInt8] {
            try file.withUnsafeBytes { bytes in
                let header = try header(of: bytes)
                let interruption = Interruption(CodecLimits(), nil)
                let source = try PNGSource(bytes, header: header, limits: CodecLimits())
                let plan = try TransformationPlan(Recipe(), of: header)
                let animation = TransformedAnimation(
                    source, try #require(source.animation), of: header, by: .gif, plan,
                    Overlays(),
                    try ColourHandling(
                        of: source.colours,
                        in: ColourTarget(Recipe(), as: nil, of: header, after: plan)),
                    wantsPlaceholder: false, interruption)
                return try AnimationEncoder.gif.encode(
                    animation, .none, Recipe(), interruption
                ).withUnsafeBytes { [UInt8]($0) }
            }
        }

        @Test(arguments: [opaque, binary])
        func framesOfGIFsAreExact(alphas: [UInt8]) throws {
            for seed in 0..<60 {
                let sample = Sample(seed: UInt64(seed), alphas: alphas, isStaticImageAFrame: true)
                let source = try gif(of: sample.file)
                let expected = timed(sample.frames, perSecond: 100)
                let shown = try Self.shown(source)
                #expect(shown.frames == expected, "seed \(seed)")
                #expect(shown.plays == sample.plays)
                let made = try stored(source, recipe(.same, [.flip(.horizontal)]))
                #expect(made.image.format == .gif)
                let mirrored = try Self.shown(made.bytes)
                #expect(
                    mirrored.frames
                        == expected.map { Shown(picture: $0.picture.mirrored, delay: $0.delay) },
                    "seed \(seed)")
                #expect(mirrored.plays == sample.plays)
            }
        }

        /// Pillow and libvips clear a frame to a colour if it has no transparent index.
        @Test func clearedFramesHaveATransparentIndex() throws {
            for seed in 0..<60 {
                let sample = Sample(
                    seed: UInt64(seed), alphas: Self.binary, isStaticImageAFrame: true)
                let source = try gif(of: sample.file)
                for start in source.indices.dropLast(8)
                where source[start...].starts(with: [0x21, 0xF9, 4]) {
                    let flags = source[start + 3]
                    if flags >> 2 & 7 == 2 { #expect(flags & 1 == 1, "seed \(seed)") }
                }
            }
        }

        /// A frame may be far larger than its canvas.
        @Test func memoryOfFramesIsThatOfTheCanvas() throws {
            let source = try FormatSample.named("animation-beyond-screen", .gif)
            try source.withUnsafeBytes { bytes in
                let header = try header(of: bytes)
                let gif = try GIFSource(bytes, header: header, limits: CodecLimits())
                var count = 0
                try gif.decodeFrames(Interruption(CodecLimits(), nil)) { frame, control in
                    count += 1
                    guard control.x < header.widthInPixels, control.y < header.heightInPixels
                    else { return }
                    #expect(control.x + frame.widthInPixels <= header.widthInPixels)
                    #expect(control.y + frame.heightInPixels <= header.heightInPixels)
                }
                #expect(count == header.frames && count > 1)
            }
        }

        /// The canvas before the first frame is transparent.
        @Test(arguments: [2, 3] as [UInt8])
        func firstFrameOfAGIFIsTakenBack(disposal: UInt8) throws {
            let sample = Sample(seed: 4, alphas: [255], isStaticImageAFrame: true)
            var source = try gif(of: sample.file)
            let control = try #require(source.firstRange(of: [0x21, 0xF9, 4])).lowerBound
            source[control + 3] = source[control + 3] & 0xE3 | disposal << 2
            let second = try Self.shown(source).frames[1].picture
            #expect(second.pixels.contains { $0.w == 0 })
            #expect(second.pixels.contains { $0.w == 255 })
            let made = try stored(source, recipe(.png, [.flip(.horizontal)]))
            #expect(try Self.shown(made.bytes).frames[1].picture == second.mirrored)
        }

        /// Half transparent pixels are opaque in a GIF, or transparent.
        @Test func alphaOfGIFsIsRounded() throws {
            let sample = Sample(
                seed: 3, alphas: [0, 100, 160, 255], isStaticImageAFrame: true)
            let frames = try Self.shown(gif(of: sample.file)).frames
            for (made, source) in zip(frames, sample.frames) {
                for (pixel, original) in zip(made.picture.pixels, source.picture.pixels) {
                    #expect(pixel.w == (original.w < 128 ? 0 : 255))
                }
            }
        }

        /// Each pixel gets the nearest of 256 colours if there are more.
        @Test func reducedColorsAreTheNearest() throws {
            var random = SplitMix(seed: 7)
            var picture = Picture(width: 60, height: 40)
            for place in picture.pixels.indices {
                let (x, y) = (place % 60, place / 60)
                picture.pixels[place] = SIMD4(
                    UInt8(4 * x) &+ .random(in: 0...15, using: &random), UInt8(6 * y),
                    UInt8(2 * x + 3 * y), 255)
            }
            let made = try Self.shown(gif(of: Self.mirroring(picture))).frames[0].picture
            func distance(_ one: SIMD4<UInt8>, _ other: SIMD4<UInt8>) -> Int {
                let apart = SIMD4<Int>(truncatingIfNeeded: one) &- SIMD4(truncatingIfNeeded: other)
                return (apart &* apart).wrappedSum()
            }
            let colours = Set(made.pixels)
            #expect(colours.count > 200 && colours.count <= 256)
            var sum = 0
            for (pixel, original) in zip(made.pixels, picture.pixels) {
                let least = colours.lazy.map { distance($0, original) }.min()
                #expect(distance(pixel, original) == least)
                sum += least ?? 0
            }
            // The library's own palette gives 136, a third round 92.
            #expect(sum / made.pixels.count < 100)
        }

        /// A palette has 256 colours.
        @Test func colorsOfGIFsAreReduced() throws {
            var sample = Sample(seed: 1, alphas: [255], isStaticImageAFrame: true)
            let source = AnimationTests.Animation().file
            sample.file = source
            let shown = try Self.shown(source).frames
            let made = try Self.shown(gif(of: source)).frames
            #expect(made.count == shown.count)
            for (first, second) in zip(made, shown) {
                for (pixel, original) in zip(first.picture.pixels, second.picture.pixels) {
                    for channel in 0..<3 {
                        #expect(abs(Int(pixel[channel]) - Int(original[channel])) <= 40)
                    }
                }
            }
        }
    #endif

    /// A picture and its mirror image as an animated PNG.
    private static func mirroring(_ picture: Picture) -> [UInt8] {
        let size = be(picture.width) + be(picture.height)
        let control = size + be(0) + be(0) + [0, 1, 0, 10, 0, 0]
        return AnimationTests.Animation.file([
            (.IHDR, size + [8, 6, 0, 0, 0]), (.acTL, be(2) + be(0)),
            (.fcTL, be(0) + control), (.IDAT, Sample.stream(picture)),
            (.fcTL, be(1) + control), (.fdAT, be(2) + Sample.stream(picture.mirrored)),
            (.IEND, []),
        ])
    }

    #if WebP
        /// A photograph in a white frame is flat, but smaller as a lossy animation.
        @Test func flatAnimationsAreLosslessIfSmaller() throws {
            var random = SplitMix(seed: 3)
            var picture = Picture(width: 120, height: 80)
            for place in picture.pixels.indices {
                let (x, y) = (place % 120, place / 120)
                let isFramed = (20..<75).contains(x) && (10..<70).contains(y)
                let grey = UInt8(x + y) &+ .random(in: 0...24, using: &random)
                picture.pixels[place] =
                    isFramed ? SIMD4(grey, grey, grey, 255) : SIMD4(repeating: 255)
            }
            let file = Self.mirroring(picture)
            let made = try stored(file, recipe(.webp, [.flip(.horizontal)]))
            #expect(try Self.shown(made.bytes).frames[1].picture != picture)
            var small = recipe(.webp, [.flip(.horizontal)])
            small.maximumStoredBytes = made.bytes.count * 3 / 4
            #expect(try stored(file, small).bytes.count <= made.bytes.count * 3 / 4)
            // Without noise it is smaller lossless.
            for place in picture.pixels.indices where picture.pixels[place].x < 255 {
                picture.pixels[place] = SIMD4(40, 40, 200, 255)
            }
            let exact = try stored(Self.mirroring(picture), recipe(.webp, [.flip(.horizontal)]))
            #expect(try Self.shown(exact.bytes).frames[1].picture == picture)
        }

        /// The mean of a frame hides a corner of other colours.
        @Test func photographsAreLossyUnlessACornerIsWrong() throws {
            for corner in [0, 16, 40] {
                var random = SplitMix(seed: 8)
                var picture = Picture(width: 200, height: 150)
                for place in picture.pixels.indices {
                    let (x, y) = (place % 200, place / 200)
                    let noise = UInt8.random(in: 0...31, using: &random)
                    let isCorner = x < corner && y < corner
                    let pattern: SIMD4<UInt8> =
                        (x + y) % 2 == 0 ? SIMD4(255, 0, 0, 255) : SIMD4(0, 0, 255, 255)
                    picture.pixels[place] =
                        isCorner
                        ? pattern
                        : SIMD4(UInt8(x / 2) + noise, 100 + noise, UInt8(y / 2) + noise, 255)
                }
                let file = Self.mirroring(picture)
                let made = try stored(file, recipe(.webp, []))
                let frames = try Self.shown(made.bytes).frames
                #expect(frames.count == 2)
                let isExact = frames.map(\.picture) == [picture, picture.mirrored]
                #expect(isExact == (corner > 0), "\(corner)")
                var small = recipe(.webp, [])
                small.maximumStoredBytes = 20_000
                #expect(try stored(file, small).bytes.count <= 20_000)
            }
        }

        /// Strong colours are lossless unless a size limit asks for less.
        @Test func limitedAnimationsAreLossy() throws {
            var random = SplitMix(seed: 4)
            var picture = Picture(width: 64, height: 64)
            for place in picture.pixels.indices {
                picture.pixels[place] = SIMD4(
                    .random(in: 0...255, using: &random), .random(in: 0...255, using: &random),
                    .random(in: 0...255, using: &random), 255)
            }
            let file = Self.mirroring(picture)
            var recipe = recipe(.webp, [.flip(.horizontal)])
            let exact = try stored(file, recipe)
            #expect(try Self.shown(exact.bytes).frames[1].picture == picture)
            recipe.maximumStoredBytes = exact.bytes.count / 2
            #expect(try stored(file, recipe).bytes.count <= exact.bytes.count / 2)
        }
    #endif

    static func still(_ picture: Picture) -> [UInt8] {
        AnimationTests.Animation.file([
            (.IHDR, be(picture.width) + be(picture.height) + [8, 6, 0, 0, 0]),
            (.IDAT, Sample.stream(picture)), (.IEND, []),
        ])
    }

    /// Every frame is the still picture's result.
    @Test(
        arguments: [opaque, partial],
        [
            "grey", "border=3,#ff0000", "border=2,#0000ff80", "circle", "round=5:tl,br",
            "30x30~#00ff00", "30x18~#00000000", "24x17~#00000000,flip=h", "rotate=20",
            "rotate=-33.3,#102030",
            "overlay=mark@south-east", "rotate=90,grey,overlay=mark@north,border=1,#fff,rotate=5",
        ])
    func everyFrameIsDrawnOn(alphas: [UInt8], steps: String) throws {
        let steps = try Recipe.steps(in: steps, overlay: TransformingTests.overlay)
        for seed in 0..<6 {
            let sample = Sample(seed: UInt64(seed), alphas: alphas, isStaticImageAFrame: true)
            func frames(_ encoding: Recipe.Encoding) throws -> [Shown] {
                let made = try sample.file.withUnsafeBytes { bytes in
                    try ImageProcessor.process(
                        bytes, header: header(of: bytes), recipes: [recipe(encoding, steps)],
                        overlays: TransformingTests.overlays()
                    ).results[0].get()
                }
                guard case .encoded(let file) = made.output else { return [] }
                return try Self.shown(file.withUnsafeBytes { [UInt8]($0) }).frames
            }
            let wanted = try sample.frames.map { frame in
                try Self.still(frame.picture).withUnsafeBytes { bytes in
                    let header = try header(of: bytes)
                    let plan = try TransformationPlan(recipe(.png, steps), of: header)
                    let source = try PNGSource(bytes, header: header, limits: CodecLimits())
                    let interruption = Interruption(CodecLimits(), nil)
                    var made = try source.raster(at: .full, interruption)
                        .transformed(by: plan, TransformingTests.overlays(), interruption)
                    try made.turn(interruption)
                    return Shown(
                        picture: Picture(
                            try made.plain(hasColour: true, hasAlpha: true, interruption)),
                        delay: frame.delay)
                }
            }
            #expect(try frames(.png) == wanted, "seed \(seed)")
        }
    }

    // MARK: Sizes

    @Test func everyFrameIsResized() throws {
        let sample = Sample(seed: 5, alphas: Self.partial, isStaticImageAFrame: true)
        let made = try stored(sample.file, recipe(.png, [.resize(.exact(width: 12, height: 9))]))
        #expect((made.image.widthInPixels, made.image.heightInPixels) == (12, 9))
        let frames = try Self.shown(made.bytes).frames
        #expect(frames.map(\.delay) == sample.frames.map(\.delay))
        #expect(frames.allSatisfy { $0.picture.width == 12 && $0.picture.height == 9 })
        // Each frame as a still picture.
        for (index, frame) in sample.frames.enumerated() {
            let still = Self.still(frame.picture)
            let resized = try ShownPixels(
                png: try stored(still, recipe(.png, [.resize(.exact(width: 12, height: 9))])).bytes)
            for y in 0..<9 {
                for x in 0..<12 {
                    let expected = resized.pixel(x, y) / 257
                    guard expected.w > 0 else { continue }
                    #expect(
                        SIMD4<UInt16>(truncatingIfNeeded: frames[index].picture[x, y]) == expected)
                }
            }
        }
    }

    /// The limit of pixels is for all frames together.
    @Test func scalingDownCountsAllFrames() throws {
        let sample = Sample(seed: 8, alphas: Self.opaque, isStaticImageAFrame: true)
        var recipe = Recipe(encoding: .png)
        recipe.scaleDown(toPixels: 24 * 17 * sample.frames.count / 4)
        let made = try stored(sample.file, recipe)
        // 102 pixels a frame are less than 12 × 9.
        #expect((made.image.widthInPixels, made.image.heightInPixels) == (12, 8))
        recipe.scaleDown(toPixels: 24 * 17 * sample.frames.count)
        #expect(try stored(sample.file, recipe).image.widthInPixels == 12)
        recipe.encoding = .jpeg
        recipe.transformations = [.resize(.pixels(24 * 17))]
        #expect(try stored(sample.file, recipe).image.widthInPixels == 24)
    }

    // MARK: First frames

    /// Formats that have no animations take the first frame, and say so.
    @Test(arguments: [Recipe.Encoding.jpeg, .png, .webp, .avif], ["", "flip=v", "10x10!"])
    func namedFormatsAreGiven(encoding: Recipe.Encoding, steps: String) throws {
        guard encoding.format?.isMade == true else { return }
        let sample = Sample(seed: 5, alphas: Self.opaque, isStaticImageAFrame: true)
        let names: [ImageFormat: String] = [
            .gif: "animation", .webp: "animation", .avif: "sequence",
        ]
        let sources =
            try [sample.file]
            + names.filter { CodecLibraries.decodes($0.key) }.map {
                try FormatSample.named($0.value, $0.key)
            }
        for source in sources {
            let (format, frames) = try (imageHeader(source).format, Self.shown(source).frames.count)
            var recipe = try recipe("\(encoding.rawValue),\(steps)")
            let isKept = format == .avif && steps.isEmpty
            let isAnimated = encoding == .png || encoding == .webp || encoding == .avif && isKept
            let made = try stored(source, recipe)
            #expect(made.image.format.rawValue == encoding.rawValue)
            #expect(try imageHeader(made.bytes).isAnimated == isAnimated)
            #expect(made.image.framesOfSource == (isAnimated ? nil : frames))
            let text = isAnimated ? nil : "only the first of \(frames) frames is stored"
            #expect(try warning(source, recipe)?.text == text)
            recipe.animation = .first
            let first = try stored(source, recipe)
            #expect(first.image.format.rawValue == encoding.rawValue)
            #expect(first.image.framesOfSource == nil)
            #expect(try warning(source, recipe) == nil)
            if !isAnimated { #expect(first.bytes == made.bytes) }
        }
    }

    @Test func damagedFrameIsNamed() throws {
        let animation = AnimationTests.Animation(missingRows: 1)
        for encoding in [Recipe.Encoding.png, .webp] where encoding.format?.isMade == true {
            let error = refusal(animation.file, recipe(encoding, [.flip(.horizontal)]))
            guard case .corrupt(let text, false) = error else {
                Issue.record("\(String(describing: error))")
                continue
            }
            #expect(text.hasPrefix("frame 1 of 2: "), "\(text)")
        }
    }
}

/// Four bytes, the most significant first.
private func be(_ value: Int) -> [UInt8] { AnimationTests.bytes(UInt32(value)) }

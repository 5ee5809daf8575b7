import CPNG
import Foundation
import PrefetchModel
import Testing

@testable import Codecs

/// Steps that draw: against plain arithmetic on floating-point numbers.
extension TransformingTests {
    // MARK: Overlays

    /// A PNG of 9×7 pixels, with every alpha from 0 to 255.
    static let mark: [UInt8] = {
        let (width, height) = (9, 7)
        var rows: [UInt8] = []
        for y in 0..<height {
            rows.append(0)
            for x in 0..<width { rows += markPixel(x, y) }
        }
        return AnimationTests.Animation.file([
            (.IHDR, be(width) + be(height) + [8, 6, 0, 0, 0]),
            (.IDAT, AnimationTests.deflated(rows)), (.IEND, []),
        ])
    }()

    private static func markPixel(_ x: Int, _ y: Int) -> [UInt8] {
        [UInt8(x * 28), UInt8(y * 40), UInt8(200 - x * y), UInt8((x * 7 + y * 41) % 256 / 62 * 62)]
    }

    private static let digest = ContentDigest(hexadecimal: String(repeating: "0f", count: 32))

    static func overlay(_ file: String) throws(UserError) -> ContentDigest {
        guard let digest else { throw UserError(.usage, "no digest") }
        return digest
    }

    static func overlays() throws -> Overlays {
        var overlays = Overlays()
        let digest = try #require(digest)
        try mark.withUnsafeBytes { try overlays.add($0, digest) }
        return overlays
    }

    // MARK: Models

    /// Red, green, blue and alpha from 0 to 1; grey three times.
    private typealias Pixel = SIMD4<Double>

    private func pixel(_ picture: Picture, _ x: Int, _ y: Int) -> Pixel {
        guard (0..<picture.width).contains(x), (0..<picture.height).contains(y) else {
            return .zero
        }
        let start = (y * picture.width + x) * picture.channels
        let samples = picture.samples[start..<start + picture.channels].map { Double($0) / 255 }
        switch picture.channels {
        case 1: return Pixel(samples[0], samples[0], samples[0], 1)
        case 2: return Pixel(samples[0], samples[0], samples[0], samples[1])
        case 3: return Pixel(samples[0], samples[1], samples[2], 1)
        default: return Pixel(samples[0], samples[1], samples[2], samples[3])
        }
    }

    private func over(_ above: Pixel, _ below: Pixel) -> Pixel {
        let rest = below.w * (1 - above.w)
        let alpha = above.w + rest
        guard alpha > 0 else { return .zero }
        var result = (above * above.w + below * rest) / alpha
        result.w = alpha
        return result
    }

    /// Whether all samples are within one step of the model, colours as far as they are visible.
    private func expect(
        _ made: Picture, is model: (_ x: Int, _ y: Int) -> Pixel, _ comment: String
    ) {
        var worst = 0.0
        for y in 0..<made.height {
            for x in 0..<made.width {
                let (shown, wanted) = (pixel(made, x, y), model(x, y))
                worst = max(worst, abs(shown.w - wanted.w) * 255)
                guard wanted.w > 0.02 else { continue }
                for channel in 0..<(made.channels < 3 ? 1 : 3) {
                    // The 8 bits of alpha limit what the colours of a mixture can be.
                    worst = max(worst, abs(shown[channel] - wanted[channel]) * 255)
                }
            }
        }
        #expect(worst <= 1.001, "\(comment)")
    }

    private static let colours: [(text: String, pixel: SIMD4<Double>)] = [
        ("#ff8000", SIMD4(255, 128, 0, 255) / 255), ("#0000ff80", SIMD4(0, 0, 255, 128) / 255),
        ("#808080", SIMD4(128, 128, 128, 255) / 255), ("#12345600", .zero),
    ]

    // MARK: Steps

    @Test(arguments: 1...4, 0..<4)
    func bordersSurroundThePicture(channels: Int, colour: Int) throws {
        let (text, color) = Self.colours[colour]
        let raster = try raster(channels: channels, width: 13, height: 8)
        let source = Picture(raster)
        let made = try transformed(raster, "border=3,\(text)")
        #expect((made.width, made.height) == (19, 14))
        expect(
            made,
            is: { x, y in
                (3..<16).contains(x) && (3..<11).contains(y)
                    ? pixel(source, x - 3, y - 3) : color
            }, "border=3,\(text) of \(channels) channels")
    }

    @Test(arguments: 1...4, 0..<4)
    func paddingIsBehindThePicture(channels: Int, colour: Int) throws {
        let (text, color) = Self.colours[colour]
        let raster = try raster(channels: channels, width: 13, height: 8)
        let source = Picture(raster)
        for (width, height) in [(20, 8), (18, 21), (13, 9), (13, 8)] {
            let made = try transformed(raster, "\(width)x\(height)~\(text)")
            #expect((made.width, made.height) == (width, height))
            let (left, top) = ((width - 13) / 2, (height - 8) / 2)
            expect(
                made, is: { x, y in over(pixel(source, x - left, y - top), color) },
                "\(width)x\(height)~\(text) of \(channels) channels")
        }
        // Fits first.
        let made = try transformed(raster, "6x6~\(text)")
        #expect((made.width, made.height) == (6, 6))
        let fitted = try transformed(raster, "6x6")
        #expect((fitted.width, fitted.height) == (6, 4))
        expect(made, is: { x, y in over(pixel(fitted, x, y - 1), color) }, "6x6~\(text)")
    }

    @Test func paddingThatAddsNothingIsOmitted() throws {
        let raster = try raster(channels: 4, width: 13, height: 8)
        #expect(try plan("13x8~#ffffff00", raster).isEmpty)
        #expect(try !plan("13x8~#fff", raster).isEmpty)
    }

    /// Inverse mapping and bilinear mixing, premultiplied.
    private func rotated(
        _ source: Picture, _ degrees: Double, to made: Picture, on color: Pixel
    ) -> (_ x: Int, _ y: Int) -> Pixel {
        let (cosine, sine) = (cos(degrees * .pi / 180), sin(degrees * .pi / 180))
        return { x, y in
            let across = Double(x) + 0.5 - Double(made.width) / 2
            let down = Double(y) + 0.5 - Double(made.height) / 2
            let column = across * cosine + down * sine + Double(source.width) / 2 - 0.5
            let row = down * cosine - across * sine + Double(source.height) / 2 - 0.5
            var sum = Pixel.zero
            for (n, weightDown) in [(0, 1 - (row - floor(row))), (1, row - floor(row))] {
                for (m, weight) in [(0, 1 - (column - floor(column))), (1, column - floor(column))]
                {
                    var part = pixel(source, Int(floor(column)) + m, Int(floor(row)) + n)
                    let alpha = part.w
                    part *= alpha
                    part.w = alpha
                    sum += part * weight * weightDown
                }
            }
            guard sum.w > 0 else { return color }
            let alpha = sum.w
            sum /= alpha
            sum.w = alpha
            return over(sum, color)
        }
    }

    @Test(arguments: 1...4, ["30", "7.5", "-45", "133.7", "359.9", "0.001"])
    func rotatesBilinearly(channels: Int, angle: String) throws {
        let raster = try raster(channels: channels)
        let source = Picture(raster)
        let degrees = try #require(Double(angle))
        for (text, color) in Self.colours {
            let made = try transformed(raster, "rotate=\(angle),\(text)")
            expect(
                made, is: rotated(source, degrees, to: made, on: color),
                "rotate=\(angle),\(text) of \(channels) channels")
        }
        // Transparent without a colour.
        let made = try transformed(raster, "rotate=\(angle)")
        #expect(made == (try transformed(raster, "rotate=\(angle),#12345600")))
        #expect(made.channels % 2 == 0)
    }

    /// The canvas holds the picture, rounded as `vips similarity` does.
    @Test(arguments: [
        ("30", 600, 400, 720, 646), ("45", 600, 400, 707, 707), ("7.5", 600, 400, 647, 475),
        ("30", 61, 43, 74, 68), ("-30", 61, 43, 74, 68), ("150", 61, 43, 74, 68),
        ("45", 3, 1, 3, 3), ("60", 1, 1, 1, 1), ("90", 600, 400, 400, 600),
        ("90.001", 600, 400, 400, 600),
    ])
    func rotationEnlargesTheCanvas(
        angle: String, width: Int, height: Int, newWidth: Int, newHeight: Int
    ) throws {
        let raster = try raster(channels: 1, width: width, height: height)
        #expect(
            try plan("rotate=\(angle)", raster).size
                == .init(width: newWidth, height: newHeight))
    }

    /// A small angle beside a quarter turn is nearly that turn: the same direction and centre.
    @Test(arguments: [90, 180, 270])
    func rotationsAgreeWithTurns(degrees: Int) throws {
        let raster = try raster(channels: 3)
        let turned = try transformed(raster, "rotate=\(degrees)")
        let made = try transformed(raster, "rotate=\(degrees).001,#000")
        // Edges are mixed with the background; 61 pixels shift by less than 0.001.
        #expect(made.largestDifference(from: turned) <= 1)
    }

    /// Opaque pixels take a faster way.
    @Test func opaquePicturesRotateLikeOnesWithAlpha() throws {
        let opaque = try raster(channels: 3)
        let withAlpha = try opaque.plain(hasAlpha: true, interruption)
        for angle in ["12.3", "200", "301.7,#336699"] {
            let one = try transformed(opaque, "rotate=\(angle)")
            let other = try transformed(withAlpha, "rotate=\(angle)")
            for place in 0..<one.width * one.height {
                let pixel = one.samples[place * one.channels..<(place + 1) * one.channels]
                let same = other.samples[place * 4..<(place + 1) * 4].prefix(one.channels)
                guard pixel.elementsEqual(same) else {
                    #expect(pixel.elementsEqual(same), "\(angle)")
                    return
                }
            }
        }
    }

    @Test func circlesAreCentred() throws {
        for (width, height) in [(40, 30), (31, 44), (9, 9), (1, 5)] {
            let raster = try raster(channels: 3, width: width, height: height)
            let side = min(width, height)
            let made = try transformed(raster, "circle")
            #expect((made.width, made.height, made.channels) == (side, side, 4))
            let square = try transformed(
                raster, "crop=\(side)x\(side)+\((width - side) / 2)+\((height - side) / 2)")
            var covered = 0.0
            for place in 0..<side * side {
                covered += Double(made.samples[4 * place + 3]) / 255
                #expect(
                    made.samples[4 * place..<4 * place + 3]
                        == square.samples[3 * place..<3 * place + 3])
            }
            guard side > 1 else { continue }
            #expect(abs(covered - Double.pi / 4 * Double(side * side)) < 2)
        }
    }

    @Test(arguments: [
        ("tl", [0]), ("tr", [1]), ("bl", [2]), ("br", [3]), ("tl,tr", [0, 1]),
        ("bl,tr", [1, 2]), ("tl,br,bl", [0, 2, 3]),
    ])
    func roundsChosenCorners(text: String, corners: [Int]) throws {
        let raster = try raster(channels: 3, width: 41, height: 30)
        let made = try transformed(raster, "round=10:\(text)")
        let whole = try transformed(raster, "round=10")
        for y in 0..<30 {
            for x in 0..<41 {
                let place = (y * 41 + x) * 4
                let corner = (y < 15 ? 0 : 2) + (x < 20 ? 0 : 1)
                let wanted = corners.contains(corner) ? whole.samples[place + 3] : 255
                #expect(made.samples[place + 3] == wanted)
            }
        }
    }

    @Test(arguments: CropGeometry.Gravity.allCases, 1...4)
    func overlaysAreCompositedAndClipped(gravity: CropGeometry.Gravity, channels: Int) throws {
        for (width, height) in [(31, 20), (9, 7), (5, 30), (4, 3)] {
            let raster = try raster(channels: channels, width: width, height: height)
            let source = Picture(raster)
            let made = try transformed(raster, "overlay=mark@\(gravity.rawValue)")
            #expect((made.width, made.height) == (width, height))
            #expect(made.channels == (channels % 2 == 0 ? 4 : 3))
            func start(_ surplus: Int, _ low: String, _ high: String) -> Int {
                gravity.rawValue.contains(low)
                    ? 0 : gravity.rawValue.contains(high) ? surplus : surplus / 2
            }
            let left = start(width - 9, "west", "east")
            let top = start(height - 7, "north", "south")
            expect(
                made,
                is: { x, y in
                    let (column, row) = (x - left, y - top)
                    guard (0..<9).contains(column), (0..<7).contains(row) else {
                        return pixel(source, x, y)
                    }
                    let mark = Self.markPixel(column, row).map { Double($0) / 255 }
                    return over(Pixel(mark[0], mark[1], mark[2], mark[3]), pixel(source, x, y))
                }, "\(gravity) on \(width)×\(height), \(channels) channels")
        }
    }

    /// A recipe of another run with a file that this one does not name.
    @Test func overlaysOfOtherRunsAreUnsupported() throws {
        var recipe = Recipe(encoding: .png)
        recipe.transformations = [.overlay(try #require(Self.digest), .north)]
        guard case .unsupported = refusal(Samples.colourPNG, recipe) else {
            Issue.record("made without its overlay")
            return
        }
    }

    @Test func overlaysAreDecodedWhole() throws {
        let digest = try #require(Self.digest)
        var overlays = Overlays()
        func add(_ bytes: [UInt8]) throws {
            try bytes.withUnsafeBytes { try overlays.add($0, digest) }
        }
        #expect(throws: CodecError.self) { try add(Self.mark.dropLast(40)) }
        #expect(throws: CodecError.self) { try add(Array("no image".utf8)) }
        var large = Self.mark
        large.replaceSubrange(16..<24, with: be(4001) + be(4000))
        #expect(throws: CodecError.self) { try add(large) }
        #expect(throws: CodecError.self) { try overlays.picture(digest) }
        try add(Samples.baselineJPEG)
        #expect(try overlays.picture(digest).widthInPixels == 21)
    }

    // MARK: Grey

    /// Expected values by numpy: ITU-R BT.709 luminance of linear light, encoded as sRGB. vips
    /// `colourspace b-w` gives the same.
    @Test(
        arguments: [
            ([200, 100, 50], 128), ([0, 0, 255], 76), ([0, 255, 0], 220), ([255, 0, 0], 127),
            ([12, 3, 1], 5), ([30, 144, 255], 143), ([128, 128, 128], 128),
        ] as [([UInt8], UInt8)])
    func greyIsLuminance(colour: [UInt8], grey: UInt8) throws {
        for channels in [3, 4] {
            let raster = try raster(channels: channels, width: 5, height: 3)
            let rows = try #require(raster.rows.rows)
            for y in 0..<3 {
                for x in 0..<5 {
                    for channel in 0..<3 {
                        rows[y * raster.stride + 1 + x * channels + channel] = colour[channel]
                    }
                }
            }
            let source = Picture(raster)
            let made = try transformed(raster, "grey")
            #expect(made.channels == channels - 2)
            for place in 0..<15 {
                #expect(made.samples[place * made.channels] == grey)
                guard channels == 4 else { continue }
                #expect(made.samples[2 * place + 1] == source.samples[4 * place + 3])
            }
        }
    }

    @Test func greyStaysGrey() throws {
        for channels in [1, 2] {
            let raster = try raster(channels: channels)
            #expect(try transformed(raster, "grey") == Picture(raster))
        }
        // Each of the 256 greys, as colours.
        let raster = try raster(channels: 3, width: 256, height: 1)
        let rows = try #require(raster.rows.rows)
        for x in 0..<256 { for n in 0..<3 { rows[1 + 3 * x + n] = UInt8(x) } }
        #expect(try transformed(raster, "grey").samples == (0...255).map { UInt8($0) })
    }

    @Test func greyIsTheNearestSample() throws {
        func light(_ sample: Double) -> Double {
            sample <= 0.04045 ? sample / 12.92 : pow((sample + 0.055) / 1.055, 2.4)
        }
        let raster = try raster(channels: 3)
        let source = Picture(raster).samples.map { light(Double($0) / 255) }
        let made = try transformed(raster, "grey").samples
        for (place, sample) in made.enumerated() {
            let sum =
                0.2126 * source[3 * place] + 0.7152 * source[3 * place + 1]
                + 0.0722 * source[3 * place + 2]
            let exact = 255 * (sum <= 0.0031308 ? 12.92 * sum : 1.055 * pow(sum, 1 / 2.4) - 0.055)
            #expect(abs(Double(sample) - exact) < 0.51)
        }
    }

    /// Steps after `grey` may bring colours back.
    @Test func stepsApplyInOrder() throws {
        let raster = try raster(channels: 3, width: 12, height: 9)
        func made(_ steps: String) throws -> Picture { try transformed(raster, steps) }
        #expect(try made("grey,border=1,#ff0000").channels == 3)
        #expect(try made("border=1,#ff0000,grey").channels == 1)
        #expect(try made("border=1,#ff0000,grey").samples[0] == 127)
        #expect(try made("grey,round=2,tint=#ff000080").channels == 4)
        #expect(try made("border=2,#fff,circle") != made("circle,border=2,#fff"))
        #expect(try made("circle,border=2,#fff").width == 13)
        #expect(try made("border=2,#fff,crop=12x9") == made("flip=h,flip=h"))
        for steps in ["border=1,#fff,rotate=3,40x40~#000", "tint=#00000080", "round=2,flip=h"] {
            #expect(try !plan(steps, raster).usesColours)
        }
        for steps in ["grey", "border=1,#f00", "rotate=3,#808080", "tint=#808080ff"] {
            #expect(try plan(steps, raster).usesColours)
        }
    }

    // MARK: Files

    private func shown(_ source: [UInt8], _ steps: String) throws -> ShownPixels {
        try ShownPixels(png: stored(source, Recipe(specification: "png,strip=all," + steps)).bytes)
    }

    /// Every kind of source has the steps of its plain pixels.
    @Test(arguments: ["grey", "border=2,#ff000080", "25x30~#00f", "rotate=20", "circle"])
    func sourcesOfEveryKindAreExpanded(steps: String) throws {
        for source in Samples.jpegs + Samples.pngs {
            let plain = try stored(source, Recipe(specification: "png,flip=h,flip=h,strip=all"))
                .bytes
            #expect(try shown(source, steps) == shown(plain, steps))
        }
    }

    /// A grey step leaves one channel, in formats that have it, whatever the profile was.
    @Test func greyFilesHaveOneChannel() throws {
        for source in [Samples.baselineJPEG, Samples.colourPNG] {
            let jpeg = try stored(source, Recipe(specification: "jpeg,grey"))
            #expect(try imageHeader(jpeg.bytes).channels == 1)
            let png = try stored(source, Recipe(specification: "png,grey,circle"))
            #expect(try imageHeader(png.bytes).channels == 2)
        }
    }

    /// A profile of colours does not describe grey pixels.
    @Test(arguments: ["p3.png", "p3.jpg", "p3-alpha.png", "adobe.png", "grey.png", "inks.jpg"])
    func greyOfProfilesIsOfTheConversion(name: String) throws {
        let sample = ColourHandlingTests.Sample(name: name)
        let made = try stored(sample.bytes, Recipe(specification: "png,grey"))
        #expect(made.image.colour == .converted)
        #expect(try imageHeader(made.bytes).channels <= 2)
        let shown = try shown(sample.bytes, "grey")
        let wanted = try self.shown(ColourHandlingTests.Sample.bytes("\(name).srgb.png"), "grey")
        #expect(shown.pixels.count == wanted.pixels.count)
        for (pixel, other) in zip(shown.pixels, wanted.pixels) {
            #expect(abs(Int(pixel.x) - Int(other.x)) <= 2 * 257)
        }
    }

    // MARK: Limits

    /// Large canvases count as pixels before anything is allocated.
    @Test(arguments: [
        "border=10000,#fff", "60000x60000~#fff", "1000000000x1000000000~#00000000",
        "60000x1!,rotate=45", "border=3000,#fff,border=3000,#fff,crop=1x1",
    ])
    func largeCanvasesAreTooManyPixels(steps: String) throws {
        guard case .tooManyPixels = refusal(Samples.colourPNG, try Recipe(specification: steps))
        else {
            Issue.record("\(steps) is accepted")
            return
        }
        let header = try imageHeader(Samples.colourPNG)
        let need = header.decodeMemoryBytes(for: try Recipe(specification: "png," + steps))
        #expect(need > 100_000_000)
    }
}

/// Four bytes, the most significant first.
private func be(_ value: Int) -> [UInt8] { AnimationTests.bytes(UInt32(value)) }

import CPNG
import Foundation
import Glibc
import PrefetchModel
import Testing

@testable import Codecs

/// Placeholders from decoded images, for all paths through the codecs.
@Suite(.timeLimit(.minutes(15))) struct PlaceholderTests {
    private func placeholder(
        _ source: [UInt8], _ recipe: Recipe = Recipe(), check: SourceCheck = .decode
    ) throws -> Placeholder? {
        try source.withUnsafeBytes { bytes in
            try ImageProcessor.process(
                bytes, header: header(of: bytes), recipes: [recipe], check: check,
                wantsPlaceholder: true
            ).placeholder
        }
    }

    private func fields(_ placeholder: Placeholder?) throws -> HashFields {
        HashFields(try #require(placeholder).thumbHash)
    }

    private func expect(_ made: HashFields, near other: HashFields, within limit: Int = 2) {
        let distance = made.distance(to: other)
        #expect(distance.map { $0 <= limit } ?? false, "\(distance ?? -1): \(made), \(other)")
    }

    /// A smooth picture without symmetry.
    private func picture(_ width: Int, _ height: Int) -> Pixels {
        var samples: [UInt8] = []
        for y in 0..<height {
            for x in 0..<width {
                let (across, down) = (x * 255 / width, y * 255 / height)
                let isInCorner = x < width / 3 && y < height / 4
                samples += [
                    UInt8(isInCorner ? 255 : across), UInt8(down),
                    UInt8((across * down) / 255 / (isInCorner ? 2 : 1)),
                ]
            }
        }
        return Pixels(width: width, height: height, samples: samples)
    }

    /// A raster with rows of a PNG type.
    private func raster(
        _ samples: [UInt8], _ width: Int, _ height: Int, type: Int32, depth: Int32 = 8,
        colour: ColourDescription = ColourDescription(), orientation: Int = 1
    ) throws -> Raster {
        let rowBytes = samples.count / height
        let rows = try #require(malloc((rowBytes + 1) * height)).bindMemory(
            to: UInt8.self, capacity: (rowBytes + 1) * height)
        for y in 0..<height {
            rows[y * (rowBytes + 1)] = 0xAA
            for x in 0..<rowBytes { rows[y * (rowBytes + 1) + 1 + x] = samples[y * rowBytes + x] }
        }
        var image = cpng_image_of(rows, UInt32(width), UInt32(height), 1, nil)
        image.bit_depth = depth
        image.color_type = type
        image.row_bytes = rowBytes
        return Raster(
            owning: image, colour: colour, orientation: orientation)
    }

    private func placeholder(of raster: consuming Raster) throws -> Placeholder {
        let made = Placeholder(of: raster)
        return try #require(made)
    }

    private func reference(_ rgba: [UInt8], _ width: Int, _ height: Int) -> [UInt8] {
        smallPlaceholder(rgba, width, height).hash
    }

    // MARK: Paths

    /// From coefficients, requantised or unchanged, and from pixels.
    @Test(arguments: [(512, 384), (100, 300), (256, 256), (40, 40), (20, 13), (8, 8)])
    func coefficientsMatchPixelsNearly(width: Int, height: Int) throws {
        for quality in [95, 70] {
            let jpeg = try picture(width, height).jpeg(quality: quality)
            let ofPixels = try fields(placeholder(jpeg, Recipe(encoding: .png)))
            for recipe in [Recipe(), Recipe(encoding: .original)] {
                let made = try fields(placeholder(jpeg, recipe))
                expect(made, near: ofPixels)
            }
            var several: Placeholder?
            try jpeg.withUnsafeBytes { bytes in
                several = try ImageProcessor.process(
                    bytes, header: header(of: bytes), recipes: [Recipe(), Recipe(quality: 40)],
                    wantsPlaceholder: true
                ).placeholder
            }
            expect(try fields(several), near: ofPixels)
        }
    }

    @Test func samplesOfAllKindsHavePlaceholders() throws {
        for source in Samples.jpegs + Samples.pngs {
            let made = try fields(placeholder(source))
            let other = try fields(placeholder(source, Recipe(encoding: .png)))
            expect(made, near: other)
        }
    }

    @Test func makesNoneWithoutDecodingOrRequest() throws {
        let jpeg = try picture(64, 64).jpeg(quality: 80)
        #expect(try placeholder(jpeg, Recipe(encoding: .original), check: .structure) == nil)
        try jpeg.withUnsafeBytes { bytes in
            let entry = try ImageProcessor.process(
                bytes, header: header(of: bytes), recipes: [Recipe(encoding: .png)])
            #expect(entry.placeholder == nil)
        }
        // A PNG that is only checked keeps no rows.
        #expect(try placeholder(Samples.colourPNG, Recipe(encoding: .original)) == nil)
    }

    @Test func fourInksNeedPixels() throws {
        let source = HandmadeJPEG.plainCMYK()
        #expect(try placeholder(source) == nil)
        #expect(try placeholder(source, Recipe(encoding: .png)) != nil)
    }

    // MARK: Orientation

    @Test(arguments: 1...8) func hashAppliesOrientation(orientation: Int) throws {
        // The sides are not multiples of a block, so the picture is not rotated.
        let (width, height) = (203, 101)
        let upright = picture(width, height)
        let isTransposing = orientation > 4
        let (storedWidth, storedHeight) = isTransposing ? (height, width) : (width, height)
        var stored = [UInt8](repeating: 0, count: upright.samples.count)
        for y in 0..<height {
            for x in 0..<width {
                let (right, bottom) = (width - 1 - x, height - 1 - y)
                let (column, row) =
                    [
                        (x, y), (right, y), (right, bottom), (x, bottom), (y, x), (y, right),
                        (bottom, right), (bottom, x),
                    ][orientation - 1]
                for channel in 0..<3 {
                    stored[3 * (row * storedWidth + column) + channel] =
                        upright.samples[3 * (y * width + x) + channel]
                }
            }
        }
        let plain = try raster(upright.samples, width, height, type: 2)
        let turned = try raster(
            stored, storedWidth, storedHeight, type: 2, orientation: orientation)
        let expected = try placeholder(of: plain)
        let ofRaster = try placeholder(of: turned)
        expect(try fields(ofRaster), near: try fields(expected), within: 1)
        let jpeg = JPEGTests.inserting(
            JPEGTests.exif(orientation: orientation),
            into: try Pixels(width: storedWidth, height: storedHeight, samples: stored)
                .jpeg(quality: 95))
        let made = try fields(placeholder(jpeg))
        expect(made, near: try fields(expected))
        #expect(made.isLandscape)
    }

    // MARK: Kinds of pixels

    /// Small pictures are not reduced, so all kinds of the same pixels have the same hash.
    @Test func samePixelsMakeSamePlaceholder() throws {
        let (width, height) = (30, 21)
        let light = (0..<width * height).map { UInt8($0 * 7 % 256) }
        let alpha = (0..<width * height).map { UInt8($0 * 5 % 256) }
        let opaque = reference(light.flatMap { [$0, $0, $0, 255] }, width, height)
        let clear = reference(zip(light, alpha).flatMap { [$0, $0, $0, $1] }, width, height)
        func check(
            _ samples: [UInt8], type: Int32, depth: Int32 = 8, _ expected: [UInt8],
            _ colour: ColourDescription = ColourDescription()
        ) throws {
            let raster = try raster(
                samples, width, height, type: type, depth: depth, colour: colour)
            let hash = try placeholder(of: raster).thumbHash
            #expect(hash == expected, "type \(type), \(depth) bits")
        }
        try check(light, type: 0, opaque)
        try check(light.flatMap { [$0, 0x55] }, type: 0, depth: 16, opaque)
        try check(light.flatMap { [$0, $0, $0] }, type: 2, opaque)
        try check(zip(light, alpha).flatMap { [$0, $1] }, type: 4, clear)
        try check(zip(light, alpha).flatMap { [$0, $0, $0, $1] }, type: 6, clear)
        try check(
            zip(light, alpha).flatMap { [$0, 1, $0, 2, $0, 3, $1, 4] }, type: 6, depth: 16, clear)
        var palette = ColourDescription()
        withUnsafeMutableBytes(of: &palette.samples.palette) { bytes in
            let entries = bytes.bindMemory(to: UInt32.self)
            for index in 0..<256 { entries[index] = UInt32(index) * 0x0101_0100 | 255 }
        }
        try check(light, type: 3, opaque, palette)
        var key = ColourDescription()
        key.samples.has_key = true
        key.samples.key = (14, 0, 0)
        let keyed = reference(light.flatMap { [$0, $0, $0, $0 == 14 ? 0 : 255] }, width, height)
        try check(light, type: 0, keyed, key)
    }

    @Test(arguments: [1, 2, 4]) func scalesFewBits(depth: Int) throws {
        let (width, height) = (24, 16)
        let most = 1 << depth - 1
        let values = (0..<width * height).map { ($0 * 11 + $0 / 24) % (most + 1) }
        var packed: [UInt8] = []
        for start in stride(from: 0, to: values.count, by: 8 / depth) {
            packed.append(values[start..<start + 8 / depth].reduce(0) { $0 << depth | UInt8($1) })
        }
        let raster = try raster(packed, width, height, type: 0, depth: Int32(depth))
        let rgba = values.flatMap { value -> [UInt8] in
            let light = UInt8(value * 255 / most)
            return [light, light, light, 255]
        }
        let hash = try placeholder(of: raster).thumbHash
        #expect(hash == reference(rgba, width, height))
    }

    /// Transparent colours have no effect, and means cover all pixels.
    @Test func reducesLargePicturesByAveraging() throws {
        let (width, height) = (1000, 600)
        var samples: [UInt8] = []
        for y in 0..<height {
            for x in 0..<width {
                samples += (x + y) % 2 == 0 ? [200, 100, 50, 255] : [0, 255, 0, 0]
            }
        }
        let raster = try raster(samples, width, height, type: 6)
        let made = try placeholder(of: raster)
        #expect(made.colourText == "#c86432")
        let fields = HashFields(made.thumbHash)
        #expect(fields.hasAlpha)
        // Half of it is opaque, and besides the means there is only noise.
        #expect(fields.fields.first { $0.name == "A" }?.value == 8)
        #expect(fields.fields.filter { $0.name.hasSuffix("scale") }.allSatisfy { $0.value == 0 })
    }

    // MARK: Sizes

    @Test(arguments: [(1, 1), (65_500, 1), (1, 65_500), (2, 65_500), (49, 1), (3000, 7)])
    func anySizeHasPlaceholder(width: Int, height: Int) throws {
        let samples = (0..<width * height).map { UInt8($0 * 255 / (width * height)) }
        let raster = try raster(samples, width, height, type: 0)
        let made = HashFields(try placeholder(of: raster).thumbHash)
        #expect(made.isLandscape == (width > height))
        let jpeg = try Pixels(
            width: width, height: height, samples: samples.flatMap { [$0, $0, $0] }
        ).jpeg(quality: 90)
        let ofJPEG = try fields(placeholder(jpeg))
        expect(ofJPEG, near: made)
    }

    @Test func storedImagesMatchSourceNearly() throws {
        for (width, height) in [(1200, 900), (300, 40), (16, 16)] {
            let jpeg = try picture(width, height).jpeg(quality: 90)
            let stored = try jpeg.withUnsafeBytes { bytes in
                let header = try header(of: bytes)
                #expect(StoredPlaceholder.memoryNeed(of: header) > width * height * 3)
                return try StoredPlaceholder.make(of: bytes, header: header)
            }
            let made = try fields(placeholder(jpeg))
            expect(try fields(stored), near: made)
        }
    }

    @Test func printsTextForm() {
        let bytes: [UInt8] = [0xD5, 0x07, 0x12, 0x1D, 0x04]
        let colour = RGBColor(red: 255, green: 0, blue: 10)
        for count in 1...5 {
            let made = Placeholder(thumbHash: Array(bytes.prefix(count)), colour: colour)
            #expect(made.thumbHashText == Data(bytes.prefix(count)).base64EncodedString())
            #expect(made.colourText == "#ff000a")
        }
    }
}

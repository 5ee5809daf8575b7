import PrefetchModel
import Testing

@testable import Codecs

@Suite(.serialized, .timeLimit(.minutes(15))) struct JPEGTests {
    /// Inserts segments after the start marker.
    static func inserting(_ segments: [UInt8], into source: [UInt8]) -> [UInt8] {
        source[..<2] + segments + source[2...]
    }

    static func profile(space: String, count: Int) -> [UInt8] {
        var bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 * 31) }
        bytes.replaceSubrange(
            0..<4, with: (0..<4).map { UInt8(truncatingIfNeeded: count >> (24 - 8 * $0)) })
        bytes.replaceSubrange(16..<20, with: Array(space.utf8))
        bytes.replaceSubrange(36..<40, with: Array("acsp".utf8))
        return bytes
    }

    /// EXIF data with a camera's maker, the orientation and a position.
    static func exif(orientation: Int) -> [UInt8] {
        var tiff = Array("II*\0".utf8) + [8, 0, 0, 0, 3, 0]
        tiff += [0x0F, 1, 2, 0, 4, 0, 0, 0] + Array("Cam\0".utf8)
        tiff += [0x12, 1, 3, 0, 1, 0, 0, 0, UInt8(orientation), 0, 0, 0]
        tiff += [0x25, 0x88, 4, 0, 1, 0, 0, 0, 50, 0, 0, 0]
        tiff += [0, 0, 0, 0] + Array("GPS-SECRET".utf8)
        return JPEGFile.segment(0xE1, Array("Exif\0\0".utf8) + tiff)
    }

    static func contains(_ bytes: [UInt8], _ text: String) -> Bool {
        let pattern = Array(text.utf8)
        return bytes.indices.contains { bytes[$0...].starts(with: pattern) }
    }

    @Test(arguments: Samples.jpegs, [20, 60, 85])
    func requantisesWithinToleranceAndKeepsShape(source: [UInt8], quality: Int) throws {
        let result = try stored(source, Recipe(quality: quality, keepsLarger: true))
        let before = try Pixels(jpeg: source)
        let after = try Pixels(jpeg: result.bytes)
        #expect(after.width == before.width && after.height == before.height)
        #expect(after.channels == before.channels)
        // Limits that every correct result meets, and a wrong table or component does not.
        #expect(before.peakSignalToNoise(after) > (quality == 20 ? 20 : 28))
        let old = try source.withUnsafeBytes { try JPEGFile(headerOf: $0).frame }
        let new = try result.bytes.withUnsafeBytes { try JPEGFile(headerOf: $0).frame }
        #expect(old?.sampling.map(\.horizontal) == new?.sampling.map(\.horizontal))
        #expect(old?.sampling.map(\.vertical) == new?.sampling.map(\.vertical))
    }

    @Test(arguments: Samples.jpegs, [20, 60, 85, 100])
    func isIdempotent(source: [UInt8], quality: Int) throws {
        for keepsLarger in [false, true] {
            let recipe = Recipe(quality: quality, keepsLarger: keepsLarger)
            let first = try stored(Self.inserting(Self.exif(orientation: 6), into: source), recipe)
            #expect(!first.isSource)
            #expect(try stored(first.bytes, recipe).isSource)
        }
    }

    @Test(arguments: Samples.jpegs)
    func keepsSourceWhenNotSmaller(source: [UInt8]) throws {
        #expect(try stored(source, Recipe(quality: 100)).isSource)
        #expect(try stored(source, Recipe(encoding: .original)).isSource)
    }

    @Test(arguments: Samples.jpegs, [30, 100])
    func dropsMetadata(source: [UInt8], quality: Int) throws {
        let segments =
            Self.exif(orientation: 1)
            + JPEGFile.segment(0xE1, Array("http://ns.adobe.com/xap/1.0/\0SECRET".utf8))
            + JPEGFile.segment(0xED, Array("Photoshop 3.0\0SECRET".utf8))
            + JPEGFile.segment(0xE2, Array("MPF\0SECRET".utf8))
            + JPEGFile.segment(0xFE, Array("SECRET".utf8))
        let result = try stored(
            Self.inserting(segments, into: source), Recipe(quality: quality))
        #expect(!Self.contains(result.bytes, "SECRET"))
        #expect(!Self.contains(result.bytes, "Exif"))
        if quality == 100 { #expect(result.bytes == source) }
    }

    @Test func dropsCommentsBetweenScans() throws {
        let source = Samples.progressiveJPEG
        let scan = try #require(source.markers(0xDA).last)
        let comment = JPEGFile.segment(0xFE, Array("SECRET".utf8))
        let result = try stored(source[..<scan] + comment + source[scan...], Recipe(quality: 100))
        #expect(result.bytes == source)
    }

    /// At 21×19 pixels, only edges that stay in place may cut through a block.
    @Test(arguments: [2, 3, 4, 6, 7, 8], [30, 100])
    func keepsOnlyOrientationOfEXIF(orientation: Int, quality: Int) throws {
        let source = Self.inserting(
            Self.exif(orientation: orientation), into: Samples.baselineJPEG)
        let result = try stored(source, Recipe(quality: quality))
        #expect(try imageHeader(result.bytes).orientation == orientation)
        #expect(!Self.contains(result.bytes, "SECRET"))
        #expect(!Self.contains(result.bytes, "Cam"))
    }

    @Test(arguments: [200, 65519, 65520, 200_000], [30, 100])
    func keepsAnICCProfile(count: Int, quality: Int) throws {
        let profile = Self.profile(space: "RGB ", count: count)
        let source = Self.inserting(JPEGFile.profileSegments(profile), into: Samples.baselineJPEG)
        let result = try stored(source, Recipe(quality: quality))
        let kept = try result.bytes.withUnsafeBytes {
            try JPEGFile(headerOf: $0).profile
        }
        #expect(kept == profile)
    }

    @Test func dropsABrokenICCProfile() throws {
        let profile = Self.profile(space: "RGB ", count: 70000)
        let segments = JPEGFile.profileSegments(profile)
        // Only the first of two parts.
        let source = Self.inserting(Array(segments.prefix(65537)), into: Samples.baselineJPEG)
        for quality in [30, 100] {
            let result = try stored(source, Recipe(quality: quality))
            #expect(!Self.contains(result.bytes, "ICC_PROFILE"))
        }
    }

    @Test func convertsToPNGWithEqualPixels() throws {
        for source in Samples.jpegs {
            let result = try stored(source, Recipe(encoding: .png))
            #expect(result.image.format == .png)
            let rows = try PackedRows(png: result.bytes)
            #expect(rows.samples == (try Pixels(jpeg: source)).samples)
            #expect(try stored(result.bytes, Recipe(encoding: .png)).isSource)
        }
    }

    @Test(arguments: 1...8)
    func turnsPixelsUprightWhenConverting(orientation: Int) throws {
        let source = Self.inserting(
            Self.exif(orientation: orientation), into: Samples.baselineJPEG)
        let before = try Pixels(jpeg: Samples.baselineJPEG)
        let result = try stored(source, Recipe(encoding: .png))
        let rows = try PackedRows(png: result.bytes)
        #expect(result.image.widthInPixels == rows.width)
        #expect(rows.width == (orientation < 5 ? before.width : before.height))
        for y in 0..<rows.height {
            for x in 0..<rows.width {
                // The source position of the stored pixel, by EXIF's definition of the 0th row and
                // column.
                let (right, bottom) = (before.width - 1, before.height - 1)
                let (fromX, fromY) =
                    switch orientation {
                    case 1: (x, y)
                    case 2: (right - x, y)
                    case 3: (right - x, bottom - y)
                    case 4: (x, bottom - y)
                    case 5: (y, x)
                    case 6: (y, bottom - x)
                    case 7: (right - y, bottom - x)
                    default: (right - y, x)
                    }
                let start = (y * rows.width + x) * 3
                #expect(rows.samples[start..<start + 3].elementsEqual(before[fromX, fromY]))
            }
        }
    }

    @Test func keepsProfileInPNGAndBack() throws {
        let profile = Self.profile(space: "RGB ", count: 3144)
        let source = Self.inserting(JPEGFile.profileSegments(profile), into: Samples.baselineJPEG)
        let png = try stored(source, Recipe(encoding: .png)).bytes
        let jpeg = try stored(png, Recipe(encoding: .jpeg)).bytes
        let kept = try jpeg.withUnsafeBytes {
            try JPEGFile(headerOf: $0).profile
        }
        #expect(kept == profile)
        let grey = Self.inserting(JPEGFile.profileSegments(profile), into: Samples.greyJPEG)
        let greyPNG = try stored(grey, Recipe(encoding: .png)).bytes
        #expect(!Self.contains(greyPNG, "iCCP"))
    }

    @Test(
        .enabled(if: TestData.isAvailable),
        arguments: try TestData.isAvailable ? TestData.expectations(in: "jpeg/reftest") : [])
    func agreesWithTwoOtherDecoders(expectation: TestData.Expectation) throws {
        let source = try TestData.bytes(expectation.path)
        let error = refusal(source)
        if expectation.isAcceptedByBoth {
            #expect(error == nil)
        } else if expectation.isRefusedByBoth {
            #expect(error != nil)
        }
        guard error == nil else { return }
        let result = try stored(source)
        #expect(try stored(result.bytes).isSource)
        // One of the files is actually a PNG.
        guard result.image.format == .jpeg else { return }
        let pixels = try Pixels(jpeg: source)
        let quality = try pixels.peakSignalToNoise(Pixels(jpeg: result.bytes))
        // A picture of 4×4 is a quarter of a block and gets more than its share of the block's
        // error.
        #expect(quality > (pixels.width < 8 && pixels.height < 8 ? 25 : 30))
    }

    @Test(.enabled(if: TestData.isAvailable))
    func staysCloseToPhotographs() throws {
        for path in try TestData.paths(in: "photos").filter({ $0.hasSuffix(".jpg") }) {
            let source = try TestData.bytes(path)
            guard try imageHeader(source).pixels < 1_000_000 else { continue }
            let result = try stored(source)
            let quality = try Pixels(jpeg: source).peakSignalToNoise(Pixels(jpeg: result.bytes))
            // Of 4:4:4, chroma is halved.
            #expect(quality > 32, "\(path)")
        }
    }
}

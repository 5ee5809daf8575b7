import PrefetchModel
import Testing

@testable import Codecs

extension Recipe {
    init(
        _ stripping: Stripping, encoding: Encoding = .same, quality: Int = Recipe.defaultQuality,
        keepsLarger: Bool = false
    ) {
        self.init(encoding: encoding, quality: quality, keepsLarger: keepsLarger)
        self.stripping = stripping
    }
}

/// The metadata that remains in a file.
@Suite(.serialized, .timeLimit(.minutes(15))) struct StrippingTests {
    private static let comment = JPEGFile.segment(0xFE, Array("a comment".utf8))
    private static let xmp = JPEGFile.segment(
        0xE1, Array("http://ns.adobe.com/xap/1.0/\0<x/>".utf8))
    private static let thumbnail = JPEGFile.segment(
        0xE0, Array("JFXX\0".utf8) + [0x13, 1, 1, 0, 0, 0])

    private static func segments(of source: [UInt8]) throws -> [[UInt8]] {
        try source.withUnsafeBytes { bytes in
            try JPEGFile(headerOf: bytes).segments.filter(\.isMetadata).map {
                Array(bytes[$0.range])
            }
        }
    }

    private static func chunks(of source: [UInt8]) throws -> [(type: UInt32, data: [UInt8])] {
        try source.withUnsafeBytes { bytes in
            try PNGFile(bytes).chunks.map { ($0.type, Array(bytes[$0.data])) }
        }
    }

    // MARK: JPEG

    @Test(arguments: [30, 100], Recipe.Stripping.allCases)
    func keepsSRGBProfileOnlyWithNone(quality: Int, stripping: Recipe.Stripping) throws {
        let profile = JPEGFile.profileSegments(Profiles.rgb())
        let source = JPEGTests.inserting(profile, into: Samples.baselineJPEG)
        let result = try stored(source, Recipe(stripping, quality: quality))
        #expect(JPEGTests.contains(result.bytes, "ICC_PROFILE") == (stripping == .none))
    }

    @Test(arguments: [30, 100], Recipe.Stripping.allCases)
    func dropsOtherProfilesOnlyWithAll(quality: Int, stripping: Recipe.Stripping) throws {
        let profile = JPEGFile.profileSegments(Profiles.rgb(Profiles.wideColorants))
        let source = JPEGTests.inserting(profile, into: Samples.baselineJPEG)
        let result = try stored(source, Recipe(stripping, quality: quality))
        #expect(JPEGTests.contains(result.bytes, "ICC_PROFILE") == (stripping != .all))
    }

    @Test(arguments: Samples.jpegs, [30, 100])
    func noneKeepsEverySegmentByteForByte(sample: [UInt8], quality: Int) throws {
        let added =
            Self.thumbnail + JPEGTests.exif(orientation: 6) + Self.xmp
            + JPEGFile.profileSegments(Profiles.rgb()) + Self.comment
        let source: [UInt8] = sample[..<20] + added + sample[20...]
        let recipe = Recipe(.none, quality: quality, keepsLarger: quality == 30)
        let result = try stored(source, recipe)
        #expect(result.isSource == (quality == 100))
        #expect(try Self.segments(of: result.bytes) == Self.segments(of: source))
        #expect(try stored(result.bytes, recipe).isSource)
        let before = try Pixels(jpeg: source)
        #expect(before.width == (try Pixels(jpeg: result.bytes)).width)
    }

    /// The meaning of the components may depend on absent markers.
    @Test func noneAddsNoSegment() throws {
        let sample = Samples.baselineJPEG
        let source = Array(sample[..<2] + sample[20...])
        #expect(try Self.segments(of: source).isEmpty)
        let result = try stored(source, Recipe(.none, quality: 30, keepsLarger: true))
        #expect(!result.isSource)
        #expect(try Self.segments(of: result.bytes).isEmpty)
        #expect(try Pixels(jpeg: source).peakSignalToNoise(Pixels(jpeg: result.bytes)) > 20)
    }

    @Test func noneKeepsCommentsBetweenScans() throws {
        let source = Samples.progressiveJPEG
        let scan = try #require(source.markers(0xDA).last)
        let commented = source[..<scan] + Self.comment + source[scan...]
        let result = try stored(Array(commented), Recipe(.none, quality: 30))
        #expect(!result.isSource)
        #expect(JPEGTests.contains(result.bytes, "a comment"))
    }

    @Test(arguments: 1...8)
    func noneKeepsEXIFInPNGAndBack(orientation: Int) throws {
        let source = JPEGTests.inserting(
            JPEGTests.exif(orientation: orientation), into: Samples.baselineJPEG)
        let png = try stored(source, Recipe(.none, encoding: .png))
        #expect(png.image.widthInPixels == (orientation < 5 ? 21 : 19))
        #expect(try imageHeader(png.bytes).orientation == 1)
        #expect(JPEGTests.contains(png.bytes, "GPS-SECRET"))
        let jpeg = try stored(png.bytes, Recipe(.none, encoding: .jpeg))
        #expect(jpeg.image.widthInPixels == png.image.widthInPixels)
        #expect(try imageHeader(jpeg.bytes).orientation == 1)
        #expect(JPEGTests.contains(jpeg.bytes, "GPS-SECRET"))
    }

    // MARK: PNG

    /// Colour chunks before the image data; a text and a time follow it.
    private static let colours: [(UInt32, [UInt8])] = [
        (.gAMA, [0, 0, 0xB1, 0x8F]),
        (
            .cHRM,
            [31270, 32900, 64000, 33000, 30000, 60000, 15000, 6000].flatMap {
                [0, 0, UInt8($0 >> 8), UInt8($0 & 255)]
            }
        ),
    ]

    private func coloured(_ extra: [UInt8] = []) throws -> [UInt8] {
        let chunks = Self.colours.flatMap { PNGFile.chunk($0.0, $0.1) }
        return try PNGTests.inserting(chunks + extra, into: Samples.colourPNG)
    }

    @Test(arguments: [false, true])
    func allDropsColourSpaces(keepsLarger: Bool) throws {
        let profile = PNGFile.profileChunk(Profiles.rgb(Profiles.wideColorants))
        let result = try stored(coloured(profile), Recipe(.all, keepsLarger: keepsLarger))
        #expect(try Self.chunks(of: result.bytes).map(\.type) == [.IHDR, .IDAT, .IEND])
        #expect(try PackedRows(png: result.bytes) == PackedRows(png: Samples.colourPNG))
        // Chunks that are part of the picture stay.
        let palette = try stored(Samples.palettePNG, Recipe(.all, keepsLarger: keepsLarger))
        #expect(
            try Self.chunks(of: palette.bytes).map(\.type) == [.IHDR, .PLTE, .tRNS, .IDAT, .IEND])
    }

    @Test(arguments: [false, true])
    func dropsGammaWithSRGBProfile(keepsLarger: Bool) throws {
        let profile = PNGFile.profileChunk(Profiles.rgb())
        let recipe = Recipe(.safe, keepsLarger: keepsLarger)
        let result = try stored(coloured(profile), recipe)
        #expect(try Self.chunks(of: result.bytes).map(\.type) == [.IHDR, .IDAT, .IEND])
        let other = PNGFile.profileChunk(Profiles.rgb(Profiles.wideColorants))
        let kept = try Self.chunks(of: stored(coloured(other), recipe).bytes).map(\.type)
        #expect(kept.contains(.iCCP) && kept.contains(.gAMA))
        // A damaged profile does not take precedence either.
        var damaged = profile
        damaged[damaged.count - 1] ^= 1
        let without = try Self.chunks(of: stored(coloured(damaged), recipe).bytes).map(\.type)
        #expect(!without.contains(.iCCP) && without.contains(.gAMA))
    }

    @Test(arguments: [false, true])
    func noneKeepsEveryChunkThatMayBeCopied(keepsLarger: Bool) throws {
        let exif = PNGFile.chunk(.eXIf, Array(JPEGTests.exif(orientation: 6).dropFirst(10)))
        // A private chunk that is safe to copy, and one that is not.
        let safe = PNGFile.chunk(0x7072_4966, [1, 2, 3])
        let unsafe = PNGFile.chunk(0x7072_4946, [1, 2, 3])
        let time = PNGFile.chunk(.tIME, [7, 0xE0, 1, 1, 1, 1, 1])
        let text = PNGFile.chunk(PNGTests.tEXt, Array("Comment\0words".utf8))
        let noisy = try coloured(PNGFile.profileChunk(Profiles.rgb()) + exif + safe + unsafe)
        let source = noisy.dropLast(12) + time + text + noisy.suffix(12)
        let recipe = Recipe(.none, keepsLarger: keepsLarger)
        let result = try stored(Array(source), recipe)
        let before = try Self.chunks(of: Array(source)).filter { $0.type != 0x7072_4946 }
        let after = try Self.chunks(of: result.bytes)
        if !result.isSource {
            #expect(before.map(\.type) == after.map(\.type))
            for (old, new) in zip(before, after) where old.type != .IDAT {
                #expect(old.data == new.data)
            }
        }
        if keepsLarger { #expect(!result.isSource) }
        #expect(try PackedRows(png: result.bytes) == PackedRows(png: Samples.colourPNG))
        #expect(try stored(result.bytes, recipe).isSource)
    }

    /// A second picture, as appended by phones, is located by its distance from the first.
    @Test(arguments: [Samples.baselineJPEG, Samples.colourPNG])
    func noneKeepsTrailingData(image: [UInt8]) throws {
        let source = image + image
        #expect(try stored(source, Recipe(.none, quality: 30)).isSource)
        let safe = try stored(source, Recipe(quality: 30)).bytes
        #expect(safe.count <= image.count)
    }
}

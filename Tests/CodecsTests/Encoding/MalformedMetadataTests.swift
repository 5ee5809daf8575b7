import PrefetchModel
import Testing

@testable import Codecs

/// `--strip none` leaves out metadata that breaks its format.
@Suite(.serialized, .timeLimit(.minutes(15))) struct MalformedMetadataTests {
    private static func tiff(_ orientation: Int = 1) -> [UInt8] {
        ExifOrientation.minimalTIFF(orientation)
    }

    private static func type(_ name: String) -> UInt32 {
        name.utf8.reduce(0) { $0 << 8 | UInt32($1) }
    }

    private static func chunk(_ name: String, _ data: [UInt8]) -> [UInt8] {
        PNGFile.chunk(type(name), data)
    }

    private static func damaged(_ chunk: [UInt8]) -> [UInt8] {
        chunk.dropLast() + [chunk[chunk.count - 1] ^ 1]
    }

    private static func packed(_ text: String) -> [UInt8] {
        // The stream of a profile's chunk begins behind its name.
        Array(PNGFile.profileChunk(Array(text.utf8))[13...].dropLast(4))
    }

    private static func bytes(_ text: String, _ rest: [UInt8] = []) -> [UInt8] {
        Array(text.utf8) + rest
    }

    private struct Fault {
        let name: String
        let chunk: [UInt8]
        /// Whether it stands before the image data.
        let isLeading: Bool

        init(
            _ name: String, _ type: String, _ data: [UInt8], _ isLeading: Bool,
            isDamaged: Bool = false
        ) {
            let chunk = MalformedMetadataTests.chunk(type, data)
            self.name = name
            self.chunk = isDamaged ? MalformedMetadataTests.damaged(chunk) : chunk
            self.isLeading = isLeading
        }
    }

    private static let malformed: [Fault] = [
        Fault("CRC of text", "tEXt", bytes("A\0b"), true, isDamaged: true),
        Fault("CRC of a private chunk", "prIf", [1], true, isDamaged: true),
        Fault("CRC of EXIF", "eXIf", tiff(), false, isDamaged: true),
        Fault("reserved bit", "prif", [1], false),
        Fault("text without a keyword", "tEXt", bytes("\0b"), true),
        Fault("text without a zero", "tEXt", bytes("Comment"), false),
        Fault("keyword of 80 bytes", "tEXt", bytes(String(repeating: "A", count: 80) + "\0"), true),
        Fault("keyword with spaces", "tEXt", bytes(" A\0b"), true),
        Fault("method of packed text", "zTXt", bytes("A\0\u{1}", packed("b")), true),
        Fault("stream of packed text", "zTXt", bytes("A\0\0", [1, 2, 3]), false),
        Fault("cut packed text", "zTXt", bytes("A\0\0", Array(packed("b").dropLast())), true),
        Fault("flag of iTXt", "iTXt", bytes("A\0\u{2}\0\0\0b"), true),
        Fault("iTXt without zeros", "iTXt", bytes("A\0\0\0b"), true),
        Fault("iTXt without UTF-8", "iTXt", bytes("A\0\0\0\0\0", [0xFF]), false),
        Fault("stream of iTXt", "iTXt", bytes("A\0\u{1}\0\0\0b"), true),
        Fault("time of 6 bytes", "tIME", [7, 0xE0, 1, 1, 1, 1], true),
        Fault("month 13", "tIME", [7, 0xE0, 13, 1, 1, 1, 1], false),
        Fault("EXIF without a header", "eXIf", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], true),
        Fault("EXIF of JPEG", "eXIf", bytes("Exif\0\0", tiff()), true),
        Fault("cut EXIF", "eXIf", Array(tiff().dropLast(10)), false),
        Fault("empty EXIF", "eXIf", [], false),
        Fault("unit of pHYs", "pHYs", [0, 0, 0, 1, 0, 0, 0, 1, 2], true),
        Fault("length of pHYs", "pHYs", [1], true),
        Fault("pHYs behind the data", "pHYs", [0, 0, 0, 1, 0, 0, 0, 1, 1], false),
        Fault("gamma behind the data", "gAMA", [0, 0, 0xB1, 0x8F], false),
        Fault("gamma 0", "gAMA", [0, 0, 0, 0], true),
        Fault("length of gamma", "gAMA", [1], true),
        Fault("length of cHRM", "cHRM", [1], true),
        Fault("intent 4", "sRGB", [4], true),
        Fault("depth 0", "sBIT", [0, 0, 0], true),
        Fault("histogram without a palette", "hIST", [0, 1], true),
        Fault("background of another kind", "bKGD", [1], true),
        Fault("background beyond the depth", "bKGD", [1, 0, 1, 0, 1, 0], true),
        Fault("profile that is none", "iCCP", bytes("ICC\0\0", packed("none")), true),
        Fault("profile that is not packed", "iCCP", bytes("ICC\0\0", [1, 2]), true),
        Fault("profile without a name", "iCCP", [1, 2], true),
        Fault("suggested palette", "sPLT", bytes("A\0", [8, 1]), true),
        Fault("depth of a suggested palette", "sPLT", bytes("A\0", [7]), true),
        Fault("palette of 257 colours", "PLTE", Array(repeating: 7, count: 771), true),
        Fault("palette of 4 bytes", "PLTE", [1, 2, 3, 4], true),
        Fault("offset unit", "oFFs", [0, 0, 0, 1, 0, 0, 0, 1, 2], true),
        Fault("scale unit", "sCAL", [3, 49, 0, 49], true),
        Fault("code points of 3 bytes", "cICP", [1, 13, 0], true),
        Fault("light level of 1 byte", "cLLI", [1], true),
        Fault("mastering display of 1 byte", "mDCV", [1], true),
        Fault("animation of no frames", "acTL", [0, 0, 0, 0, 0, 0, 0, 0], true),
        Fault("frame without an animation", "fdAT", [0, 0, 0, 0, 1], false),
    ]

    private static let harmless = chunk("tEXt", Array("Comment\0words".utf8))

    private func source(_ chunks: [UInt8], isLeading: Bool) -> [UInt8] {
        let image = Samples.colourPNG
        return isLeading
            ? image[..<33] + chunks + image[33...]
            : image.dropLast(12) + chunks + image.suffix(12)
    }

    @Test(arguments: malformed.indices, [false, true])
    func leavesOutAChunk(index: Int, keepsLarger: Bool) throws {
        let fault = Self.malformed[index]
        let faulty = source(fault.chunk + Self.harmless, isLeading: fault.isLeading)
        let whole = source(Self.harmless, isLeading: fault.isLeading)
        let recipe = Recipe(.none, keepsLarger: keepsLarger)
        #expect(try stored(faulty, recipe).bytes == stored(whole, recipe).bytes, "\(fault.name)")
        #expect(try warning(faulty, recipe)?.text.hasPrefix("left out a malformed chunk: ") == true)
        #expect(try warning(whole, recipe) == nil)
        // Nothing else is examined.
        #expect(try stored(faulty, Recipe(encoding: .original)).isSource)
        #expect(try warning(faulty, Recipe(.safe)) == nil)
    }

    /// Chunks that a file may have once.
    @Test(arguments: [
        chunk("eXIf", tiff()), chunk("tIME", [7, 0xE0, 1, 1, 1, 1, 1]),
        chunk("pHYs", [0, 0, 0, 1, 0, 0, 0, 1, 1]), chunk("sRGB", [0]),
        chunk("sPLT", bytes("A\0", [8])), chunk("bKGD", [0, 1, 0, 1, 0, 1]),
    ])
    func leavesOutTheSecondOfAKind(chunk: [UInt8]) throws {
        let recipe = Recipe(.none)
        let once = source(chunk, isLeading: true)
        #expect(try warning(once, recipe) == nil)
        let twice = source(chunk + chunk, isLeading: true)
        #expect(try stored(twice, recipe).bytes == stored(once, recipe).bytes)
        #expect(try warning(twice, recipe) != nil)
    }

    /// The picture stays turned.
    @Test func keepsTheOrientationOfMalformedEXIF() throws {
        // A directory of two entries, with only one there.
        var cut = Self.tiff(6)
        cut[9] = 2
        let faulty = source(Self.chunk("eXIf", cut), isLeading: true)
        let result = try stored(faulty, Recipe(.none))
        #expect(try imageHeader(result.bytes).orientation == 6)
        #expect(try stored(result.bytes, Recipe(.none)).isSource)
    }

    private static let segments: [(String, [UInt8])] = [
        ("EXIF without a header", JPEGFile.segment(0xE1, bytes("Exif\0\0none"))),
        ("empty EXIF", JPEGFile.segment(0xE1, bytes("Exif\0\0"))),
        ("cut EXIF", JPEGFile.segment(0xE1, bytes("Exif\0\0", Array(tiff().dropLast(10))))),
        ("part of a profile", JPEGFile.segment(0xE2, bytes("ICC_PROFILE\0", [1, 2, 0]))),
        ("profile that is none", JPEGFile.segment(0xE2, bytes("ICC_PROFILE\0", [1, 1, 0]))),
        ("short profile", JPEGFile.segment(0xE2, bytes("ICC_PROFILE\0"))),
        ("short JFIF", JPEGFile.segment(0xE0, bytes("JFIF\0\u{1}"))),
        ("short Adobe", JPEGFile.segment(0xEE, bytes("Adobe"))),
        ("length 0", [0xFF, 0xE5, 0, 0]),
    ]

    @Test(arguments: segments.indices, [30, 100])
    func leavesOutASegment(index: Int, quality: Int) throws {
        let (name, segment) = Self.segments[index]
        let comment = JPEGFile.segment(0xFE, Array("words".utf8))
        let sample = Samples.baselineJPEG
        let faulty = Array(sample[..<20] + segment + comment + sample[20...])
        let whole = Array(sample[..<20] + comment + sample[20...])
        let recipe = Recipe(.none, quality: quality)
        #expect(try stored(faulty, recipe).bytes == stored(whole, recipe).bytes, "\(name)")
        #expect(
            try warning(faulty, recipe)?.text.hasPrefix("left out a malformed segment: ") == true)
        #expect(try warning(whole, recipe) == nil)
    }
}

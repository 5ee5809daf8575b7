import Foundation
import PrefetchModel
import Testing

@testable import Codecs

/// Files that a library refuses, or would show wrongly or too kindly.
@Suite(.timeLimit(.minutes(15)), .enabled(if: TestData.isAvailable))
struct LibraryLimitTests {
    private func bytes(_ name: String) throws -> [UInt8] { try TestData.bytes("cases/" + name) }

    /// Returns the offset of the first such text; `last` finds the last one.
    private func place(_ text: String, in source: [UInt8], last: Bool = false) throws -> Int {
        let data = Data(source)
        let found = data.range(of: Data(text.utf8), options: last ? .backwards : [])
        return try #require(found?.lowerBound)
    }

    // MARK: Refused by the library, stored unchanged

    @Test(arguments: [
        ("issue_2811.gif", "LZW code size 11"),
        ("color_grid_alpha_nogrid.avif", "alpha for each tile of a grid"),
    ])
    func storesUndecodedWhatItsLibraryRefuses(name: String, words: String) throws {
        let source = try bytes(name)
        guard case .unsupported(let text)? = refusal(source) else {
            Issue.record("\(String(describing: refusal(source)))")
            return
        }
        #expect(text.contains(words))
        let library = name.hasSuffix("gif") ? "giflib" : "libavif"
        #expect(text.contains(library + " "))
        let header = try storedAsItCame(source).get()
        #expect(header.widthInPixels > 0)
        // An incomplete file is not stored.
        guard case .failure(.corrupt) = storedAsItCame(Array(source.dropLast(400))) else {
            Issue.record("a cut file was stored")
            return
        }
    }

    @Test func refusesTilesInAnotherOrder() throws {
        var source = try bytes("color_grid_alpha_nogrid.avif")
        let alpha = try place("auxl", in: source)
        source.replaceSubrange(alpha..<alpha + 4, with: Array("free".utf8))
        let other = try place("auxl", in: source)
        source.replaceSubrange(other..<other + 4, with: Array("free".utf8))
        #expect(refusal(source) == nil)
        let tiles = try place("dimg", in: source) + 8
        source.swapAt(tiles + 1, tiles + 3)
        guard case .unsupported? = refusal(source) else {
            Issue.record("\(String(describing: refusal(source)))")
            return
        }
    }

    /// Libraries differ in whether alpha follows its own turn or that of the picture.
    @Test func refusesAlphaTurnedUnlikeItsPicture() throws {
        var source = try FormatSample.named("alpha", .avif)
        #expect(refusal(source) == nil)
        let property = try place("pixi", in: source, last: true)
        source.replaceSubrange(property..<property + 5, with: Array("irot".utf8) + [1])
        guard case .unsupported(let text)? = refusal(source) else {
            Issue.record("\(String(describing: refusal(source)))")
            return
        }
        #expect(text.contains("alpha that is turned"))
    }

    /// 64 by 64 pixels of 4:2:0, which the container calls 4:4:4, with an aperture of one pixel at
    /// an odd place. libavif checks it again with the data's subsampling, and drops it.
    private static var aperture: Data? {
        Data(
            base64Encoded: """
                AAAAIGZ0eXBhdmlmAAAAAGF2aWZtaWYxbWlhZk1BMUIAAAEbbWV0YQAAAAAAAAAoaGRscgAAAAAAAAAA\
                cGljdAAAAAAAAAAAAAAAAGxpYmF2aWYAAAAADnBpdG0AAAAAAAEAAAAeaWxvYwAAAABEAAABAAEAAAAB\
                AAABQwAAAEMAAAAoaWluZgAAAAAAAQAAABppbmZlAgAAAAABAABhdjAxQ29sb3IAAAAAk2lwcnAAAABz\
                aXBjbwAAABRpc3BlAAAAAAAAAEAAAABAAAAAEHBpeGkAAAAAAwgICAAAAAxhdjFDgQAAAAAAABNjb2xy\
                bmNseAABAA0ABoAAAAAoY2xhcAAAAAEAAAABAAAAAQAAAAEAAAADAAAAAgAAAAMAAAACAAAAGGlwbWEA\
                AAAAAAAAAQABBQECgwSFAAAAS21kYXQSAAoJGBV//YICGg0IMjQfAD///8QA2AREfhm4pkgT/OYdN9Em\
                jWbC+Xc3J7GZ+HxVxlsyd07+Lu62xikZ/Ow+zRPe
                """)
    }

    @Test(.enabled(if: CodecLibraries.decodes(.avif)))
    func refusesAnApertureThatOnlyTheContainerAllows() throws {
        let source = [UInt8](try #require(LibraryLimitTests.aperture))
        for encoding in [Recipe.Encoding.png, .jpeg] {
            #expect(
                refusal(source, Recipe(encoding: encoding))
                    == .corrupt("damaged data", isTruncated: false))
        }
    }

    // MARK: Read despite the library

    @Test func decodesASequenceWithASoundTrack() throws {
        let source = try bytes("sequence-with-sound.avif")
        let silent = try bytes("sequence.avif")
        #expect(refusal(source) == nil)
        var recipe = Recipe(encoding: .png)
        recipe.animation = .first
        let isAnimated = try source.withUnsafeBytes { try Codecs.header(of: $0).isAnimated }
        #expect(isAnimated)
        #expect(try stored(source, recipe).bytes == stored(silent, recipe).bytes)
    }

    @Test func decodesALastBoxWithoutALength() throws {
        var source = try TestData.bytes("unsupported/hopper.avif")
        let data = try place("mdat", in: source)
        for index in data - 4..<data { source[index] = 0 }
        #expect(refusal(source) == nil)
    }

    @Test func appliesTheLimitToDecodedPicturesOnly() throws {
        #expect(refusal(try bytes("pyramid_pymd.avif")) == nil)
    }

    // MARK: Damage that libraries hide

    @Test(arguments: [(41277, 128), (128, 129), (127, 128), (40000, 40000)])
    func refusesAnAVIFOfAnotherSize(width: Int, height: Int) throws {
        var source = try TestData.bytes("unsupported/hopper.avif")
        #expect(refusal(source) == nil)
        let size = try place("ispe", in: source) + 8
        for index in 0..<4 {
            source[size + index] = UInt8(truncatingIfNeeded: width >> (24 - 8 * index))
            source[size + 4 + index] = UInt8(truncatingIfNeeded: height >> (24 - 8 * index))
        }
        #expect(refusal(source) != nil)
    }

    @Test func refusesInvalidLZWCodes() throws {
        guard case .corrupt? = refusal(try bytes("gif-code-out-of-range.gif")) else {
            Issue.record("stored")
            return
        }
        // One pixel: a clear code, then a code that the table does not have yet.
        let head: [UInt8] =
            Array("GIF89a".utf8) + [1, 0, 1, 0, 0x80, 0, 0, 0, 0, 0, 255, 255, 255]
            + [0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2]
        for (code, isRight) in [(0, true), (1, true), (6, false), (7, false)] {
            // Codes of three bits: clear (4), the code, end (5).
            let bits = 4 | code << 3 | 5 << 6
            let source = head + [2, UInt8(bits & 255), UInt8(bits >> 8), 0, 0x3B]
            #expect((refusal(source) == nil) == isRight, "\(code)")
        }
    }

    @Test(arguments: [Recipe.Stripping.safe, .all, .none])
    func repairsTheFlagsOfAWebP(stripping: Recipe.Stripping) throws {
        var recipe = Recipe()
        recipe.stripping = stripping
        var source = try bytes("webp-alph-without-flag.webp")
        #expect(source[20] & 0x10 == 0)
        #expect(try stored(source, recipe).bytes[20] == 0x10)
        // Reserved bits.
        source[20] = 0xD1
        #expect(try stored(source, recipe).bytes[20] == 0x10)
    }

    // MARK: Encodings of SVG

    @Test(arguments: [
        "utf8", "UTF8", "utf_8", "latin1", "cp1252", "iso_8859-1", "Latin-1", "win1251", "ASCII",
        "shift_jis", "gb18030", "EUC-KR",
    ])
    func readsEncodingsByAlias(name: String) throws {
        let text = "<?xml version='1.0' encoding='\(name)'?><svg><title>A 😀</title></svg>"
        #expect(try storedAsItCame(Array(text.utf8)).get().format == .svg)
    }

    @Test(arguments: ["ebcdic-cp-us", "utf-7", "x-unheard-of"])
    func namesUnsupportedEncodings(name: String) {
        let text = "<?xml version='1.0' encoding='\(name)'?><svg/>"
        guard case .failure(.unsupported(let message)) = storedAsItCame(Array(text.utf8)) else {
            Issue.record("\(storedAsItCame(Array(text.utf8)))")
            return
        }
        #expect(message.contains(name))
        let other = "<?xml version='1.0' encoding='\(name)'?><html/>"
        #expect(storedAsItCame(Array(other.utf8)).isNotAnImage)
    }
}

/// The trials of `doctor`, with the libraries as loaded.
struct LibraryTrialTests {
    @Test func everyDecoderDecodesItsPicture() {
        #expect(CodecLibraries.failingDecoders() == [])
    }

    @Test(arguments: ImageFormat.allCases.filter(CodecLibraries.decodes))
    func findsWhatADecoderDoesWrong(format: ImageFormat) throws {
        let codec = try #require(format.codec)
        let text = try #require(CodecLibraries.tinyPicture(of: format))
        let picture = [UInt8](try #require(Data(base64Encoded: text)))
        #expect(CodecLibraries.trialFailure(of: picture, codec) == nil)
        let converted = try stored(picture, Recipe(encoding: .png)).bytes
        #expect(CodecLibraries.trialFailure(of: converted, .png) == nil)
        #expect(
            CodecLibraries.trialFailure(of: Samples.colourPNG, .png)?.contains("colour") == true)
        let cut = Array(picture.prefix(picture.count / 2))
        #expect(CodecLibraries.trialFailure(of: cut, codec) != nil)
    }
}

extension Result where Failure == CodecError {
    fileprivate var isNotAnImage: Bool {
        if case .failure(.notAnImage) = self { return true }
        return false
    }
}

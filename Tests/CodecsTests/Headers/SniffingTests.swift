import Codecs
import PrefetchModel
import Testing

@Suite(.serialized, .timeLimit(.minutes(15))) struct SniffingTests {
    static let signatures: [(ImageFormat, [UInt8])] = [
        (.jpeg, [0xFF, 0xD8, 0xFF, 0xE0]),
        (.png, [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]),
        (.webp, Array("RIFF\u{1}\0\0\0WEBPVP8 ".utf8)),
        (.gif, Array("GIF87a".utf8)),
        (.gif, Array("GIF89a".utf8)),
        (.bmp, Array("BM".utf8) + [0, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40, 0, 0, 0]),
        (.tiff, [0x49, 0x49, 0x2A, 0]),
        (.tiff, [0x4D, 0x4D, 0, 0x2A]),
        (.avif, [0, 0, 0, 28] + Array("ftypmif1\0\0\0\0mif1avifmiaf".utf8)),
        (.avif, [0, 0, 0, 20] + Array("ftypavif\0\0\0\0avif".utf8)),
        (.heif, [0, 0, 0, 24] + Array("ftypheic\0\0\0\0mif1heic".utf8)),
        (.jpegXL, [0xFF, 0x0A, 0, 0]),
        (.jpegXL, [0, 0, 0, 12] + Array("JXL ".utf8) + [0x0D, 0x0A, 0x87, 0x0A]),
        (.jpeg2000, [0, 0, 0, 12] + Array("jP  ".utf8) + [0x0D, 0x0A, 0x87, 0x0A]),
        (.jpeg2000, [0xFF, 0x4F, 0xFF, 0x51]),
        (.heif, [0, 0, 0, 16] + Array("ftypmif3\0\0\0\0".utf8)),
        (.psd, Array("8BPS\0\u{1}\0\0\0\0\0\0".utf8)),
        (.psd, Array("8BPS\0\u{2}\0\0\0\0\0\0".utf8)),
        (.dds, Array("DDS \u{7C}\0\0\0".utf8)),
        (.qoi, Array("qoif\0\0\0\u{1}\0\0\0\u{1}\u{3}\0".utf8)),
        (.pnm, Array("P1 1 1 ".utf8)), (.pnm, Array("P2\n1 1 9\n".utf8)),
        (.pnm, Array("P3\r\n1\t1 9 ".utf8)), (.pnm, Array("P4#\n1#\n 1\n".utf8)),
        (.pnm, Array("P5 1 1 65535 ".utf8)), (.pnm, Array("P6 # by GIMP\n1 1 255\n".utf8)),
        (.pnm, Array("P7\nWIDTH 1\nHEIGHT 1\nDEPTH 1\nMAXVAL 1\nTUPLTYPE X\nENDHDR\n".utf8)),
        (.pnm, Array("PF 1 1 -1.0 ".utf8)), (.pnm, Array("Pf\n1 1\n2\n".utf8)),
        (.icns, Array("icns\0\0\0\u{18}ic07\0\0\0\u{10}".utf8)),
        (.exr, [0x76, 0x2F, 0x31, 0x01, 2]),
        (.icon, [0, 0, 1, 0, 1, 0, 16, 16, 0, 0, 1, 0, 32, 0, 0, 0, 0, 0, 22, 0, 0, 0]),
    ]

    @Test(arguments: signatures)
    func knowsSignatures(format: ImageFormat, signature: [UInt8]) {
        #expect(signature.withUnsafeBytes { sniffed($0) } == format)
        #expect(
            signature.dropLast(2).map { $0 }.prefix(2).withUnsafeBytes { sniffed($0) } == nil
                || format == .jpegXL)
    }

    @Test(arguments: [
        "", "<!DOCTYPE html><html>", "{\"error\":404}", "BMW is no bitmap at all",
        "RIFF1234WAVEfmt ", "GIF90a", "\u{FEFF}text", "\0\0\0\u{14}ftypisom\0\0\0\0mp42",
    ])
    func refusesOtherContent(text: String) {
        guard case .notAnImage = refusal(Array(text.utf8)) else {
            Issue.record("\(String(describing: refusal(Array(text.utf8))))")
            return
        }
    }

    @Test(arguments: signatures)
    func cutSignatureMayBecomeImage(signature: (format: ImageFormat, bytes: [UInt8])) {
        for count in 0...signature.bytes.count {
            let cut = Array(signature.bytes.prefix(count))
            let isKnown = cut.withUnsafeBytes { sniffed($0) } != nil
            #expect(isKnown || cut.withUnsafeBytes { mayBecomeImage($0) }, "\(cut)")
        }
    }

    @Test func cutPrologMayBecomeSVG() {
        let text = """
            \u{FEFF}<?xml version="1.0"?>
            <!-- \(String(repeating: "a drawing ", count: 40)) -->
            <!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "svg11.dtd">
            <svg
            """
        for count in 0...text.utf8.count {
            let cut = Array(text.utf8.prefix(count))
            #expect(cut.withUnsafeBytes { mayBecomeImage($0) }, "\(count)")
        }
    }

    @Test(arguments: [
        "<!DOCTYPE html><html>", "<html>", "{", "not found", "BM and more than 16 bytes",
        "RIFF1234WAVE", "GIF90", "\0\0\0\u{14}moov", "\u{FEFF}text", "P1 is no map", "P8 1 1 1 ",
        "PF 1 1 east ", "P6 1 -1 255 ", "P5 1 1 nine ", "P7\nWIDE 1\n", "DDS of a dentist", "Pa",
        "8BPS of sound",
        String(repeating: " ", count: 256),
    ])
    func otherContentNeverBecomesImage(text: String) {
        #expect(!Array(text.utf8).withUnsafeBytes { mayBecomeImage($0) })
    }

    /// Stored failures depend on these: a failure of a format that is decoded now must be cleared.
    @Test func listsEveryDecodedFormat() {
        let decoders = CodecLibraries.decoders.split(separator: ",").map {
            String($0.prefix { $0 != "/" })
        }
        let known = ImageFormat.allCases.filter { CodecLibraries.decodes($0) }
        #expect(decoders == known.map(\.rawValue))
        #expect(Set(known).isSuperset(of: [.jpeg, .png, .bmp, .icon]))
        #if WebP
            #expect(known.contains(.webp))
        #endif
        #if AVIF
            #expect(known.contains(.avif))
        #endif
        #if GIF
            #expect(known.contains(.gif))
        #endif
    }

    /// Recipes that make the same bytes of a source of each format, with the text of both.
    @Test(arguments: [
        (
            "jpeg", "same;q=85;strip=safe;background=000000;effort=small;animated=first",
            "jpeg;q=85;strip=safe"
        ),
        ("png", "same;q=85;strip=safe;max=9;larger", "png;strip=safe;larger"),
        ("bmp", "same;q=85;strip=safe;max=9;animated=first;larger", "png;strip=safe"),
        ("ico", "same;q=85;strip=safe;max=9;animated=first;larger", "png;strip=safe;larger"),
        ("webp", "same;q=85;strip=safe;max=9;larger", "same;q=85;strip=safe;max=9;larger"),
        ("gif", "same;q=85;strip=safe;max=9;effort=small;larger", "same;strip=safe"),
        ("avif", "same;q=85;strip=safe;max=9;larger", "same;q=85;strip=safe;max=9;larger"),
    ])
    func ignoresOptionsWithoutEffectOnSame(format: String, text: String, effective: String) {
        guard let rule = CodecLibraries.sameRules[format] else {
            #expect(ImageFormat(rawValue: format).map(CodecLibraries.decodes) == false)
            return
        }
        #expect(Recipe.effectiveText(of: text, under: rule) == effective)
    }

    @Test func namesFormatsThatAreNotDecoded() {
        for (format, signature) in Self.signatures where !CodecLibraries.decodes(format) {
            #expect(refusal(signature) == .unsupported("\(format.rawValue) is not decoded"))
        }
    }
}

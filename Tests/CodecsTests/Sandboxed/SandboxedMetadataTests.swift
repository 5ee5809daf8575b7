import PrefetchModel
import SeededRandom
import Testing

@testable import Codecs

/// The metadata of formats that only workers decode.
///
/// The files `private.*` were given EXIF with texts and a position, XMP, and in the TIFF IPTC, by
/// exiftool. Each text begins with `Private`.
@Suite(.serialized)
struct SandboxedMetadataTests {
    private static let samples = SandboxedFormatTests.loaded("ok").filter {
        $0.file.hasPrefix("private.")
    }

    /// Opens a sample as a worker does.
    private func open<Result>(
        _ bytes: [UInt8], _ format: ImageFormat,
        _ body: (any DataKeeping, UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        let codec = try #require(format.sandboxedCodec)
        return try bytes.withUnsafeBytes { bytes in
            let header = try codec.source.header(of: bytes)
            let source = try codec.open(bytes, header, CodecLimits())
            return try body(try #require(source as? any DataKeeping), bytes)
        }
    }

    private func kept(
        _ bytes: [UInt8], _ format: ImageFormat, by stripping: Recipe.Stripping
    ) throws -> [UInt8] {
        var recipe = Recipe()
        recipe.stripping = stripping
        return try open(bytes, format) { source, bytes in
            source.pieces(keptBy: recipe).bytes(of: bytes)
        }
    }

    private func holds(_ text: String, in bytes: [UInt8]) -> Bool {
        let text = Array(text.utf8)
        return bytes.indices.contains { bytes[$0...].starts(with: text) }
    }

    @Test(arguments: samples, [Recipe.Stripping.safe, .all])
    func keptDataHasNoMetadata(
        sample: SandboxedFormatTests.Sample, stripping: Recipe.Stripping
    ) throws {
        let bytes = try sample.bytes
        #expect(holds("Private", in: bytes))
        let result = try kept(bytes, sample.format, by: stripping)
        for text in ["Private", "GPSL", "xpacket", "exif:"] {
            #expect(!holds(text, in: result), "\(text)")
        }
        let carried = try open(result, sample.format) { source, _ in source.metadata }
        #expect(carried[.xmp].map { !XMPPacket.isWhole($0) } ?? true)
        #expect(carried[.exif]?.dropFirst(8).allSatisfy { $0 == 0 } ?? true)
        // The same picture.
        let (whole, stripped) = (
            try SandboxedFormatTests.decoded(bytes, sample.format),
            try SandboxedFormatTests.decoded(result, sample.format)
        )
        #expect(whole.png == stripped.png)
        // Nothing is left to strip.
        #expect(try kept(result, sample.format, by: stripping) == result)
    }

    @Test(arguments: samples)
    func keepsAllBytesOnRequest(sample: SandboxedFormatTests.Sample) throws {
        let bytes = try sample.bytes
        #expect(try kept(bytes, sample.format, by: .none) == bytes)
    }

    @Test(arguments: samples)
    func carriesMetadataIntoNewPixels(sample: SandboxedFormatTests.Sample) throws {
        var recipe = Recipe(encoding: .png)
        recipe.stripping = .none
        let carried = try open(try sample.bytes, sample.format) { source, _ in
            source.metadata(keptBy: recipe)
        }
        let exif = try #require(carried[.exif])
        for text in ["Private Person", "Private Place"] { #expect(holds(text, in: exif)) }
        exif.withUnsafeBytes {
            #expect(ExifOrientation.isWhole(tiff: $0))
            #expect(ExifOrientation.value(inTIFF: $0) == ExifOrientation.upright)
        }
        #expect(holds("Private Author", in: try #require(carried[.xmp])))
        if sample.format == .tiff {
            #expect(holds("Private Scene", in: exif))
            #expect(holds("Private Byline", in: try #require(carried[.iptc])))
        }
    }

    /// Stripping never reads outside a damaged file, and what it keeps is no longer than before.
    @Test(arguments: samples)
    func stripsDamagedFiles(sample: SandboxedFormatTests.Sample) throws {
        let bytes = try sample.bytes
        var random = SplitMix(seed: UInt64(bytes.count))
        for _ in 0..<3000 {
            var damaged = Array(bytes.prefix(Int.random(in: 1...bytes.count, using: &random)))
            for _ in 0..<4 {
                let place = Int.random(in: 0..<damaged.count, using: &random)
                damaged[place] = UInt8.random(in: 0...255, using: &random)
            }
            guard let result = try? kept(damaged, sample.format, by: .safe) else { continue }
            #expect(result.count <= damaged.count)
        }
    }
}

import Foundation
import PrefetchModel
import Testing

@testable import Codecs

/// Decoders of formats that only workers decode: their pixels, refusals and damage.
///
/// They are called directly, since the process of the tests has no walls. Samples were made with
/// Pillow, tifffile, libheif, libjxl and openjpeg.
@Suite(.serialized, .timeLimit(.minutes(15)))
struct SandboxedFormatTests {
    /// A line of `EXPECT.tsv`.
    struct Sample: CustomTestStringConvertible, Sendable {
        let file: String
        let format: ImageFormat
        /// `ok`, `stored` for a file that the library refuses, or `corrupt`.
        let verdict: String
        /// The PNG of its pixels.
        let pixels: String
        /// The largest difference of a sample, in parts of 255; in parts of 65,535 for 16 bits.
        let tolerance: Int

        var testDescription: String { file }
        var bytes: [UInt8] { get throws { try SandboxedFormatTests.bytes(file) } }
    }

    static let folder = SourceTree.tests.appending(path: "SandboxedSamples")

    static func bytes(_ name: String) throws -> [UInt8] {
        [UInt8](try Data(contentsOf: folder.appending(path: name)))
    }

    static let samples: [Sample] = {
        let path = folder.appending(path: "EXPECT.tsv")
        let text = (try? String(contentsOf: path, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").dropFirst().compactMap { line in
            let fields = line.split(separator: "\t", omittingEmptySubsequences: false)
            guard fields.count == 5, let format = ImageFormat(rawValue: String(fields[1])),
                let tolerance = Int(fields[4])
            else { return nil }
            return Sample(
                file: String(fields[0]), format: format, verdict: String(fields[2]),
                pixels: String(fields[3]), tolerance: tolerance)
        }
    }()

    /// The samples of formats with an installed library.
    static func loaded(_ verdicts: String...) -> [Sample] {
        samples.filter {
            verdicts.contains($0.verdict) && $0.format.sandboxedLibrary?.missing == nil
                && $0.format.sandboxedCodec != nil
        }
    }

    private static let formats: [ImageFormat] = [.tiff, .heif, .jpegXL, .jpeg2000].filter {
        $0.sandboxedCodec != nil && $0.sandboxedLibrary?.missing == nil
    }

    @Test func samplesAreThere() throws {
        #expect(SandboxedFormatTests.samples.count > 60)
        let names = try FileManager.default.contentsOfDirectory(
            atPath: SandboxedFormatTests.folder.path
        ).filter { !$0.hasSuffix(".png") && !$0.hasSuffix(".tsv") }
        #expect(Set(names) == Set(SandboxedFormatTests.samples.map(\.file)))
    }

    /// Decodes as a worker does, to a PNG.
    static func decoded(
        _ bytes: [UInt8], _ format: ImageFormat
    ) throws -> (header: ImageHeader, png: [UInt8], warning: ImageWarning?) {
        let codec = try #require(format.sandboxedCodec)
        return try bytes.withUnsafeBytes { bytes in
            let header = try codec.source.header(of: bytes)
            if let refusal = header.libraryRefusal { throw CodecError.unsupported(refusal) }
            let limits = CodecLimits()
            let interruption = Interruption(limits, nil)
            let source = try codec.open(bytes, header, limits)
            try source.check(.ignoredByDecoder, memoryBytes: 0, interruption)
            var raster = try source.raster(at: .full, interruption)
            try raster.turn(interruption)
            let image = try EncodedFormat.encoded(.png).encoded(
                raster, metadata: .none, by: Recipe(encoding: .png), interruption)
            guard case .encoded(let png) = image.output else {
                throw CodecError.encodingFailed("no bytes")
            }
            return (header, png.withUnsafeBytes { [UInt8]($0) }, source.warning)
        }
    }

    @Test(arguments: loaded("ok"))
    func decodesTheRightPixels(sample: Sample) throws {
        let result = try SandboxedFormatTests.decoded(try sample.bytes, sample.format)
        let (made, wanted) = (
            try ShownPixels(png: result.png),
            try ShownPixels(png: SandboxedFormatTests.bytes(sample.pixels + ".png"))
        )
        let (width, height) = result.header.displayedSize
        #expect((made.width, made.height) == (wanted.width, wanted.height))
        #expect((width, height) == (wanted.width, wanted.height))
        guard made.pixels.count == wanted.pixels.count else { return }
        let unit = result.header.bitDepth == 16 ? 1 : 257
        var most = 0
        for (one, other) in zip(made.pixels, wanted.pixels) {
            let alphas = abs(Int(one.w) - Int(other.w))
            most = max(most, alphas)
            // Hardly visible colours are rounded.
            guard other.w > 40 * 257 else { continue }
            for channel in 0..<3 { most = max(most, abs(Int(one[channel]) - Int(other[channel]))) }
        }
        #expect(most <= sample.tolerance * unit, "\(most / unit)")
    }

    @Test(arguments: loaded("stored"))
    func refusesByTheHeader(sample: Sample) throws {
        let codec = try #require(sample.format.sandboxedCodec)
        let header = try sample.bytes.withUnsafeBytes { try codec.source.header(of: $0) }
        #expect(header.libraryRefusal?.isEmpty == false)
        #expect(header.codec == nil)
        #expect((header.widthInPixels, header.heightInPixels) == (22, 16))
    }

    @Test(arguments: loaded("corrupt"))
    func refusesDamage(sample: Sample) throws {
        let error = #expect(throws: CodecError.self) {
            _ = try SandboxedFormatTests.decoded(try sample.bytes, sample.format)
        }
        guard case .corrupt? = error else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    /// No beginning of a file is taken for the whole picture, except if only boxes of metadata are
    /// missing.
    @Test(arguments: loaded("ok").filter { !$0.file.hasPrefix("private.") })
    func refusesEveryCut(sample: Sample) throws {
        let bytes = try sample.bytes
        let whole = try SandboxedFormatTests.decoded(bytes, sample.format)
        for share in 1..<16 {
            let cut = Array(bytes.prefix(bytes.count * share / 16))
            let result = Result { try SandboxedFormatTests.decoded(cut, sample.format) }
            if case .success(let made) = result {
                // Bytes behind the picture may be missing.
                #expect(made.png == whole.png, "\(share)")
                #expect(made.warning != nil, "\(share)")
            }
        }
    }

    @Test func warnsOfFurtherPages() throws {
        guard SandboxedFormatTests.formats.contains(.tiff) else { return }
        let result = try SandboxedFormatTests.decoded(
            try SandboxedFormatTests.bytes("pages.tif"), .tiff)
        #expect(result.warning?.text == "only the first page is decoded")
    }

    /// libheif tells nothing of the numbers beside one that it does not know.
    @Test func refusesUnknownCodePoints() throws {
        guard SandboxedFormatTests.formats.contains(.heif) else { return }
        var bytes = try SandboxedFormatTests.bytes("rgb.heic")
        let mark = Array("nclx".utf8)
        let place = try #require(bytes.indices.first { bytes[$0...].starts(with: mark) })
        // BT.2020, PQ, and a matrix that is reserved.
        bytes.replaceSubrange(place + 4..<place + 10, with: [0, 9, 0, 16, 0, 3])
        let codec = try #require(ImageFormat.heif.sandboxedCodec)
        let colours = try bytes.withUnsafeBytes { bytes in
            try codec.open(bytes, codec.source.header(of: bytes), CodecLimits()).colours
        }
        guard case .unconvertible = colours else {
            Issue.record("\(colours)")
            return
        }
    }

    @Test func countsFrames() throws {
        guard SandboxedFormatTests.formats.contains(.jpegXL) else { return }
        let result = try SandboxedFormatTests.decoded(
            try SandboxedFormatTests.bytes("animation.jxl"), .jpegXL)
        #expect(result.header.isAnimated && result.header.frames == 3)
    }

    @Test(arguments: formats)
    func decodesItsTinyPicture(format: ImageFormat) throws {
        let codec = try #require(format.sandboxedCodec)
        let text = try #require(CodecLibraries.tinyPicture(of: format))
        let bytes = try #require(
            Array(text.utf8).withUnsafeBytes { [UInt8](base64: $0) })
        #expect(CodecLibraries.trialFailure(of: bytes, codec) == nil)
    }

    /// The file that a process finds without loading it is the one that it loads.
    @Test(arguments: formats)
    func findsTheLibraryWithoutLoadingIt(format: ImageFormat) throws {
        let library = try #require(format.sandboxedLibrary)
        #expect(library.installedVersion?.isEmpty == false)
        #expect(library.decoder == "\(format.rawValue)/\(library.installedVersion ?? "")")
        #expect(!library.version.isEmpty)
    }

    /// Nothing in this process decodes them before it is allowed to.
    @Test(arguments: [ImageFormat.tiff, .heif, .jpegXL, .jpeg2000])
    func areNotDecodedWithoutWalls(format: ImageFormat) throws {
        #expect(format.codec == nil && !CodecLibraries.decodes(format))
        let sample = try #require(
            SandboxedFormatTests.samples.first { $0.format == format && $0.verdict == "ok" })
        let bytes = try sample.bytes
        try bytes.withUnsafeBytes { bytes in
            let header = try Codecs.header(of: bytes, others: .store)
            let entry = try ImageProcessor.process(
                bytes, header: header, recipes: [Recipe(encoding: .webp)])
            let image = try #require(try entry.results.first?.get())
            #expect(!image.isDecoded && image.format == format)
        }
    }
}

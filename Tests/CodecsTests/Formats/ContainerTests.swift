import CodecFuzzing
import Foundation
import PrefetchModel
import SeededRandom
import Testing

@testable import Codecs

/// The stored form of a source in a format that is not decoded, or the error.
func storedAsItCame(
    _ source: [UInt8], limits: CodecLimits = CodecLimits(), memoryBytes: Int = .max
) -> Result<ImageHeader, CodecError> {
    source.withUnsafeBytes { bytes in
        Result { () throws(CodecError) in
            let header = try header(of: bytes, limits: limits, others: .store)
            let entry = try ImageProcessor.process(
                bytes, header: header, recipes: [Recipe(), Recipe(encoding: .original)],
                limits: limits, memoryBytes: memoryBytes)
            guard !entry.isDecoded, entry.results.count == 2 else {
                throw .encodingFailed("not one result for each recipe")
            }
            for result in entry.results {
                let image = try result.get()
                guard case .source = image.output, !image.isDecoded, image.format == header.format
                else { throw .encodingFailed("not the source's bytes") }
            }
            return header
        }
    }
}

extension HandmadeContainer {
    /// The containers that this build stores unchanged.
    static let undecoded = all.filter { $0.format.codec == nil }
}

@Suite(.timeLimit(.minutes(15)))
struct ContainerTests {
    @Test(arguments: HandmadeContainer.undecoded)
    func storesWholeFileUnchanged(file: HandmadeContainer) throws {
        let header = try storedAsItCame(file.bytes).get()
        #expect(header.format == file.format)
        #expect(header.widthInPixels == file.size?.width ?? 0)
        #expect(header.heightInPixels == file.size?.height ?? 0)
        #expect(header.orientation == file.orientation)
    }

    /// The stored sides belong to the picture as displayed.
    @Test(arguments: HandmadeContainer.undecoded.filter { $0.orientation > 1 })
    func statesDisplayedSidesAndOrientation(file: HandmadeContainer) throws {
        let image = try file.bytes.withUnsafeBytes { bytes in
            try ImageProcessor.process(
                bytes, header: header(of: bytes, others: .store), recipes: [Recipe()]
            ).results[0].get()
        }
        let size = try #require(file.size)
        #expect((image.widthInPixels, image.heightInPixels) == (size.height, size.width))
        #expect(image.orientation == file.orientation)
    }

    /// Each corner of the picture is followed through the angle and then the mirror.
    @Test(arguments: [nil, 0, 1, 2, 3] as [UInt8?], [nil, 0, 1] as [UInt8?])
    func readsTurnsOfTheMainItem(angle: UInt8?, axis: UInt8?) throws {
        // From the top left, clockwise.
        var corners = [0, 1, 2, 3]
        for _ in 0..<(angle ?? 0) { corners = Array(corners[1...] + corners[..<1]) }
        if axis == 0 { corners = [3, 2, 1, 0].map { corners[$0] } }
        if axis == 1 { corners = [1, 0, 3, 2].map { corners[$0] } }
        let ofOrientations = [
            [0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0], [0, 3, 2, 1], [3, 0, 1, 2],
            [2, 1, 0, 3], [1, 2, 3, 0],
        ]
        let orientation = try #require(ofOrientations.firstIndex(of: corners)) + 1
        let file = HandmadeContainer.turnedHEIC(
            angle: angle, axis: axis, orientation: orientation)
        #expect(try storedAsItCame(file.bytes).get().orientation == orientation)
    }

    /// A build without the format's decoder states the same orientation.
    @Test(arguments: FormatSample.all.filter { [.avif, .webp].contains($0.format) && $0.isTaken })
    func readsTheOrientationThatDecodersRead(sample: FormatSample) throws {
        guard CodecLibraries.decodes(sample.format) else { return }
        let bytes = try sample.bytes
        let decoded = try imageHeader(bytes)
        guard !decoded.isAnimated else { return }
        let findings = try bytes.withUnsafeBytes {
            try ContainerFindings(of: $0, as: sample.format)
        }
        #expect(findings?.orientation == decoded.orientation)
        if sample.name.hasPrefix("orientation-") || sample.name.hasPrefix("turned-1") {
            #expect(decoded.orientation > 1)
        }
    }

    @Test(arguments: HandmadeContainer.undecoded)
    func neverStoresTruncatedFile(file: HandmadeContainer) {
        for count in 0..<(file.bytes.count - file.spareBytes) {
            let outcome = storedAsItCame(Array(file.bytes.prefix(count)))
            switch outcome {
            case .success:
                Issue.record("cut to \(count) of \(file.bytes.count) bytes")
            case .failure(.notAnImage), .failure(.corrupt): break
            case .failure(let error):
                Issue.record("cut to \(count) bytes: \(error)")
            }
        }
    }

    /// A container with a last box without a length looks whole wherever it is cut.
    @Test func openEndedContainerDoesNotStateItsEnd() {
        for file in HandmadeContainer.all {
            let isOpen = file.format == .avif && file.spareBytes > 0
            let stated = file.bytes.withUnsafeBytes { statesItsEnd($0) }
            #expect(stated == (!isOpen || CodecLibraries.decodes(.avif)), "\(file)")
            guard [.heif, .jpegXL].contains(file.format) else { continue }
            for type in ["mdat", "jxlc", "jxlp"] {
                guard let box = HandmadeContainer.lastBox(type, of: file.bytes) else { continue }
                var open = file.bytes
                open.replaceSubrange(box..<box + 4, with: [0, 0, 0, 0])
                #expect(!open.withUnsafeBytes { statesItsEnd($0) }, "\(file): \(type)")
            }
        }
        #expect(!([0xFF, 0x0A, 0b0101_0111, 0] as [UInt8]).withUnsafeBytes { statesItsEnd($0) })
    }

    /// Parsing terminates and stays within the bytes for extreme or random sizes and positions.
    @Test(arguments: HandmadeContainer.undecoded)
    func endsOnArbitraryBytes(file: HandmadeContainer) {
        for seed in 0..<600 as Range<UInt64> {
            var random = SplitMix(seed: seed)
            var bytes = file.bytes
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                let length = min(
                    [1, 2, 4, 8].randomElement(using: &random) ?? 1, bytes.count - place)
                let value: UInt8 = [0, 0xFF, 0x7F, 0x80, 1].randomElement(using: &random) ?? 0
                bytes.replaceSubrange(
                    place..<(place + length), with: repeatElement(value, count: length))
            }
            switch storedAsItCame(bytes) {
            case .success, .failure(.corrupt), .failure(.notAnImage), .failure(.tooManyPixels):
                break
            case .failure(let error): Issue.record("seed \(seed): \(error)")
            }
        }
    }

    /// Headers that announce no data would make any file complete.
    @Test func refusesPicturesWithoutData() throws {
        let changes: [(name: String, mark: String, distance: Int)] = [
            // The bits of a pixel, and the number of chunks.
            ("DDS of RGB", "DDS ", 88), ("EXR of two parts", "chunkCount\0int\0", 19),
        ]
        for (name, mark, distance) in changes {
            var bytes = try #require(HandmadeContainer.all.first { $0.name == name }).bytes
            let place = try #require(
                bytes.indices.first { bytes[$0...].starts(with: mark.utf8) })
            bytes.replaceSubrange(place + distance..<place + distance + 4, with: [0, 0, 0, 0])
            guard case .failure(.corrupt) = storedAsItCame(bytes) else {
                Issue.record("\(name)")
                continue
            }
        }
        let text = Array("icns files hold pictures of several sizes".utf8)
        #expect(text.withUnsafeBytes { sniffed($0) } == nil)
    }

    @Test func checksKnownSizes() {
        let heic = HandmadeContainer.all[0].bytes
        let limits = CodecLimits(maximumPixels: 1440 * 960 - 1)
        guard case .failure(.tooManyPixels) = storedAsItCame(heic, limits: limits) else {
            Issue.record("\(storedAsItCame(heic, limits: limits))")
            return
        }
    }

    /// Its signature is only two bytes long.
    @Test func acceptsBareJPEGXLByHeader() throws {
        // A small size: height 8·(11 + 1), square.
        let header = try storedAsItCame([0xFF, 0x0A, 0b0101_0111, 0]).get()
        #expect(header.format == .jpegXL)
        #expect((header.widthInPixels, header.heightInPixels) == (96, 96))
        #expect(
            storedAsItCame([0xFF, 0x0A]) == .failure(.cut("the codestream ends in its header")))
    }

    @Test func endsCyclicDirectoryChain() throws {
        let tiff = try #require(HandmadeContainer.all.first { $0.name == "TIFF" })
        let start = tiff.bytes[4..<8]
        let looping = tiff.bytes.dropLast(4) + start
        let warning = try Array(looping).withUnsafeBytes {
            try TIFFContainer.check($0, memoryBytes: 0, Interruption(CodecLimits(), nil))
        }
        #expect(warning?.text == "the chain of directories has no end")
    }

    private static let withoutPicture: [(bytes: [UInt8], message: String)] = {
        let type = HandmadeContainer.box("ftyp", Array("heicxxxxheic".utf8))
        let meta = HandmadeContainer.box("meta", HandmadeContainer.zeros(4))
        let webP = HandmadeContainer.riff(HandmadeContainer.chunk("EXIF", [1, 2]))
        let gif: [UInt8] = Array("GIF89a".utf8) + HandmadeContainer.zeros(7) + [0x3B]
        return [
            (type, "no box meta or moov"), (type + meta, "no box mdat"), (webP, "no picture"),
            (gif, "no picture"),
        ]
    }()

    @Test(arguments: withoutPicture)
    func aContainerWithoutAPictureIsRefused(bytes: [UInt8], message: String) {
        // A build that decodes the format has another message.
        guard bytes.withUnsafeBytes({ sniffed($0) })?.codec == nil else { return }
        guard case .failure(.corrupt(message, _)) = storedAsItCame(bytes) else {
            Issue.record("\(storedAsItCame(bytes))")
            return
        }
    }

    @Test func judgesByTheBeginning() {
        let rest = HandmadeContainer.zeros(4096)
        func verdict(_ bytes: [UInt8], _ others: OtherFormats) -> HeaderVerdict {
            (bytes + rest).withUnsafeBytes {
                HeaderVerdict(
                    onBeginning: $0, under: HeaderRules(others: others, memory: .mebibytes(64)))
            }
        }
        for file in HandmadeContainer.undecoded where file.format != .svg {
            let text = "\(file.format.rawValue) is not decoded"
            #expect(verdict(file.bytes, .fail) == .refused(.unsupported(text)))
            #expect(verdict(file.bytes, .skip) == .refused(.leftOut(.otherFormat, text)))
            #expect(verdict(file.bytes, .store) == .passed, "\(file)")
        }
    }

    /// Files that Pillow accepts but are not stored, with the reason.
    private static let differing = [
        "unsupported/ctc24.tga": "Targa has no signature: it would be guessed by its name"
    ]

    /// Exactly the shared files that Pillow accepts are stored, with its sizes, apart from JPEG,
    /// PNG and BMP. None is accepted when truncated.
    @Test(.enabled(if: TestData.isAvailable))
    func decidesAsPillowDoes() throws {
        var seen = 0
        for file in try TestData.expectations(in: "")
        where !["png", "jpeg", "jpeg?", "bmp"].contains(file.magic) {
            let bytes = try TestData.bytes(file.path)
            let outcome = storedAsItCame(bytes)
            guard file.pillow == "ok", ContainerTests.differing[file.path] == nil else {
                guard case .failure(.notAnImage) = outcome else {
                    Issue.record("\(file): \(outcome)")
                    continue
                }
                continue
            }
            seen += 1
            // This build may have a codec for it.
            guard bytes.withUnsafeBytes({ sniffed($0) })?.codec == nil else { continue }
            let header = try outcome.get()
            #expect(header.widthInPixels == file.width, "\(file)")
            #expect(header.heightInPixels == file.height, "\(file)")
            for count in stride(from: 0, to: bytes.count, by: max(1, bytes.count / 500)) {
                guard case .failure = storedAsItCame(Array(bytes.prefix(count))) else {
                    Issue.record("\(file) cut to \(count) of \(bytes.count) bytes")
                    break
                }
            }
        }
        #expect(seen == 12)
    }
}

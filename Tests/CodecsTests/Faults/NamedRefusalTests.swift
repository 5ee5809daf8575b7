import CodecFuzzing
import PrefetchModel
import Testing

@testable import Codecs

/// Kinds of pictures that no decoder here knows: the message names them, and no setting stores
/// them.
@Suite(.serialized, .timeLimit(.minutes(15))) struct NamedRefusalTests {
    struct Kind: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// A part of the message.
        let name: String
        let bytes: [UInt8]
    }

    /// A JPEG with another marker of its frame.
    private static func jpeg(frame: UInt8) -> [UInt8] {
        var bytes = Samples.baselineJPEG
        if let place = bytes.markers(0xC0).first { bytes[place + 1] = frame }
        return bytes
    }

    /// The frame says 0 lines, and a segment behind the scan has the number.
    private static func heightBehindScan() -> [UInt8] {
        var bytes = Samples.baselineJPEG
        guard let place = bytes.markers(0xC0).first else { return [] }
        let height = Array(bytes[place + 5..<place + 7])
        bytes.replaceSubrange(place + 5..<place + 7, with: [0, 0])
        bytes.insert(contentsOf: [0xFF, 0xDC, 0, 4] + height, at: bytes.count - 2)
        return bytes
    }

    private static func type(_ brands: String...) -> [UInt8] {
        HandmadeContainer.box(
            "ftyp",
            Array(brands[0].utf8) + HandmadeContainer.zeros(4)
                + brands.dropFirst().flatMap { Array($0.utf8) })
    }

    static let kinds =
        [0xC3, 0xCB].map {
            Kind(testDescription: "lossless JPEG \($0)", name: "lossless", bytes: jpeg(frame: $0))
        }
        + [0xC5, 0xC6, 0xC7, 0xCD, 0xCE, 0xCF].map {
            Kind(
                testDescription: "hierarchical JPEG \($0)", name: "hierarchical",
                bytes: jpeg(frame: $0))
        } + [
            Kind(testDescription: "DNL", name: "DNL", bytes: heightBehindScan()),
            Kind(
                testDescription: "JPEG-LS", name: "JPEG-LS",
                bytes: [0xFF, 0xD8, 0xFF, 0xF7, 0, 11, 8, 0, 16, 0, 16, 1, 1, 0x11, 0]
                    + [0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 0, 0] + HandmadeContainer.zeros(40)
                    + [0xFF, 0xD9]),
            Kind(
                testDescription: "CgBI", name: "CgBI",
                bytes: Samples.colourPNG[..<8] + PNGFile.chunk(0x4367_4249, [0x50, 0, 0x20, 2])
                    + Samples.colourPNG[8...]),
        ] + mini

    /// The brand may be any one, and is not needed.
    private static let mini = [
        type("mif3"), type("mif3", "heic"), type("avif", "mif3"), type("heic", "mif3"),
        type("avif"), type("mif3") + HandmadeContainer.box("free", [1]),
        type("avif", "mif3") + HandmadeContainer.box("free", [1]),
    ].enumerated().map { index, begin in
        Kind(
            testDescription: "mini \(index)", name: "mif3",
            bytes: begin + HandmadeContainer.box("mini", HandmadeContainer.zeros(60)))
    }

    @Test(arguments: kinds, OtherFormats.allCases)
    func areRefusedByName(kind: Kind, others: OtherFormats) throws {
        let found = kind.bytes.withUnsafeBytes { bytes in
            Result { () throws(CodecError) in try header(of: bytes, others: others) }
        }
        guard case .failure(.unsupported(let text)) = found else {
            Issue.record("\(found)")
            return
        }
        #expect(text.contains(kind.name), "\(text)")
        // The beginning of the body suffices.
        let long = kind.bytes + HandmadeContainer.zeros(300)
        let rules = HeaderRules(others: others, memory: .mebibytes(64))
        let verdict = long.withUnsafeBytes { HeaderVerdict(onBeginning: $0, under: rules) }
        #expect(verdict == .refused(.unsupported(text)))
    }

    /// A picture with a box `meta` has the brand, too.
    @Test(.enabled(if: CodecLibraries.decodes(.avif)), arguments: ["avif", "mif1"])
    func brandAloneIsNotRefused(replaced: String) throws {
        var source = try FormatSample.named("lossy", .avif)
        let places = source.indices.filter {
            (16..<source[3] - 3).contains(UInt8(clamping: $0))
                && source[$0...].starts(with: replaced.utf8)
        }
        #expect(!places.isEmpty)
        for place in places { source.replaceSubrange(place..<place + 4, with: "mif3".utf8) }
        #expect(refusal(source) == nil)
    }

    /// The shared files of these kinds.
    @Test(.enabled(if: TestData.isAvailable, "the shared data is not there"))
    func sharedFilesAreNamed() throws {
        for folder in ["jpeg/lossless", "png/apple-cgbi"] {
            for path in try TestData.paths(in: folder) {
                guard case .unsupported(let text)? = refusal(try TestData.bytes(path)) else {
                    Issue.record("\(path): \(refusal(try TestData.bytes(path)) as Any)")
                    continue
                }
                #expect(text.contains("lossless") || text.contains("CgBI"), "\(path): \(text)")
            }
        }
    }
}

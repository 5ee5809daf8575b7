import Foundation
import SeededRandom
import TestSupport
import Testing

/// A list as the web has it: formats by the shares that the Web Almanac counts ends warm, whatever
/// is made of it.
@Suite(.timeLimit(.minutes(15)))
struct WebShareTests {
    private struct Sample {
        /// The format's name in the report.
        let format: String
        let bytes: [UInt8]
    }

    /// Shares of image formats on pages, in thousandths, from the Web Almanac. Its group of other
    /// formats is split about equally among likely formats.
    private static let shares = [
        ("jpeg", 324), ("png", 284), ("gif", 168), ("webp", 120), ("svg", 64), ("ico", 13),
        ("avif", 10), ("heif", 5), ("jxl", 4), ("tiff", 4), ("bmp", 4),
    ]
    private static let count = 200

    // MARK: Served images

    private static let tests = SourceTree.tests

    private static func files(
        in folder: URL, _ format: String, where isWanted: (URL) -> Bool = { _ in true }
    ) throws -> [Sample] {
        try FileManager.default.contentsOfDirectory(
            at: folder, includingPropertiesForKeys: nil
        )
        .sorted { $0.path < $1.path }.filter(isWanted)
        .map { Sample(format: format, bytes: [UInt8](try Data(contentsOf: $0))) }
    }

    /// Samples that two other decoders and the program accept, without bombs and samples in other
    /// colour spaces.
    private static func formatSamples(_ format: String) throws -> [Sample] {
        let folder = tests.appending(path: "FormatSamples/\(format)")
        func rows(_ name: String) throws -> [[String]] {
            try String(contentsOf: folder.appending(path: name), encoding: .utf8)
                .split(separator: "\n").dropFirst().map {
                    $0.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
                }
        }
        let differing = Set(try rows("differing.tsv").map { $0[0] })
        let good = Set(
            try rows("EXPECT.tsv").filter { $0[2] == "ok" && $0[6] == "ok" }.map { $0[0] }
        ).subtracting(differing)
        return try files(in: folder, format) {
            $0.pathExtension == format
                && good.contains($0.deletingPathExtension().lastPathComponent)
                && !$0.lastPathComponent.hasPrefix("bomb")
        }
    }

    private static func photographs(_ format: String) throws -> [Sample] {
        let folder = tests.deletingLastPathComponent().appending(path: "samples/images")
        let suffix = format == "jpeg" ? "jpg" : format
        let own = try files(in: folder, format) { $0.pathExtension == suffix }
        // Such as other people's programs make.
        let shared = try Corpus.files(.taken).filter {
            $0.isPNG == (format == "png") && (1...250_000).contains($0.pixels)
        }
        let decided = Set(try Corpus.decisions().map(\.path))
        return try own
            + shared.filter { !decided.contains($0.path) && !$0.path.contains("cmyk") }.map {
                Sample(format: format, bytes: try Corpus.bytes(of: $0))
            }
    }

    private static func big(_ value: Int, _ bytes: Int = 4) -> [UInt8] {
        (0..<bytes).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }

    private static func box(_ type: String, _ payload: [UInt8]) -> [UInt8] {
        big(8 + payload.count) + Array(type.utf8) + payload
    }

    /// 64 by 48 pixels.
    private static let heif: [UInt8] = {
        let size = box("ispe", big(0) + big(64) + big(48))
        let properties = box("iprp", box("ipco", size))
        return box("ftyp", Array("heic\0\0\0\0mif1heic".utf8))
            + box("meta", big(0) + properties) + box("mdat", [UInt8](repeating: 7, count: 50))
    }()

    private static let bitmaps = tests.appending(path: "BitmapSamples")

    private static func samples() throws -> [String: [Sample]] {
        var samples: [String: [Sample]] = [:]
        for format in ["jpeg", "png"] { samples[format] = try photographs(format) }
        for format in ["gif", "webp", "ico", "avif"] {
            samples[format] = try formatSamples(format)
        }
        samples["svg"] = (1...8).map {
            Sample(
                format: "svg",
                bytes: Array(
                    #"<svg xmlns="http://www.w3.org/2000/svg" width="\#($0)"><circle r="\#($0)"/></svg>"#
                        .utf8))
        }
        samples["heif"] = [Sample(format: "heif", bytes: heif)]
        // A bare codestream of 96 by 96 pixels.
        samples["jxl"] = [Sample(format: "jxl", bytes: [0xFF, 0x0A, 0b0101_0111, 0, 1, 2, 3])]
        samples["tiff"] = [Sample(format: "tiff", bytes: OtherFormatTests.tiff)]
        samples["bmp"] = try files(in: bitmaps, "bmp") {
            ["4-bit.bmp", "24-bit.bmp", "24-bit-from-the-top.bmp", "32-bit.bmp"].contains(
                $0.lastPathComponent)
        }
        return samples
    }

    /// Every line is a file of its own, at a path that says nothing of the format.
    private static func draw(seed: UInt64) throws -> [Sample] {
        let samples = try samples()
        var random = SplitMix(seed: seed)
        return try (0..<count).map { _ in
            var place = Int.random(in: 0..<1000, using: &random)
            let format =
                try #require(
                    shares.first {
                        place -= $0.1
                        return place < 0
                    }
                ).0
            return try #require(samples[format]?.randomElement(using: &random), "\(format)")
        }
    }

    // MARK: Results

    private static let ways: [[String]] = [
        [], ["--encode", "jpeg"], ["--resize", "64x64"],
        ["--encode", "png", "--animated", "first", "--variant", "thumb=32x32^,jpeg"],
    ]

    @Test(arguments: ways)
    func aListAsTheWebHasItEndsWarm(options: [String]) async throws {
        #expect(WebShareTests.shares.reduce(0) { $0 + $1.1 } == 1000)
        let drawn = try WebShareTests.draw(seed: 20)
        try await withOrigin { origin in
            for (number, sample) in drawn.enumerated() {
                origin.serve(
                    "/\(number)", .picture(sample.bytes, ("Cache-Control", "max-age=3600")))
            }
            let lines = drawn.indices.map { origin.url("/\($0)") }
            try await withWorkspace { workspace in
                let cold = try await workspace.prefetch(lines, options)
                #expect(cold.result.status == 0, "\(cold.result)")
                let entries = cold.report.entries.sorted { $0.line < $1.line }
                for (entry, sample) in zip(entries, drawn) where entry.outcome != "downloaded" {
                    Issue.record("\(sample.format): \(entry.verdict) \(entry.message ?? "")")
                }
                for (entry, sample) in zip(entries, drawn) where entry.isDecoded == false {
                    #expect(["svg", "heif", "jxl", "tiff"].contains(sample.format), "\(entry)")
                    #expect(try workspace.bytes(of: #require(entry.path)) == sample.bytes)
                }
                #expect(origin.requests.count == lines.count)
                let warm = try await workspace.prefetch(lines, options)
                #expect(warm.result.status == 0, "\(warm.result)")
                #expect(
                    warm.report.verdicts == [String](repeating: "fresh", count: lines.count))
                #expect(origin.requests.count == lines.count)
            }
        }
    }
}

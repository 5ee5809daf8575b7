import Codecs
import Foundation
import PrefetchModel
import Testing

/// The files of `Tests/FormatSamples`, with the verdicts of two other decoders.
struct FormatSample: CustomTestStringConvertible, Sendable {
    let format: ImageFormat
    let name: String
    /// Pillow's verdict, then the other decoder's: `ok` or `error`.
    let verdicts: [String]
    let sizes: [[Int]]
    /// Digests of the RGBA bytes: as drawn, then as decoded by each of the two; empty if there is
    /// none.
    let digests: [String]
    /// Our decision where the two differ or neither is followed.
    let decision: String?

    var testDescription: String { "\(format.rawValue): \(name)" }

    static let folder = SourceTree.tests.appending(path: "FormatSamples")

    /// `ok`, or the reason for the rejection.
    var verdict: String {
        decision ?? (verdicts.allSatisfy { $0 == "ok" } ? "ok" : "corrupt")
    }
    var isTaken: Bool { verdict == "ok" }
    var size: [Int]? { sizes.first { $0 != [0, 0] } }
    /// Whether the pixels of the other decoders are not followed.
    var isDrawn: Bool { digests.first?.isEmpty == false }
    var digest: String? { digests.first { !$0.isEmpty } }

    var bytes: [UInt8] {
        get throws { try FormatSample.file(name, format) }
    }

    static func lines(_ format: ImageFormat, _ name: String) -> [[String]] {
        let path = folder.appending(path: "\(format.rawValue)/\(name)")
        let text = (try? String(contentsOf: path, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").dropFirst().map {
            $0.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
        }
    }

    /// The formats that this build decodes.
    static let formats: [ImageFormat] = [.webp, .gif, .avif, .icon].filter {
        CodecLibraries.decodes($0)
    }

    static let all: [FormatSample] = formats.flatMap { format in
        let decisions = Dictionary(
            uniqueKeysWithValues: lines(format, "differing.tsv").map { ($0[0], $0[1]) })
        return lines(format, "EXPECT.tsv").map { fields in
            FormatSample(
                format: format, name: fields[0], verdicts: [fields[2], fields[6]],
                sizes: [fields[3...4], fields[7...8]].map { $0.compactMap { Int($0) } },
                digests: [fields[1], fields[5], fields[9]], decision: decisions[fields[0]])
        }
    }

    static let taken = all.filter(\.isTaken)
    /// Samples small enough to decode every truncation.
    static let small = taken.filter { sample in
        let size = sample.size ?? [1 << 20, 1]
        return size[0] * size[1] <= 1 << 12
    }

    /// Also of a format that this build does not decode.
    static func file(_ name: String, _ format: ImageFormat) throws -> [UInt8] {
        let path = "\(format.rawValue)/\(name).\(format.fileExtension)"
        return [UInt8](try Data(contentsOf: folder.appending(path: path)))
    }

    static func named(_ name: String, _ format: ImageFormat) throws -> [UInt8] {
        guard let sample = all.first(where: { $0.name == name && $0.format == format }) else {
            throw CocoaError(.fileNoSuchFile)
        }
        return try sample.bytes
    }
}

import CJPEG
import CodecFuzzing
import Foundation
import PrefetchModel
import Testing

@testable import Codecs

/// JPEGs decoded at several scales at once, compared with decoders for one scale each.
@Suite(.timeLimit(.minutes(15))) struct ScaledDecodingTests {
    private struct Decoded: Equatable {
        let width: UInt32
        let height: UInt32
        let channels: Int32
        let samples: [UInt8]

        init(_ result: cjpeg_result) throws {
            let start = try #require(result.bytes)
            defer { free(start) }
            width = result.width
            height = result.height
            channels = result.channels
            samples = [UInt8](UnsafeBufferPointer(start: start, count: result.length))
        }
    }

    private static let scales: [[UInt32]] = [[1, 2, 4, 8], [8, 1], [2, 4], [4]]

    private var limits: cjpeg_limits {
        cjpeg_limits(
            maximum_pixels: 1 << 24, maximum_scans: 100, maximum_warnings: 100,
            maximum_memory_bytes: 0, least_own_pixels: 0, interruption: nil, preview: nil,
            inks: cjpeg_inks())
    }

    private func alone(_ source: [UInt8], _ scale: UInt32) throws -> Decoded? {
        var (limits, result) = (limits, cjpeg_result())
        var message = [CChar](repeating: 0, count: Int(CCODEC_MESSAGE_BYTES))
        let status = cjpeg_decode_scaled(
            source, source.count, &limits, 0, scale, &result, &message)
        return status == CCODEC_OK ? try Decoded(result) : nil
    }

    private func together(_ source: [UInt8], _ scales: [UInt32]) throws -> [Decoded]? {
        var limits = limits
        var results = [cjpeg_result](repeating: cjpeg_result(), count: scales.count)
        var message = [CChar](repeating: 0, count: Int(CCODEC_MESSAGE_BYTES))
        let status = cjpeg_decode_scales(
            source, source.count, &limits, 0, scales, scales.count, &results, &message)
        guard status == CCODEC_OK else {
            #expect(results.allSatisfy { $0.bytes == nil })
            return nil
        }
        return try results.map { try Decoded($0) }
    }

    /// Whether all scales could be decoded at once.
    private func compare(_ source: [UInt8], _ name: String) throws -> Bool {
        var count = 0
        for scales in Self.scales {
            guard let made = try together(source, scales) else { continue }
            count += 1
            for (scale, decoded) in zip(scales, made) {
                #expect(try alone(source, scale) == decoded, "\(name) 1/\(scale) of \(scales)")
            }
        }
        #expect(count == 0 || count == Self.scales.count, "\(name)")
        return count > 0
    }

    @Test(arguments: Samples.jpegs) func samplesMatchSeparateDecoding(source: [UInt8]) throws {
        #expect(try compare(source, "sample"))
    }

    @Test func inksMatchSeparateDecoding() throws {
        #expect(try compare(HandmadeJPEG.plainCMYK(), "CMYK"))
    }

    @Test(arguments: [(1, 1), (7, 9), (16, 16), (17, 33), (255, 64), (640, 3), (3, 640)])
    func sizesMatchSeparateDecoding(width: Int, height: Int) throws {
        let samples = (0..<3 * width * height).map { UInt8(truncatingIfNeeded: $0 * $0 / 7) }
        let source = try Pixels(width: width, height: height, samples: samples).jpeg(quality: 85)
        #expect(try compare(source, "\(width)×\(height)"))
    }

    /// Baseline and progressive images of all samplings, truncated, damaged and unusual.
    @Test(.enabled(if: TestData.isAvailable)) func corpusMatchesSeparateDecoding() throws {
        var (shared, single) = (0, 0)
        for file in try TestData.expectations(in: "jpeg") {
            let source = try TestData.bytes(file.path)
            guard let header = try? imageHeader(source), header.pixels < 2_000_000 else { continue }
            let isWhole = try alone(source, 1) != nil
            let isShared = try compare(source, file.path)
            // An image that cannot be decoded alone is not decoded with others.
            #expect(isWhole || !isShared, "\(file.path)")
            if isShared { shared += 1 } else if isWhole { single += 1 }
        }
        // Scans without the finest coefficients are smoothed, one by one.
        #expect(shared > 100 && single < shared / 20, "\(shared) shared, \(single) not")
    }

    @Test func findsDamageAnywhere() throws {
        for source in Samples.jpegs {
            for end in stride(from: 100, to: source.count, by: source.count / 40) {
                let cut = Array(source[..<end])
                let isWhole = try alone(cut, 1) != nil
                #expect(try (together(cut, [1, 2, 8]) != nil) == isWhole)
            }
        }
    }
}

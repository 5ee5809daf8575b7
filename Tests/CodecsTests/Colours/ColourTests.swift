import CPNG
import Foundation
import PrefetchModel
import SeededRandom
import Testing

@testable import Codecs

/// Compares conversions to sRGB with floating-point references.
@Suite(.timeLimit(.minutes(15)))
struct ColourTests {
    private static func interruption() -> Interruption { Interruption(CodecLimits(), nil) }

    /// Converts a row of three-channel pixels.
    static func converted(
        _ pixels: [[Int]], bitDepth: Int, _ primaries: Int, _ transfer: Int,
        peak: Double = RGBSpace.usualPeak
    ) throws -> [[Int]] {
        guard
            case .space(let space) = SourceColours(
                primaries: primaries, transfer: transfer, peak: peak, ofA: "a picture")
        else { return pixels }
        let bytes = pixels.joined().flatMap {
            bitDepth == 8 ? [UInt8($0)] : [UInt8($0 >> 8), UInt8($0 & 255)]
        }
        let memory = try #require(malloc(bytes.count + 1))
        let rows = memory.assumingMemoryBound(to: UInt8.self)
        for (index, byte) in bytes.enumerated() { rows[index + 1] = byte }
        var image = cpng_image_of(rows, UInt32(pixels.count), 1, 3, nil)
        if bitDepth == 16 {
            image.bit_depth = 16
            image.row_bytes *= 2
            image.filter_distance *= 2
        }
        var raster = Raster(owning: image)
        try raster.convertToSRGB(from: space, interruption())
        return (0..<pixels.count).map { pixel in
            (0..<3).map { channel in
                let place = 3 * pixel + channel
                return bitDepth == 8
                    ? Int(rows[1 + place])
                    : Int(rows[1 + 2 * place]) << 8 | Int(rows[2 + 2 * place])
            }
        }
    }

    private static func light(_ sample: Double, _ transfer: Int) -> Double {
        switch transfer {
        case 4: pow(sample, 2.2)
        case 5: pow(sample, 2.8)
        case 7: sample < 0.0912 ? sample / 4 : pow((sample + 0.1115) / 1.1115, 1 / 0.45)
        case 8: sample
        default: sample <= 0.04045 ? sample / 12.92 : pow((sample + 0.055) / 1.055, 2.4)
        }
    }

    private static func sample(_ light: Double) -> Double {
        let light = min(max(light, 0), 1)
        return light <= 0.0031308 ? 12.92 * light : 1.055 * pow(light, 1 / 2.4) - 0.055
    }

    /// Published matrices from linear light of these primaries to BT.709's, with four decimals.
    /// Sources: ITU-R BT.2087-0 for BT.2020; CSS Color 4, section 20.3, for Display P3; and the
    /// identity.
    private static let published: [Int: [[Double]]] = [
        1: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
        9: [[1.6605, -0.5876, -0.0728], [-0.1246, 1.1329, -0.0083], [-0.0182, -0.1006, 1.1187]],
        12: [[1.2249, -0.2249, 0], [-0.0420, 1.0420, 0], [-0.0196, -0.0786, 1.0983]],
    ]

    private static func expected(
        _ pixel: [Int], most: Double, _ matrix: [[Double]], _ transfer: Int
    ) -> [Double] {
        let amounts = pixel.map { light(Double($0) / most, transfer) }
        return matrix.map { row in
            sample(zip(row, amounts).map { $0 * $1 }.reduce(0, +)) * most
        }
    }

    private static func pixels(most: Int) -> [[Int]] {
        var random = SplitMix(seed: 7)
        let corners = (0..<8).map { corner in (0..<3).map { corner >> $0 & 1 == 1 ? most : 0 } }
        let greys = stride(from: 0, through: most, by: max(most / 255, 1)).map { [$0, $0, $0] }
        return corners + greys
            + (0..<4000).map { number in
                // A third of them is dark, where the curve is steep.
                (0..<3).map { _ in
                    Int.random(in: 0...(number % 3 == 0 ? most / 8 : most), using: &random)
                }
            }
    }

    @Test(arguments: [1, 9, 12], [1, 4, 5, 7, 8, 13])
    func matchPublishedMatrices(primaries: Int, transfer: Int) throws {
        guard primaries != 1 || transfer > 2 && transfer < 13 else { return }
        let matrix = try #require(ColourTests.published[primaries])
        for (bitDepth, tolerance) in [(8, 1.0), (16, 257.0)] {
            let most = 1 << bitDepth - 1
            let pixels = ColourTests.pixels(most: most)
            let made = try ColourTests.converted(
                pixels, bitDepth: bitDepth, primaries, transfer)
            for (pixel, made) in zip(pixels, made) {
                let wanted = ColourTests.expected(pixel, most: Double(most), matrix, transfer)
                for (one, other) in zip(made, wanted) where abs(Double(one) - other) > tolerance {
                    Issue.record("\(bitDepth) bits: \(pixel) became \(made), not \(wanted)")
                    return
                }
            }
        }
    }

    /// These curves are tested alone, so no rounded matrix is involved.
    @Test(arguments: [4, 5, 7, 8])
    func curvesAreExact(transfer: Int) throws {
        let unit = try #require(ColourTests.published[1])
        for (bitDepth, tolerance) in [(8, 0.51), (16, 4.0)] {
            let most = 1 << bitDepth - 1
            let pixels = ColourTests.pixels(most: most)
            let made = try ColourTests.converted(pixels, bitDepth: bitDepth, 1, transfer)
            let differences = zip(pixels, made).flatMap { pixel, made in
                zip(made, ColourTests.expected(pixel, most: Double(most), unit, transfer)).map {
                    abs(Double($0) - $1)
                }
            }
            let largest = try #require(differences.max())
            #expect(largest <= tolerance, "\(bitDepth) bits")
        }
    }

    /// White stays white and grey stays grey, whatever the white point of the primaries.
    @Test(arguments: [4, 5, 6, 7, 8, 9, 11, 12, 22])
    func greyStaysGrey(primaries: Int) throws {
        for bitDepth in [8, 16] {
            let most = 1 << bitDepth - 1
            let greys = (0...255).map { [Int](repeating: $0 * most / 255, count: 3) }
            let made = try ColourTests.converted(greys, bitDepth: bitDepth, primaries, 13)
            if bitDepth == 8 { #expect(made == greys) }
            for (one, other) in zip(made, greys) {
                #expect(Set(one).count == 1 && abs(one[0] - other[0]) <= 4, "\(other): \(one)")
            }
        }
    }

    /// sRGB's own primaries, in other coordinates, are converted back to themselves by the
    /// published matrices.
    @Test func clipsColoursOutsideSRGB() throws {
        let p3 = try ColourTests.converted(
            [[0, 255, 0], [255, 0, 0], [0, 0, 255]], bitDepth: 8, 12, 13)
        #expect(p3 == [[0, 255, 0], [255, 0, 0], [0, 0, 255]])
        // sRGB's green and red in P3, rounded (CSS Color 4).
        let green = try ColourTests.converted(
            [[117, 251, 76], [234, 51, 35]], bitDepth: 8, 12, 13)
        for (made, wanted) in zip(green.joined(), [0, 255, 0, 255, 0, 0]) {
            #expect(abs(made - wanted) <= 12, "\(green)")
        }
    }

    @Test(arguments: [
        (10, 13, "not known"), (3, 13, "not known"),
        (12, 17, "not known"), (1, 9, "not known"),
    ])
    func leavesOtherSpacesUnconverted(primaries: Int, transfer: Int, text: String) {
        guard
            case .unconvertible(let why) = SourceColours(
                primaries: primaries, transfer: transfer, ofA: "a picture")
        else {
            Issue.record("converted")
            return
        }
        #expect(why.contains(text) && why.contains("CICP \(primaries)/\(transfer)"))
    }

    @Test(arguments: [(1, 1), (1, 2), (2, 2), (2, 13), (1, 6), (2, 14)])
    func keepsSpacesEqualToSRGB(primaries: Int, transfer: Int) {
        let colours = SourceColours(primaries: primaries, transfer: transfer, ofA: "a picture")
        #expect(colours == (primaries == 2 && transfer == 2 ? .undeclared : .sRGB(profile: nil)))
    }

    // MARK: Files

    /// The sample with other code points in its container, which libavif prefers over those in the
    /// data.
    static func sample(_ name: String, _ primaries: Int, _ transfer: Int) throws -> [UInt8] {
        var source = try #require(
            FormatSample.all.first { $0.format == .avif && $0.name == name }
        ).bytes
        let mark = Array("nclx".utf8)
        let place = try #require(source.indices.first { source[$0...].starts(with: mark) })
        source.replaceSubrange(
            place + 4..<place + 8, with: [0, UInt8(primaries), 0, UInt8(transfer)])
        return source
    }

    /// One sample per kind: lossless 8 bits, 10 bits, and 12 bits with alpha.
    @Test(
        .enabled(if: CodecLibraries.decodes(.avif)),
        arguments: ["lossless", "10-bit", "12-bit-alpha"], [9, 12])
    func convertsFilesToSRGB(name: String, primaries: Int) throws {
        func png(_ primaries: Int) throws -> [SIMD4<UInt16>] {
            let source = try ColourTests.sample(name, primaries, 13)
            return try ShownPixels(png: stored(source, Recipe(encoding: .png)).bytes).pixels
        }
        let (plain, wide) = try (png(1), png(primaries))
        #expect(plain.count == wide.count && plain != wide)
        let matrix = try #require(ColourTests.published[primaries])
        for (plain, wide) in zip(plain, wide) {
            let pixel = (0..<3).map { Int(plain[$0]) }
            let wanted = ColourTests.expected(pixel, most: 65535, matrix, 13)
            for (channel, wanted) in wanted.enumerated()
            where abs(Double(wide[channel]) - wanted) > 257 {
                Issue.record("\(plain) became \(wide), not \(wanted)")
                return
            }
            #expect(plain.w == wide.w)
        }
    }

    /// All recipes that produce pixels convert; recipes that keep the data change nothing.
    @Test(.enabled(if: CodecLibraries.decodes(.avif)))
    func convertsForEveryEncoder() throws {
        let (plain, wide) = try (
            ColourTests.sample("lossless", 1, 13), ColourTests.sample("lossless", 9, 13)
        )
        for specification in ["png", "jpeg", "8x8", "jpeg,8x8", "png,rotate=90"] {
            let recipe = try Recipe(specification: specification)
            let (one, other) = try (stored(plain, recipe), stored(wide, recipe))
            #expect(one.bytes != other.bytes, "\(specification)")
        }
        for specification in ["same", "original"] {
            #expect(refusal(wide, try Recipe(specification: specification)) == nil)
        }
    }
}

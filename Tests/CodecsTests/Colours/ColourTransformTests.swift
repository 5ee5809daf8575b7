import CColour
import CPNG
import Foundation
import PrefetchModel
import SeededRandom
import Testing

@testable import Codecs

/// Tables sampled from Little CMS, and the loops that apply them.
@Suite(.timeLimit(.minutes(15))) struct ColourTransformTests {
    /// The pixels of a row, converted by one of the paths.
    private func converted(
        _ row: [UInt8], by transform: ColourTransform, channels: Int, results: Int,
        _ path: ccolour_path
    ) -> [UInt8] {
        let count = row.count / channels
        var made = [UInt8](repeating: 7, count: count * results)
        ccolour_convert(transform.pointer, path, Int32(channels), row, &made, count)
        return made
    }

    /// A profile with steps in its table.
    private static let stepped: [UInt8] = {
        func number(_ value: Int, _ bytes: Int = 4) -> [UInt8] {
            (0..<bytes).map { UInt8(truncatingIfNeeded: value >> (8 * (bytes - 1 - $0))) }
        }
        // A table of two nodes a side, of the connection space's XYZ, behind curves with a step.
        let matrix = [1, 0, 0, 0, 1, 0, 0, 0, 1].flatMap { number($0 << 16) }
        let curve = (0..<256).flatMap { number($0 < 100 ? 0 : 65535, 2) }
        let nodes = (0..<8).flatMap { node in
            (0..<3).flatMap { number(node >> (2 - $0) & 1 == 1 ? 0x7000 : 0, 2) }
        }
        let line = number(0, 2) + number(65535, 2)
        let table =
            Array("mft2".utf8) + number(0) + [3, 3, 2, 0] + matrix + number(256, 2) + number(2, 2)
            + curve + curve + curve + nodes + line + line + line
        return Profiles.profile(space: "RGB ", tags: [("A2B0", table)])
    }()

    static func profile(_ name: String) throws -> [UInt8] {
        let source = try ColourHandlingTests.Sample.bytes(name)
        return try #require(try ColourHandlingTests.profile(of: source))
    }

    /// Vectors, tails of rows and the portable code give the same bytes, also in place.
    @Test(arguments: [
        ("inks.jpg", CCOLOUR_INKS), ("p3.png", CCOLOUR_RGB), ("adobe.png", CCOLOUR_RGB),
        ("table.png", CCOLOUR_RGB), ("stepped", CCOLOUR_RGB), ("grey.png", CCOLOUR_GREY),
    ])
    func pathsGiveTheSameBytes(name: String, pixels: ccolour_pixels) throws {
        let profile = name == "stepped" ? Self.stepped : try Self.profile(name)
        let transform = try #require(try ColourTransforms.transform(from: profile, pixels))
        var random = SplitMix(seed: 6)
        let kinds = [CCOLOUR_INKS: [4], CCOLOUR_RGB: [3, 4], CCOLOUR_GREY: [1, 2, 3, 4]]
        for channels in try #require(kinds[pixels]) {
            for count in Array(0..<70) + [5000] {
                var row = (0..<count * channels).map { _ in
                    UInt8.random(in: 0...255, using: &random)
                }
                // Flat pixels, and the ends of the range.
                for index in row.indices where index / 64 % 3 == 1 {
                    row[index] = index / 192 % 2 == 0 ? 255 : 0
                }
                let results = pixels == CCOLOUR_INKS ? 3 : channels
                let wanted = converted(
                    row, by: transform, channels: channels, results: results, CCOLOUR_PORTABLE)
                let made = converted(
                    row, by: transform, channels: channels, results: results, CCOLOUR_FASTEST)
                #expect(made == wanted, "\(count) pixels of \(channels)")
                guard channels == results else { continue }
                if channels % 2 == 0 {
                    for last in stride(from: channels - 1, to: row.count, by: channels) {
                        #expect(made[last] == row[last])
                    }
                }
                row.withUnsafeMutableBufferPointer { row in
                    guard let start = row.baseAddress else { return }
                    ccolour_convert(
                        transform.pointer, CCOLOUR_FASTEST, Int32(channels), start, start, count)
                }
                #expect(row == wanted)
            }
        }
    }

    @Test func paperStaysWhite() throws {
        let inks = try #require(
            try ColourTransforms.transform(from: Self.profile("inks.jpg"), CCOLOUR_INKS))
        let white = converted(
            [UInt8](repeating: 255, count: 4), by: inks, channels: 4, results: 3, CCOLOUR_FASTEST)
        #expect(white == [255, 255, 255])
    }

    /// Little CMS 2.14 takes a black that is lighter than mid-grey for mid-grey.
    @Test func negativesKeepTheirShadows() throws {
        let falling = Profiles.Curve.parameters(3, [1, -1, 1, 0, 0])
        let colours = Profiles.rgb(Profiles.sRGBColorants, falling)
        for (profile, channels, pixels) in [
            (Profiles.grey(falling), 1, CCOLOUR_GREY), (colours, 3, CCOLOUR_RGB),
        ] {
            let transform = try #require(try ColourTransforms.transform(from: profile, pixels))
            for sample in stride(from: 0, through: 255, by: 15) {
                let shown = converted(
                    [UInt8](repeating: UInt8(sample), count: channels), by: transform,
                    channels: channels, results: channels, CCOLOUR_FASTEST)
                let light = 1 - Double(sample) / 255
                let encoded =
                    light <= 0.0031308 ? 12.92 * light : 1.055 * pow(light, 1 / 2.4) - 0.055
                #expect(shown.allSatisfy { abs(Double($0) - 255 * encoded) <= 2 }, "\(sample)")
            }
        }
    }

    // MARK: 16 bits

    private func deepRaster(
        colorType: Int, width: Int, _ sample: (_ x: Int, _ channel: Int) -> Int
    ) throws -> Raster {
        let channels = [0: 1, 2: 3, 4: 2, 6: 4][colorType] ?? 0
        let generated = GeneratedPNG(
            width: width, height: 1, colorType: colorType, bitDepth: 16)
        return Raster(
            owning: try generated.rows { x, _ in (0..<channels).map { sample(x, $0) } })
    }

    private func samples(_ raster: borrowing Raster) throws -> [Int] {
        let row = try #require(raster.rows.rows) + 1
        let count = raster.widthInPixels * raster.channels
        return (0..<count).map {
            raster.bitDepth == 16
                ? Int(row[2 * $0]) << 8 | Int(row[2 * $0 + 1]) : Int(row[$0]) * 257
        }
    }

    @Test(arguments: [
        (2, "p3.png"), (6, "p3.png"), (2, "table.png"), (0, "grey.png"), (4, "grey.png"),
    ])
    func depthIsKeptWhereTheTargetHasIt(colorType: Int, name: String) throws {
        let profile = try Self.profile(name)
        func made(_ sample: (_ x: Int) -> Int, keepsDepth: Bool) throws -> [Int] {
            let raster = try deepRaster(colorType: colorType, width: 256) { x, channel in
                sample(channel % 2 == 0 ? x : 255 - x)
            }
            let made = try raster.converted(
                by: .profile(profile, keepsDepth: keepsDepth), Interruption(CodecLimits(), nil))
            #expect(made.bitDepth == (keepsDepth ? 16 : 8))
            return try samples(made)
        }
        // Samples of 8 bits become the same with any depth.
        let (deep, shallow) = try (
            made({ $0 * 257 }, keepsDepth: true), made({ $0 * 257 }, keepsDepth: false)
        )
        #expect(deep.count == shallow.count)
        // With tables and grey, Little CMS's way for 8 bits is up to ten steps off in the shadows.
        let differences = zip(deep, shallow).map { abs($0 - $1) }
        #expect(differences.reduce(0, +) <= differences.count * 257)
        #expect(differences.allSatisfy { $0 <= (name == "p3.png" ? 2 : 11) * 257 })
        // Two of these are one in 8 bits.
        #expect(try Set(made({ 30000 + $0 * 16 }, keepsDepth: true)).count > 200)
        #expect(try Set(made({ 30000 + $0 * 16 }, keepsDepth: false)).count < 100)
    }

    @Test func onlyPicturesWithoutStepsKeepDepth() throws {
        let profile = try Self.profile("p3.png")
        for (specification, keepsDepth) in [("png", true), ("jpeg", false), ("auto", false)] {
            var recipe = try Recipe(specification: specification)
            recipe.stripping = .all
            let header = try Samples.colourPNG.withUnsafeBytes { try Codecs.header(of: $0) }
            let codec = try #require(header.format.codec)
            let format = try #require(EncodedFormat(recipe, of: header, by: codec))
            let handling = try ColourHandling(
                of: .profile(profile), in: ColourTarget(recipe, as: format, of: header, after: nil))
            #expect(handling.conversion == .profile(profile, keepsDepth: keepsDepth))
        }
    }
}

import CJPEG
import Foundation
import PrefetchModel
import Testing

@testable import Codecs

/// Lossless rotation: JPEG on coefficients, PNG by pixels.
@Suite(.serialized, .timeLimit(.minutes(15))) struct OrientationTests {
    /// Runs a program of libjpeg-turbo on a file.
    private static func run(
        _ program: String, _ arguments: [String], _ input: [UInt8]
    ) throws -> [UInt8]? {
        let folder = FileManager.default.temporaryDirectory.appending(
            path: "orientation-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let files = (folder.appending(path: "in"), folder.appending(path: "out"))
        try Data(input).write(to: files.0)
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/\(program)")
        process.arguments = arguments + ["-outfile", files.1.path, files.0.path]
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { return nil }
        return [UInt8](try Data(contentsOf: files.1))
    }

    /// The `jpegtran` options that apply an orientation; nil for the identity.
    private static let undoing: [Int: [String]] = [
        2: ["-flip", "horizontal"], 3: ["-rotate", "180"], 4: ["-flip", "vertical"],
        5: ["-transpose"], 6: ["-rotate", "90"], 7: ["-transverse"], 8: ["-rotate", "270"],
    ]

    /// `cjpeg`'s sampling options, and the MCU size in blocks.
    private static let samplings: [(option: [String], columns: Int, rows: Int)] = [
        (["-sample", "1x1"], 1, 1), (["-sample", "2x1"], 2, 1), (["-sample", "1x2"], 1, 2),
        (["-sample", "2x2"], 2, 2), (["-sample", "4x1"], 4, 1),
        (["-grayscale"], 1, 1), (["-sample", "2x2", "-progressive"], 2, 2),
        (["-sample", "2x1", "-restart", "1"], 2, 1),
    ]

    /// A picture without symmetry: smooth, with some detail.
    private static func picture(width: Int, height: Int) -> [UInt8] {
        var bytes = Array("P6 \(width) \(height) 255\n".utf8)
        for y in 0..<height {
            for x in 0..<width {
                let light = 40 + 90 * x / width + 70 * y / height
                let detail = (x / 3 + y / 5) % 4 * 6
                bytes += [
                    UInt8(light + detail), UInt8(light / 2 + detail), UInt8(230 - light + detail),
                ]
            }
        }
        return bytes
    }

    private static func tagged(_ source: [UInt8], _ orientation: Int) -> [UInt8] {
        JPEGTests.inserting(JPEGTests.exif(orientation: orientation), into: source)
    }

    /// The position of an oriented picture's pixel in the stored picture.
    private static func origin(
        of place: (x: Int, y: Int), _ orientation: Int, right: Int, bottom: Int
    ) -> (Int, Int) {
        let (x, y) = place
        return switch orientation {
        case 1: (x, y)
        case 2: (right - x, y)
        case 3: (right - x, bottom - y)
        case 4: (x, bottom - y)
        case 5: (y, x)
        case 6: (y, bottom - x)
        case 7: (right - y, bottom - x)
        default: (right - y, x)
        }
    }

    private static func turned(_ pixels: Pixels, _ orientation: Int) -> [UInt8] {
        let (right, bottom) = (pixels.width - 1, pixels.height - 1)
        var output: [UInt8] = []
        for y in 0...(orientation < 5 ? bottom : right) {
            for x in 0...(orientation < 5 ? right : bottom) {
                let (column, row) = origin(of: (x, y), orientation, right: right, bottom: bottom)
                output += pixels[column, row]
            }
        }
        return output
    }

    /// Compares with `jpegtran`: equal coefficients, so exactly equal pixels.
    @Test(arguments: 2...8, 0..<8)
    func turnsBlocksAsJpegtranDoes(orientation: Int, sampling: Int) throws {
        let (options, columns, rows) = Self.samplings[sampling]
        for (width, height) in [(64, 32), (64, 41), (51, 32), (51, 41)] {
            let source = try #require(
                try Self.run(
                    "cjpeg", ["-quality", "80"] + options,
                    Self.picture(width: width, height: height)))
            let wanted = try Self.run(
                "jpegtran", ["-perfect"] + (Self.undoing[orientation] ?? []), source)
            let flipsX = [2, 3, 7, 8].contains(orientation)
            let flipsY = [3, 4, 6, 7].contains(orientation)
            let isPossible =
                (!flipsX || width % (8 * columns) == 0) && (!flipsY || height % (8 * rows) == 0)
            #expect((wanted != nil) == isPossible)
            let result = try stored(Self.tagged(source, orientation), Recipe(quality: 100))
            let header = try imageHeader(result.bytes)
            #expect(result.image.orientation == header.orientation)
            #expect(result.image.widthInPixels == (orientation < 5 ? width : height))
            #expect(result.image.heightInPixels == (orientation < 5 ? height : width))
            #expect(!JPEGTests.contains(result.bytes, "SECRET"))
            guard let wanted else {
                #expect(header.orientation == orientation)
                #expect(try Pixels(jpeg: result.bytes) == Pixels(jpeg: source))
                continue
            }
            #expect(header.orientation == 1)
            #expect(try Pixels(jpeg: result.bytes) == Pixels(jpeg: wanted))
            // Compares displayed pixels: upsampling rounds slightly differently.
            let shown = try Pixels(jpeg: result.bytes)
            let direct = Self.turned(try Pixels(jpeg: source), orientation)
            #expect(zip(shown.samples, direct).allSatisfy { abs(Int($0) - Int($1)) <= 24 })
            #expect(result.bytes.count < source.count + 100)
            let frame = try result.bytes.withUnsafeBytes { try JPEGFile(headerOf: $0).frame }
            #expect(frame?.isProgressive == options.contains("-progressive"))
        }
    }

    @Test(arguments: 2...8)
    func turnsCMYK(orientation: Int) throws {
        let source = HandmadeJPEG.plainCMYK()
        var wanted = try #require(
            try Self.run("jpegtran", ["-perfect"] + (Self.undoing[orientation] ?? []), source))
        // jpegtran treats every four-component file as Adobe's.
        let mark = try #require(
            wanted.indices.first { wanted[$0...].starts(with: [0xFF, 0xEE, 0, 14]) })
        wanted.removeSubrange(mark..<mark + 16)
        let result = try stored(Self.tagged(source, orientation), Recipe(quality: 100))
        #expect(try imageHeader(result.bytes).orientation == 1)
        #expect(try Pixels(jpeg: result.bytes) == Pixels(jpeg: wanted))
    }

    /// A second run changes nothing, although a transposed table differs from its quality's.
    @Test(arguments: 2...8, [20, 50, 85])
    func requantisesAndTurnsTogether(orientation: Int, quality: Int) throws {
        for (options, _, _) in Self.samplings {
            let source = try #require(
                try Self.run(
                    "cjpeg", ["-quality", "90"] + options, Self.picture(width: 128, height: 96)))
            for keepsLarger in [false, true] {
                let recipe = Recipe(quality: quality, keepsLarger: keepsLarger)
                let result = try stored(Self.tagged(source, orientation), recipe)
                #expect(try imageHeader(result.bytes).orientation == 1)
                let shown = try Pixels(jpeg: result.bytes)
                let upright = try #require(
                    try Self.run(
                        "jpegtran", ["-perfect"] + (Self.undoing[orientation] ?? []), source))
                #expect(shown == (try Pixels(jpeg: stored(upright, recipe).bytes)))
                #expect(try stored(result.bytes, recipe).isSource)
            }
        }
    }

    @Test func turnsNothingWhenKeepingMetadata() throws {
        let source = try #require(
            try Self.run("cjpeg", ["-quality", "90"], Self.picture(width: 64, height: 32)))
        let result = try stored(Self.tagged(source, 6), Recipe(.none, quality: 40))
        #expect(!result.isSource)
        #expect(try imageHeader(result.bytes).orientation == 6)
        #expect((result.image.widthInPixels, result.image.heightInPixels) == (32, 64))
        #expect(result.image.orientation == 6)
    }

    @Test(.enabled(if: TestData.isAvailable))
    func appliesOrientationOrKeepsTagOfRealFiles() throws {
        var upright = 0
        for path in try TestData.paths(in: "jpeg/exif-orientation") {
            let source = try TestData.bytes(path)
            let before = try imageHeader(source)
            let result = try stored(source)
            let after = try imageHeader(result.bytes)
            let isTurned = before.orientation != 1 && after.orientation == 1
            #expect(isTurned || after.orientation == before.orientation, "\(path)")
            let isTransposed = isTurned && before.orientation >= 5
            #expect(
                after.widthInPixels
                    == (isTransposed ? before.heightInPixels : before.widthInPixels), "\(path)")
            #expect(result.bytes.count <= source.count, "\(path)")
            upright += isTurned ? 1 : 0
            #expect(try stored(result.bytes).isSource, "\(path)")
        }
        #expect(upright > 0)
    }

    // MARK: PNG

    /// 14×9 pixels of every colour type and depth, in rows.
    private static func picture(type: UInt8, depth: Int) -> [UInt8] {
        let (width, height) = (14, 9)
        let channels = [1, 1, 3, 1, 2, 2, 4][Int(type)]
        var rows: [UInt8] = []
        for y in 0..<height {
            rows.append(0)
            let count = (width * channels * depth + 7) / 8
            var row = (0..<count).map { UInt8(truncatingIfNeeded: ($0 * 37 + y * 101) ^ $0 << 3) }
            // The bits after the last pixel are undefined.
            let spare = count * 8 - width * channels * depth
            row[count - 1] &= UInt8(truncatingIfNeeded: 0xFF << spare)
            rows += row
        }
        let header: [UInt8] = [0, 0, 0, UInt8(width), 0, 0, 0, UInt8(height), UInt8(depth), type]
        let palette =
            type == 3
            ? PNGFile.chunk(.PLTE, (0..<3 << depth).map { UInt8(truncatingIfNeeded: $0 * 9) }) : []
        return [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
            + PNGFile.chunk(.IHDR, header + [0, 0, 0]) + palette
            + PNGFile.chunk(.IDAT, zlibStored(rows)) + PNGFile.chunk(.IEND, [])
    }

    /// A zlib stream with one stored block.
    private static func zlibStored(_ bytes: [UInt8]) -> [UInt8] {
        func pair(_ value: Int) -> [UInt8] { [UInt8(value & 255), UInt8(value >> 8)] }
        var sums = (1, 0)
        for byte in bytes {
            sums.0 = (sums.0 + Int(byte)) % 65521
            sums.1 = (sums.1 + sums.0) % 65521
        }
        return [0x78, 1, 1] + pair(bytes.count) + pair(bytes.count ^ 0xFFFF) + bytes
            + pair(sums.1).reversed() + pair(sums.0).reversed()
    }

    private static let kinds: [(type: UInt8, depth: Int)] =
        [1, 2, 4, 8, 16].map { (0, $0) } + [1, 2, 4, 8].map { (3, $0) }
        + [(2, 8), (2, 16), (4, 8), (4, 16), (6, 8), (6, 16)]

    @Test(arguments: 2...8, 0..<15)
    func turnsPixelsOfEveryKind(orientation: Int, kind: Int) throws {
        let plain = Self.picture(type: Self.kinds[kind].type, depth: Self.kinds[kind].depth)
        let exif = Array(JPEGTests.exif(orientation: orientation).dropFirst(10))
        let source = try PNGTests.inserting(PNGFile.chunk(.eXIf, exif), into: plain)
        let recipe = Recipe(keepsLarger: true)
        let result = try stored(source, recipe)
        let (before, after) = (try ShownPixels(png: plain), try ShownPixels(png: result.bytes))
        #expect(try imageHeader(result.bytes).orientation == 1)
        #expect(try PNGTests.data(of: .eXIf, in: result.bytes) == nil)
        #expect(result.image.widthInPixels == after.width)
        #expect(after.width == (orientation < 5 ? before.width : before.height))
        let (right, bottom) = (before.width - 1, before.height - 1)
        for y in 0..<after.height {
            for x in 0..<after.width {
                let from = Self.origin(of: (x, y), orientation, right: right, bottom: bottom)
                #expect(after.pixel(x, y) == before.pixel(from.0, from.1))
            }
        }
        #expect(try stored(result.bytes, recipe).isSource)
    }

    /// If rotated rows are not smaller, the source's data with its tag is kept.
    @Test(arguments: [false, true])
    func keepsTagWithSourceData(keepsLarger: Bool) throws {
        let small = try stored(Samples.colourPNG).bytes
        let exif = PNGFile.chunk(.eXIf, ExifOrientation.minimalTIFF(6))
        let source = try PNGTests.inserting(exif, into: small)
        let result = try stored(source, Recipe(keepsLarger: keepsLarger))
        let orientation = try imageHeader(result.bytes).orientation
        #expect(orientation == (result.isSource ? 6 : 1))
        #expect((result.image.widthInPixels, result.image.heightInPixels) == (11, 12))
        #expect(result.image.orientation == orientation)
        if keepsLarger { #expect(!result.isSource) }
    }
}

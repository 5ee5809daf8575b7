import CZlib
package import Foundation

/// The folders of this package's source tree.
package enum SourceTree {
    /// The folder of `Package.swift`.
    package static let root = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    package static let tests = root.appending(path: "Tests")
}

/// Small pictures as bytes.
package enum Fixtures {
    /// Returns a file of the folder `Fixtures`.
    package static func file(_ name: String) throws -> [UInt8] {
        let folder = SourceTree.tests.appending(path: "TestSupport/Fixtures")
        return Array(try Data(contentsOf: folder.appending(path: name)))
    }

    /// A whole JPEG with foreign bytes behind its last block, which lose no pixel.
    package static func faultyJPEG() throws -> [UInt8] {
        try file("baseline.jpg").dropLast(2) + (0..<14).map { 1 + $0 * 5 } + [0xFF, 0xD9]
    }

    /// A JPEG with a mark of `FaultyJPEG`, in a comment behind the first marker.
    package static func jpegForFaultyDecoder(_ mark: String) throws -> [UInt8] {
        let source = try file("baseline.jpg")
        let text = Array("\nFaultyJPEG: \(mark)\n".utf8)
        let length = text.count + 2
        return source[..<2] + [0xFF, 0xFE, UInt8(length >> 8), UInt8(length & 255)] + text
            + source[2...]
    }

    /// One pixel of unknown colours as a TIFF, which is recognised but not decoded.
    package static let tiff: [UInt8] = {
        let entries: [(UInt8, UInt8)] = [
            (0x00, 1), (0x01, 1), (0x02, 8), (0x03, 1), (0x06, 99), (0x11, 8), (0x16, 1), (0x17, 1),
        ]
        var bytes: [UInt8] = Array("II*\0".utf8) + [12, 0, 0, 0, 128, 0, 0, 0]
        bytes += [UInt8(entries.count), 0]
        for (tag, value) in entries { bytes += [tag, 1, 3, 0, 1, 0, 0, 0, value, 0, 0, 0] }
        // Padding to the length that a body needs before its signature is checked.
        return bytes + [UInt8](repeating: 0, count: 4 + 256)
    }()

    /// Generates a valid PNG. Each `seed` gives another picture; noise does not compress, for
    /// bodies of a certain size, but a gradient does.
    package static func png(
        width: Int = 8, height: Int = 8, _ kind: PNGKind = .rgb, seed: Int = 0,
        isNoise: Bool = false
    ) -> [UInt8] {
        var lines: [UInt8] = []
        lines.reserveCapacity(height * (1 + width * kind.bytesPerPixel))
        var state = UInt64(truncatingIfNeeded: seed) &* 0x9E37_79B9_7F4A_7C15 | 1
        for y in 0..<height {
            lines.append(0)
            for x in 0..<width {
                for channel in 0..<kind.bytesPerPixel {
                    if isNoise {
                        state ^= state << 13
                        state ^= state >> 7
                        state ^= state << 17
                    }
                    let sample =
                        isNoise
                        ? Int(truncatingIfNeeded: state >> 32)
                        : x &* 3 &+ y &* 5 &+ channel &* 40 &+ seed &* 7 &+ (seed >> 5) &* x
                            &+ (seed >> 10) &* y
                    lines.append(
                        kind == .palette
                            ? UInt8(truncatingIfNeeded: sample) & 15
                            : UInt8(truncatingIfNeeded: sample))
                }
            }
        }
        var palette: [UInt8] = []
        if kind == .palette {
            for index in 0..<16 {
                palette += [
                    UInt8(index * 16), UInt8(255 - index * 16),
                    UInt8(truncatingIfNeeded: seed &+ index),
                ]
            }
        }
        return PNGChunk.signature
            + PNGChunk.header(width: width, height: height, kind).bytes
            + (palette.isEmpty ? [] : PNGChunk(type: "PLTE", data: palette).bytes)
            + PNGChunk(type: "IDAT", data: deflated(lines)).bytes
            + PNGChunk(type: "IEND", data: []).bytes
    }

    /// Generates a GIF of noise, as large as its pixels: each run of codes begins with a clear.
    package static func noiseGIF(width: Int, height: Int) -> [UInt8] {
        func pair(_ value: Int) -> [UInt8] { [UInt8(value & 255), UInt8(value >> 8)] }
        var bytes = Array("GIF89a".utf8) + pair(width) + pair(height) + [0xF7, 0, 0]
        for index in 0..<256 {
            bytes += [UInt8(index), UInt8(255 - index), UInt8(index ^ 0x55)]
        }
        bytes += [0x2C, 0, 0, 0, 0] + pair(width) + pair(height) + [0, 8]
        var (data, bits, count): ([UInt8], UInt32, UInt32) = ([], 0, 0)
        func add(_ code: Int) {
            bits |= UInt32(code) << count
            count += 9
            while count >= 8 {
                data.append(UInt8(truncatingIfNeeded: bits))
                (bits, count) = (bits >> 8, count - 8)
            }
        }
        var state: UInt64 = 1
        for pixel in 0..<width * height {
            // Codes have nine bits until the table holds 512.
            if pixel % 250 == 0 { add(256) }
            state = state &* 6_364_136_223_846_793_005 &+ 1
            add(Int(state >> 56))
        }
        add(257)
        data.append(UInt8(truncatingIfNeeded: bits))
        for start in stride(from: 0, to: data.count, by: 255) {
            let block = data[start..<min(start + 255, data.count)]
            bytes += [UInt8(block.count)] + block
        }
        return bytes + [0, 0x3B]
    }

    /// A PNG that declares this size in its header but has almost no data.
    package static func pngDeclaring(width: Int, height: Int) -> [UInt8] {
        PNGChunk.signature + PNGChunk.header(width: width, height: height, .rgb).bytes
            + PNGChunk(type: "IDAT", data: deflated([0, 0, 0, 0])).bytes
            + PNGChunk(type: "IEND", data: []).bytes
    }

    /// `picture` with one bit in the middle flipped; in a PNG this breaks a checksum.
    package static func damaged(_ picture: [UInt8]) -> [UInt8] {
        var bytes = picture
        bytes[bytes.count / 2] ^= 0x10
        return bytes
    }

    package enum PNGKind: CaseIterable, Sendable {
        case grey
        case greyAlpha
        case palette
        case rgb
        case rgba
        case grey16
        case rgb16
        case rgba16

        var bytesPerPixel: Int {
            switch self {
            case .grey, .palette: 1
            case .greyAlpha, .grey16: 2
            case .rgb: 3
            case .rgba: 4
            case .rgb16: 6
            case .rgba16: 8
            }
        }

        var bitDepth: UInt8 {
            switch self {
            case .grey16, .rgb16, .rgba16: 16
            default: 8
            }
        }

        /// PNG specification, table 11.1.
        var colourType: UInt8 {
            switch self {
            case .grey, .grey16: 0
            case .rgb, .rgb16: 2
            case .palette: 3
            case .greyAlpha: 4
            case .rgba, .rgba16: 6
            }
        }
    }

    /// A zlib stream of `bytes`.
    private static func deflated(_ bytes: [UInt8]) -> [UInt8] {
        var count = compressBound(uLong(bytes.count))
        var output = [UInt8](repeating: 0, count: Int(count))
        let status = compress2(&output, &count, bytes, uLong(bytes.count), 6)
        precondition(status == Z_OK, "zlib refused to compress a fixture")
        return Array(output.prefix(Int(count)))
    }
}

/// A chunk of a PNG file: length, type, data and checksum.
private struct PNGChunk {
    static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    let type: String
    let data: [UInt8]

    static func header(width: Int, height: Int, _ kind: Fixtures.PNGKind) -> PNGChunk {
        PNGChunk(
            type: "IHDR",
            data: bigEndian(width) + bigEndian(height) + [kind.bitDepth, kind.colourType, 0, 0, 0])
    }

    var bytes: [UInt8] {
        let checked = Array(type.utf8) + data
        let sum = crc32(0, checked, uInt(checked.count))
        return PNGChunk.bigEndian(data.count) + checked + PNGChunk.bigEndian(Int(sum))
    }

    private static func bigEndian(_ value: Int) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
    }
}

/// Optional test data outside the package.
package enum SharedData {
    /// `$PREFETCH_SHARED_DATA`, else `../shared/data` of the package; nil if the folder does
    /// not exist.
    package static let folder: URL? = {
        let named = ProcessInfo.processInfo.environment["PREFETCH_SHARED_DATA"]
        let folder =
            named.map { URL(filePath: $0) }
            ?? SourceTree.root.deletingLastPathComponent().appending(path: "shared/data")
        return FileManager.default.fileExists(atPath: folder.path) ? folder : nil
    }()

    package static var isAvailable: Bool { folder != nil }
}

/// Whether the tests and the program are built with a sanitizer, as told by `Scripts/check`.
package enum Sanitizer {
    package static let isActive =
        ProcessInfo.processInfo.environment["PREFETCH_SANITIZER"] != nil
}

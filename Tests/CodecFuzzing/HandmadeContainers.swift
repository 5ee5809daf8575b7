package import PrefetchModel

/// Minimal files with complete containers, but without a valid picture.
package struct HandmadeContainer: CustomStringConvertible, Sendable {
    package let name: String
    package let format: ImageFormat
    package let bytes: [UInt8]
    /// Before ``orientation``. Nil if the file does not contain it at a known place.
    package let size: (width: Int, height: Int)?
    /// The EXIF value of the turn that the container states.
    package var orientation = 1
    /// The number of trailing bytes without which the file is still complete.
    package var spareBytes = 0

    package var description: String { name }

    package static let all: [HandmadeContainer] = [
        HandmadeContainer(
            name: "HEIC", format: .heif,
            bytes: box("ftyp", Array("heic".utf8) + zeros(4) + Array("mif1heic".utf8))
                + meta(width: 1440, height: 960) + box("mdat", zeros(40)), size: (1440, 960)),
        HandmadeContainer(
            name: "HEIC with its data in the description", format: .heif,
            bytes: box("ftyp", Array("mif1".utf8) + zeros(4) + Array("heic".utf8))
                + meta(width: 64, height: 48, box("idat", zeros(20))), size: (64, 48)),
        turnedHEIC(angle: 3, axis: nil, orientation: 6),
        turnedHEIC(angle: 1, axis: 0, orientation: 5),
        HandmadeContainer(
            name: "AVIF, the last box up to the end", format: .avif,
            bytes: box("ftyp", Array("avif".utf8) + zeros(4) + Array("mif1miaf".utf8))
                + meta(width: 3, height: 2) + [0, 0, 0, 0] + Array("mdat".utf8) + zeros(30),
            // Its full length is unknown.
            size: (3, 2), spareBytes: 30),
        HandmadeContainer(
            name: "JPEG XL in boxes", format: .jpegXL,
            bytes: [0, 0, 0, 12] + Array("JXL ".utf8) + [0x0D, 0x0A, 0x87, 0x0A]
                + box("ftyp", Array("jxl ".utf8) + zeros(4) + Array("jxl ".utf8))
                + box("jxlc", codestream + zeros(20)), size: (500, 333)),
        HandmadeContainer(
            name: "JPEG XL, turned", format: .jpegXL,
            bytes: [0, 0, 0, 12] + Array("JXL ".utf8) + [0x0D, 0x0A, 0x87, 0x0A]
                + box("ftyp", Array("jxl ".utf8) + zeros(4) + Array("jxl ".utf8))
                + box("jxlc", turnedCodestream + zeros(20)), size: (500, 333), orientation: 8),
        HandmadeContainer(
            name: "JPEG XL in parts", format: .jpegXL,
            bytes: [0, 0, 0, 12] + Array("JXL ".utf8) + [0x0D, 0x0A, 0x87, 0x0A]
                + box("ftyp", Array("jxl ".utf8) + zeros(4) + Array("jxl ".utf8))
                + box("jxlp", [0, 0, 0, 0] + codestream)
                + box("jxlp", [0x80, 0, 0, 1] + zeros(9)), size: (500, 333)),
        HandmadeContainer(
            name: "JPEG 2000", format: .jpeg2000,
            bytes: [0, 0, 0, 12] + Array("jP  ".utf8) + [0x0D, 0x0A, 0x87, 0x0A]
                + box("ftyp", Array("jp2 ".utf8) + zeros(4) + Array("jp2 ".utf8))
                + box("jp2h", box("ihdr", big(40) + big(70) + zeros(6)))
                + box("jp2c", [0xFF, 0x4F, 0xFF, 0x51] + zeros(30) + [0xFF, 0xD9]),
            size: (70, 40)),
        HandmadeContainer(
            name: "JPEG 2000, bare", format: .jpeg2000,
            bytes: [0xFF, 0x4F, 0xFF, 0x51, 0, 41, 0, 0] + big(80) + big(50) + big(10) + big(5)
                + zeros(20) + [0xFF, 0xD9], size: (70, 45)),
        HandmadeContainer(
            name: "WebP", format: .webp,
            bytes: riff(
                chunk("VP8X", [0, 0, 0, 0] + little(99, 3) + little(49, 3))
                    + chunk("VP8 ", zeros(21))), size: (100, 50)),
        HandmadeContainer(
            name: "WebP, turned", format: .webp,
            bytes: riff(
                chunk("VP8X", [8, 0, 0, 0] + little(99, 3) + little(49, 3))
                    + chunk("VP8 ", zeros(21))
                    + chunk(
                        "EXIF",
                        Array("Exif\0\0MM\0*".utf8) + [0, 0, 0, 8, 0, 1]
                            + [0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, 7, 0, 0] + zeros(4))),
            size: (100, 50), orientation: 7),
        HandmadeContainer(
            name: "GIF", format: .gif,
            bytes: Array("GIF89a".utf8) + little(7, 2) + little(5, 2) + [0x80, 0, 0] + zeros(6)
                + [0x21, 0xFE, 3, 1, 2, 3, 0] + [0x2C] + zeros(9) + [2, 2, 0x4C, 1, 0, 0x3B],
            size: (7, 5)),
        HandmadeContainer(
            name: "icon", format: .icon,
            bytes: [0, 0, 1, 0, 2, 0] + [16, 16, 0, 0, 1, 0, 32, 0] + little(40, 4)
                + little(38, 4) + [0, 0, 0, 0, 1, 0, 32, 0] + little(60, 4) + little(78, 4)
                + zeros(100), size: (256, 256)),
        HandmadeContainer(
            name: "PDF", format: .pdf,
            bytes: Array("%PDF-1.4\nxref\ntrailer\nstartxref\n9\n%%EOF".utf8), size: nil),
        HandmadeContainer(
            name: "SVG", format: .svg,
            bytes: Array(
                #"<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0"/></svg>"#
                    .utf8), size: nil),
        HandmadeContainer(
            name: "JPEG 2000 of a tile-part without a length", format: .jpeg2000,
            bytes: codestreamOfTiles([nil]) + [0xFF, 0xD9, 0], size: (70, 45), spareBytes: 1),
        HandmadeContainer(
            name: "JPEG 2000 of two tile-parts", format: .jpeg2000,
            bytes: codestreamOfTiles([20, 40]) + [0xFF, 0xD9] + zeros(9), size: (70, 45),
            spareBytes: 9),
        HandmadeContainer(
            name: "PSD", format: .psd,
            bytes: psd(version: 1, compression: 0) + zeros(3 * 2 * 5), size: (5, 2)),
        HandmadeContainer(
            name: "PSD of runs", format: .psd,
            bytes: psd(version: 1, compression: 1) + [0, 1, 0, 2, 0, 3, 0, 1, 0, 0, 0, 2]
                + zeros(9), size: (5, 2)),
        HandmadeContainer(
            name: "PSB of runs", format: .psd,
            bytes: psd(version: 2, compression: 1) + (0..<6).flatMap { big($0) } + zeros(15),
            size: (5, 2)),
        HandmadeContainer(
            name: "DDS of blocks with mipmaps", format: .dds,
            bytes: dds(width: 10, height: 6, mipmaps: 3, code: Array("DXT1".utf8))
                + zeros(8 * (6 + 2 + 1)), size: (10, 6)),
        HandmadeContainer(
            name: "DDS of RGB", format: .dds,
            bytes: dds(width: 10, height: 6, mipmaps: 1, bits: 24) + zeros(180), size: (10, 6)),
        HandmadeContainer(
            name: "DDS of an array", format: .dds,
            bytes: dds(width: 5, height: 5, mipmaps: 1, code: Array("DX10".utf8))
                + little(98, 4) + little(3, 4) + little(0, 4) + little(2, 4) + zeros(4)
                + zeros(2 * 64), size: (5, 5)),
        HandmadeContainer(
            name: "QOI", format: .qoi,
            bytes: Array("qoif".utf8) + big(9) + big(8) + [4, 0] + [0xFE, 1, 2, 3]
                + [0xFF, 4, 5, 6, 7] + [0x80, 0x88] + [0x41, 1] + [0xC0 | 61] + [0xC0 | 4]
                + zeros(7) + [1], size: (9, 8)),
        HandmadeContainer(
            name: "PPM", format: .pnm, bytes: Array("P6 4\n# by hand\n3 255\n".utf8) + zeros(36),
            size: (4, 3)),
        HandmadeContainer(
            name: "PBM", format: .pnm, bytes: Array("P4\n#\n9 3\n".utf8) + zeros(6), size: (9, 3)),
        HandmadeContainer(
            name: "PGM of 16 bits", format: .pnm, bytes: Array("P5\n4 3\n65535\n".utf8) + zeros(24),
            size: (4, 3)),
        HandmadeContainer(
            name: "PBM in ASCII", format: .pnm, bytes: Array("P1\n3 2\n010 1 0 1".utf8),
            size: (3, 2)),
        HandmadeContainer(
            name: "PPM in ASCII", format: .pnm,
            bytes: Array("P3 2 1 9 1 2 3 #x 4\n4 5 6 ".utf8), size: (2, 1), spareBytes: 1),
        HandmadeContainer(
            name: "PAM", format: .pnm,
            bytes: Array("P7\nWIDTH 4\nHEIGHT 3\nDEPTH 2\nMAXVAL 255\nENDHDR\n".utf8) + zeros(24),
            size: (4, 3)),
        HandmadeContainer(
            name: "PFM", format: .pnm, bytes: Array("PF\n4 3\n-1.0\n".utf8) + zeros(144),
            size: (4, 3)),
        HandmadeContainer(
            name: "ICNS", format: .icns,
            bytes: Array("icns".utf8) + big(8 + 24 + 12) + Array("ic07".utf8) + big(24) + zeros(16)
                + Array("icp4".utf8) + big(12) + zeros(4), size: (128, 128)),
        HandmadeContainer(
            name: "EXR", format: .exr,
            bytes: exr(
                exr(flags: 0, attributes: exrWindows(width: 7, height: 20) + zip16, parts: 1),
                chunks: 2, head: zeros(4)), size: (7, 20)),
        HandmadeContainer(
            name: "EXR of tiles", format: .exr,
            bytes: exr(
                exr(
                    flags: 2,
                    attributes: exrWindows(width: 7, height: 20)
                        + attribute("tiles", "tiledesc", little(4, 4) + little(8, 4) + [1]),
                    parts: 1),
                // Of 7 by 20, 3 by 10, 1 by 5, 1 by 2 and 1 by 1.
                chunks: 6 + 2 + 1 + 1 + 1, head: zeros(16)), size: (7, 20)),
        HandmadeContainer(
            name: "EXR of two parts", format: .exr,
            bytes: exr(
                exr(
                    flags: 16,
                    attributes: exrWindows(width: 7, height: 20)
                        + attribute("type", "string", Array("scanlineimage".utf8))
                        + attribute("chunkCount", "int", little(1, 4)), parts: 2),
                chunks: 2, head: zeros(8)), size: (7, 20)),
        tiff("TIFF", isLittle: true), tiff("TIFF of the other order", isLittle: false),
        tiff("TIFF, turned", isLittle: false, orientation: 6), bigTIFF,
    ]

    /// A JPEG 2000 codestream up to its end marker: tile-parts of these lengths; nil leaves the
    /// length open.
    private static func codestreamOfTiles(_ lengths: [Int?]) -> [UInt8] {
        let size: [UInt8] =
            [0xFF, 0x4F, 0xFF, 0x51, 0, 41, 0, 0] + big(80) + big(50) + big(10) + big(5)
            + zeros(21)
        return size
            + lengths.flatMap { length -> [UInt8] in
                let data = [UInt8](repeating: 0x7F, count: (length ?? 30) - 14)
                return [0xFF, 0x90, 0, 10, 0, 0] + big(length ?? 0) + [0, 1, 0xFF, 0x93] + data
            }
    }

    /// A file of 5 by 2 pixels and three channels up to the picture's data.
    private static func psd(version: UInt8, compression: UInt8) -> [UInt8] {
        Array("8BPS".utf8) + [0, version] + zeros(6) + [0, 3] + big(2) + big(5) + [0, 8, 0, 3]
            + big(0) + big(4) + zeros(4) + zeros(version == 2 ? 4 : 0) + big(3) + zeros(3)
            + [0, compression]
    }

    private static func dds(
        width: Int, height: Int, mipmaps: Int, code: [UInt8] = [], bits: Int = 0
    ) -> [UInt8] {
        Array("DDS ".utf8) + little(124, 4) + little(mipmaps > 1 ? 0x2_1007 : 0x1007, 4)
            + little(height, 4) + little(width, 4) + zeros(8) + little(mipmaps, 4) + zeros(44)
            + little(32, 4) + little(code.isEmpty ? 0x40 : 4, 4) + (code.isEmpty ? zeros(4) : code)
            + little(bits, 4) + zeros(16) + little(0x1000, 4) + zeros(16)
    }

    private static func attribute(_ name: String, _ type: String, _ value: [UInt8]) -> [UInt8] {
        Array(name.utf8) + [0] + Array(type.utf8) + [0] + little(value.count, 4) + value
    }

    private static let zip16 = attribute("compression", "compression", [3])

    private static func exrWindows(width: Int, height: Int) -> [UInt8] {
        let window = little(-1, 4) + little(2, 4) + little(width - 2, 4) + little(height + 1, 4)
        return attribute("displayWindow", "box2i", window)
            + attribute("dataWindow", "box2i", window)
    }

    private static func exr(flags: UInt8, attributes: [UInt8], parts: Int) -> [UInt8] {
        [0x76, 0x2F, 0x31, 0x01, 2, flags, 0, 0]
            + (0..<parts).flatMap { _ in attributes + [0] } + (parts > 1 ? [0] : [])
    }

    /// Adds a table of offsets, and chunks with ten bytes of data.
    private static func exr(_ start: [UInt8], chunks: Int, head: [UInt8]) -> [UInt8] {
        let chunk = head + little(10, 4) + zeros(10)
        let first = start.count + 8 * chunks
        return start + (0..<chunks).flatMap { little(first + $0 * chunk.count, 8) }
            + (0..<chunks).flatMap { _ in chunk }
    }

    /// 500 by 333: not a small size; height and width with 9 bits, then 13.
    private static let codestream: [UInt8] =
        [0xFF, 0x0A]
        + bits([
            (0, 1), (0, 2), (332, 9), (0, 3), (0, 2), (499, 9),
        ])

    /// The same with extra fields. The first one is the orientation.
    private static let turnedCodestream: [UInt8] =
        [0xFF, 0x0A]
        + bits([
            (0, 1), (0, 2), (332, 9), (0, 3), (0, 2), (499, 9), (0, 1), (1, 1), (7, 3),
        ])

    /// Two strips before the directory.
    private static func tiff(
        _ name: String, isLittle: Bool, orientation: Int? = nil
    ) -> HandmadeContainer {
        func number(_ value: Int, _ bytes: Int) -> [UInt8] {
            let value = little(value, bytes)
            return isLittle ? value : value.reversed()
        }
        func entry(_ tag: Int, _ type: Int, _ count: Int, _ value: [UInt8]) -> [UInt8] {
            number(tag, 2) + number(type, 2) + number(count, 4) + value
                + zeros(4 - value.count)
        }
        let data = zeros(24)
        let tables = number(8, 4) + number(20, 4) + number(12, 4) + number(12, 4)
        let start = 8 + data.count + tables.count
        let directory =
            number(orientation == nil ? 4 : 5, 2) + entry(256, 3, 1, number(6, 2))
            + entry(257, 4, 1, number(4, 4))
            + (orientation.map { entry(274, 3, 1, number($0, 2)) } ?? [])
            + entry(273, 4, 2, number(32, 4)) + entry(279, 4, 2, number(40, 4)) + number(0, 4)
        return HandmadeContainer(
            name: name, format: .tiff,
            bytes: (isLittle ? [0x49, 0x49, 0x2A, 0] : [0x4D, 0x4D, 0, 0x2A]) + number(start, 4)
                + data + tables + directory, size: (6, 4), orientation: orientation ?? 1,
            spareBytes: 4)
    }

    /// A directory before a tile.
    private static let bigTIFF: HandmadeContainer = {
        func entry(_ tag: Int, _ value: Int) -> [UInt8] {
            little(tag, 2) + little(16, 2) + little(1, 8) + little(value, 8)
        }
        let tile = 16 + 8 + 4 * 20 + 8
        return HandmadeContainer(
            name: "BigTIFF", format: .tiff,
            bytes: [0x49, 0x49, 0x2B, 0] + little(8, 2) + little(0, 2) + little(16, 8)
                + little(4, 8) + entry(256, 300) + entry(257, 200) + entry(324, tile)
                + entry(325, 50) + little(0, 8) + zeros(50), size: (300, 200))
    }()

    private static func meta(
        width: Int, height: Int, _ more: [UInt8] = []
    ) -> [UInt8] {
        func extent(_ width: Int, _ height: Int) -> [UInt8] {
            box("ispe", zeros(4) + big(width) + big(height))
        }
        return box(
            "meta",
            zeros(4)
                + box("iprp", box("ipco", extent(2, 2) + extent(width, height) + extent(1, 1)))
                + more)
    }

    /// A HEIC with `irot` and `imir` for its main item, the second. Another item has another turn.
    package static func turnedHEIC(
        angle: UInt8?, axis: UInt8?, orientation: Int
    ) -> HandmadeContainer {
        let properties =
            box("irot", [2]) + box("ispe", zeros(4) + big(30) + big(20))
            + box("irot", [angle ?? 0]) + box("imir", [axis ?? 0])
        let turns: [UInt8] = [0x82] + (angle == nil ? [] : [0x83]) + (axis == nil ? [] : [0x84])
        let items: [UInt8] = [0, 1, 1, 0x81, 0, 2, UInt8(turns.count)] + turns
        return HandmadeContainer(
            name: "HEIC, turned by \(angle ?? 0) and \(axis ?? 2)", format: .heif,
            bytes: box("ftyp", Array("heic".utf8) + zeros(4) + Array("mif1heic".utf8))
                + box(
                    "meta",
                    zeros(4) + box("pitm", zeros(4) + [0, 2])
                        + box(
                            "iprp",
                            box("ipco", properties) + box("ipma", zeros(4) + big(2) + items)))
                + box("mdat", zeros(40)), size: (30, 20), orientation: orientation)
    }

    /// Returns the offset of the last top-level box if it has this type.
    package static func lastBox(_ type: String, of file: [UInt8]) -> Int? {
        var offset = 0
        while offset + 8 <= file.count {
            let length = file[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
            guard length >= 8 else { return nil }
            guard offset + length < file.count else {
                return file[(offset + 4)...].starts(with: type.utf8) ? offset : nil
            }
            offset += length
        }
        return nil
    }

    package static func box(_ type: String, _ payload: [UInt8]) -> [UInt8] {
        big(8 + payload.count) + Array(type.utf8) + payload
    }

    package static func riff(_ chunks: [UInt8]) -> [UInt8] {
        Array("RIFF".utf8) + little(4 + chunks.count, 4) + Array("WEBP".utf8) + chunks
    }

    package static func chunk(_ type: String, _ payload: [UInt8]) -> [UInt8] {
        Array(type.utf8) + little(payload.count, 4) + payload + zeros(payload.count % 2)
    }

    package static func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

    package static func big(_ value: Int) -> [UInt8] { little(value, 4).reversed() }

    package static func little(_ value: Int, _ bytes: Int) -> [UInt8] {
        (0..<bytes).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }

    /// Packs values of the given numbers of bits, each least significant bit first.
    private static func bits(_ values: [(Int, Int)]) -> [UInt8] {
        let flags = values.flatMap { value, count in (0..<count).map { value >> $0 & 1 } }
        return stride(from: 0, to: flags.count, by: 8).map { start in
            flags[start..<min(start + 8, flags.count)].enumerated().reduce(UInt8(0)) {
                $0 | UInt8($1.element) << UInt8($1.offset)
            }
        }
    }
}

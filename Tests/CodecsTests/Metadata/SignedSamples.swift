import PrefetchModel
import Testing

@testable import Codecs

/// Files with more than their pictures.
struct CompanionSample: CustomTestStringConvertible, Sendable {
    let name: String
    let format: ImageFormat
    let bytes: [UInt8]
    let plain: [UInt8]
    var isAnimated = false
    var isLossy = false

    var testDescription: String { name }

    static func box(_ type: String, _ payload: [UInt8]) -> [UInt8] {
        UInt32(payload.count + 8).bigEndianBytes + Array(type.utf8) + payload
    }

    static let author = "Author: somebody, somewhere"

    /// A JUMBF box with the description of a C2PA manifest store.
    static let manifest: [UInt8] = {
        let kind: [UInt8] = [
            0x63, 0x32, 0x70, 0x61, 0, 0x11, 0, 0x10, 0x80, 0, 0, 0xAA, 0, 0x38, 0x9B, 0x71, 3,
        ]
        let description = box("jumd", kind + Array("c2pa\0".utf8))
        return box("jumb", description + box("cbor", Array("\u{1}hash\(author)".utf8)))
    }()

    static let manifestBox: [UInt8] = {
        let identifier: [UInt8] = [
            0xD8, 0xFE, 0xC3, 0xD6, 0x1B, 0x0E, 0x48, 0x3C, 0x92, 0x97, 0x58, 0x28, 0x87, 0x7E,
            0xC4, 0x81,
        ]
        return box(
            "uuid",
            identifier + [0, 0, 0, 0] + Array("manifest\0".utf8)
                + [UInt8](repeating: 0, count: 8) + manifest)
    }()

    static func chunk(_ type: String, _ data: [UInt8]) -> [UInt8] {
        Array(type.utf8) + UInt32(data.count).littleEndianBytes + data
            + (data.count % 2 == 0 ? [] : [0])
    }

    /// An extended WebP with a chunk more at its end. `flag` is that of `VP8X` to set.
    static func webP(
        _ source: [UInt8], with chunk: [UInt8], flag: UInt8 = 0, width: Int = 0, height: Int = 0
    ) -> [UInt8] {
        var body = Array(source[12...])
        if !body.starts(with: Array("VP8X".utf8)) {
            let size = [width - 1, height - 1].flatMap { $0.littleEndianBytes.prefix(3) }
            body = self.chunk("VP8X", [0, 0, 0, 0] + size) + body
        }
        body[8] |= flag
        body += chunk
        return Array("RIFF".utf8) + UInt32(body.count + 4).littleEndianBytes + Array("WEBP".utf8)
            + body
    }

    static func gif(_ source: [UInt8], with block: [UInt8]) -> [UInt8] {
        source.dropLast() + block + [0x3B]
    }

    /// In parts of at most 255 bytes.
    static func extensionBlock(_ program: String, _ data: [UInt8]) -> [UInt8] {
        var block: [UInt8] = [0x21, 0xFF, 0x0B] + Array(program.utf8).prefix(11)
        for start in stride(from: 0, to: data.count, by: 255) {
            let part = data[start..<min(start + 255, data.count)]
            block += [UInt8(part.count)] + part
        }
        return block + [0]
    }

    /// The parts of a JUMBF box in a JPEG.
    static let manifestSegment = JPEGFile.segment(
        0xEB, Array("JP\0\u{1}\0\0\0\u{1}".utf8) + manifest)

    /// Files with a manifest, of every format that has a place for it and that this build decodes.
    static func signed() throws -> [CompanionSample] {
        let photograph = try stored(
            EncodingTests.photograph(), Recipe(encoding: .jpeg, quality: 97)
        ).bytes
        let graphic = try EncodingTests.graphic()
        var samples = [
            CompanionSample(
                name: "JPEG", format: .jpeg,
                bytes: JPEGTests.inserting(manifestSegment, into: photograph), plain: photograph,
                isLossy: true),
            CompanionSample(
                name: "PNG", format: .png,
                bytes: try PNGTests.inserting(PNGFile.chunk(.caBX, manifest), into: graphic),
                plain: graphic),
        ]
        if CodecLibraries.decodes(.gif) { try samples += signedGIFs() }
        if EncodedImageFormat.webp.isMade { try samples += signedWebPs(photograph) }
        if EncodedImageFormat.avif.isMade { try samples += signedAVIFs(photograph) }
        return samples
    }

    private static func signedGIFs() throws -> [CompanionSample] {
        try ["plain", "animation"].map { name in
            let plain = try FormatSample.file(name, .gif)
            let block = extensionBlock("C2PA_GIF\u{1}\0\0", manifest)
            return CompanionSample(
                name: "GIF: \(name)", format: .gif, bytes: gif(plain, with: block), plain: plain,
                isAnimated: name == "animation")
        }
    }

    private static func signedWebPs(_ photograph: [UInt8]) throws -> [CompanionSample] {
        let animation = try FormatSample.file("animation", .webp)
        let lossy = try stored(photograph, Recipe(encoding: .webp, quality: 97)).bytes
        var samples = [
            CompanionSample(
                name: "WebP", format: .webp,
                bytes: webP(lossy, with: chunk("C2PA", manifest), width: 160, height: 120),
                plain: lossy, isLossy: true),
            CompanionSample(
                name: "animated WebP", format: .webp,
                bytes: webP(animation, with: chunk("C2PA", manifest)), plain: animation,
                isAnimated: true),
        ]
        let moving = try stored(animation, Recipe(encoding: .png)).bytes
        samples.append(
            CompanionSample(
                name: "animated PNG", format: .png,
                bytes: try PNGTests.inserting(PNGFile.chunk(.caBX, manifest), into: moving),
                plain: moving, isAnimated: true))
        return samples
    }

    private static func signedAVIFs(_ photograph: [UInt8]) throws -> [CompanionSample] {
        let lossy = try stored(photograph, Recipe(encoding: .avif, quality: 97)).bytes
        let sequence = try FormatSample.file("sequence", .avif)
        return [
            ("AVIF", manifestBox), ("AVIF with JUMBF", manifest),
            ("AVIF with more behind the manifest", manifestBox + box("free", [1, 2, 3])),
        ].flatMap { name, boxes in
            [
                CompanionSample(
                    name: name, format: .avif, bytes: lossy + boxes, plain: lossy, isLossy: true),
                CompanionSample(
                    name: "sequence: \(name)", format: .avif, bytes: sequence + boxes,
                    plain: sequence, isAnimated: true),
            ]
        }
    }
}

import CodecFuzzing
import PrefetchModel
import Testing

@testable import Codecs

/// JPEGs that no encoder writes but decoders accept, assembled bit by bit (ITU-T T.81).
enum HandmadeJPEG {
    /// Appends 16-bit codes, one per symbol by its index in a table, and magnitudes.
    private struct Bits {
        private(set) var bytes: [UInt8] = []
        private var pending: [Bool] = []

        mutating func append(_ value: Int, count: Int) {
            for shift in stride(from: count - 1, through: 0, by: -1) {
                pending.append(value >> shift & 1 == 1)
                if pending.count == 8 { flush() }
            }
        }

        /// Appends a coefficient's bits below its category (F.1.2.1).
        mutating func appendMagnitude(_ value: Int, category: Int) {
            append(value > 0 ? value : value + (1 << category) - 1, count: category)
        }

        mutating func finish() {
            while !pending.isEmpty { append(1, count: 1) }
        }

        private mutating func flush() {
            let byte = pending.reduce(UInt8(0)) { $0 << 1 | ($1 ? 1 : 0) }
            pending = []
            bytes.append(byte)
            if byte == 0xFF { bytes.append(0) }
        }
    }

    /// A valid file of black pixels with empty scans: one for DC, then one for each other
    /// coefficient and bit plane. The side has 8 pixels, or a multiple of 64.
    static func emptyScans(_ count: Int, side: Int = 8) -> [UInt8] {
        let quantisation = [0xFF, 0xDB, 0, 67, 0] + [UInt8](repeating: 1, count: 64)
        let size = [UInt8(side >> 8), UInt8(side & 255)]
        let frame: [UInt8] = [0xFF, 0xC2, 0, 11, 8] + size + size + [1, 1, 0x11, 0]
        // Codes of one bit each for "no difference" and "end of block". So a block takes one bit
        // and eight take a byte.
        let codes = [UInt8(1)] + [UInt8](repeating: 0, count: 15) + [0]
        let tables = [0xFF, 0xC4, 0, 38, 0x00] + codes + [0x10] + codes
        let data =
            side == 8 ? [0x7F] : [UInt8](repeating: 0, count: side / 8 * side / 8 / 8)
        var scans: [UInt8] = [0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 0, 0] + data
        for index in 0..<count - 1 {
            let coefficient = UInt8(index % 63 + 1)
            let precision: UInt8 = index < 63 ? 0x01 : 0x10
            scans += [0xFF, 0xDA, 0, 8, 1, 1, 0, coefficient, coefficient, precision] + data
        }
        return [0xFF, 0xD8] + quantisation + frame + tables + scans + [0xFF, 0xD9]
    }

    private static func head(side: Int, components: Int, dc: [UInt8], ac: [UInt8]) -> [UInt8] {
        func table(_ kind: UInt8, _ symbols: [UInt8]) -> [UInt8] {
            JPEGFile.segment(
                0xC4,
                [kind << 4] + [UInt8](repeating: 0, count: 15) + [UInt8(symbols.count)] + symbols)
        }
        let identifiers = (1...components).map(UInt8.init)
        let size = [UInt8(side >> 8), UInt8(side & 255)]
        return [0xFF, 0xD8] + JPEGFile.segment(0xDB, [0] + [UInt8](repeating: 1, count: 64))
            + JPEGFile.segment(
                0xC0,
                [8] + size + size + [UInt8(components)] + identifiers.flatMap { [$0, 0x11, 0] })
            + table(0, dc) + table(1, ac)
            + JPEGFile.segment(
                0xDA, [UInt8(components)] + identifiers.flatMap { [$0, 0] } + [0, 63, 0])
    }

    /// A grey picture with a 13-bit coefficient in every block, more than a baseline file may hold.
    static func withHugeCoefficients(side: Int = 64) -> [UInt8] {
        let ac: [UInt8] = [0x00, 0x0D, 0x01]
        var bits = Bits()
        for block in 0..<(side / 8 * side / 8) {
            bits.append(0, count: 16)
            bits.append(1, count: 16)
            bits.appendMagnitude(block % 2 == 0 ? 5000 + block : -6000 - block, category: 13)
            for place in 0..<30 {
                bits.append(2, count: 16)
                bits.appendMagnitude(place % 2 == 0 ? 1 : -1, category: 1)
            }
            bits.append(0, count: 16)
        }
        bits.finish()
        return head(side: side, components: 1, dc: [0], ac: ac) + bits.bytes + [0xFF, 0xD9]
    }

    /// CMYK without Adobe's marker.
    static func plainCMYK(side: Int = 64) -> [UInt8] {
        let dc = (0..<12).map(UInt8.init)
        var bits = Bits()
        let levels = [200, 120, 40, 30].map { ($0 - 128) * 8 }
        for block in 0..<(side / 8 * side / 8) {
            for component in 0..<4 {
                let difference = block == 0 ? levels[component] : 0
                let category = Int.bitWidth - abs(difference).leadingZeroBitCount
                bits.append(category, count: 16)
                if category > 0 { bits.appendMagnitude(difference, category: category) }
                for place in 0..<20 {
                    bits.append(1, count: 16)
                    bits.appendMagnitude((block + place) % 2 == 0 ? 1 : -1, category: 1)
                }
                bits.append(0, count: 16)
            }
        }
        bits.finish()
        return head(side: side, components: 4, dc: dc, ac: [0x00, 0x01]) + bits.bytes
            + [0xFF, 0xD9]
    }
}

@Suite(.serialized, .timeLimit(.minutes(15)))
struct HandmadeJPEGTests {
    private func bytes(_ image: ProcessedImage, of source: [UInt8]) -> [UInt8] {
        switch image.output {
        case .source: source
        case .encoded(let bytes): bytes.withUnsafeBytes { Array($0) }
        }
    }

    private func processed(_ source: [UInt8], _ recipe: Recipe) throws -> ProcessedImage {
        try source.withUnsafeBytes {
            try process($0, header: header(of: $0), recipe: recipe)
        }
    }

    /// The tables that we write have no code for such coefficients, which the encoder does not
    /// check.
    @Test(arguments: [1, 50, 85, 100])
    func neverWritesCoefficientsWithoutCode(quality: Int) throws {
        let source = HandmadeJPEG.withHugeCoefficients()
        let recipe = Recipe(quality: quality)
        let stored = bytes(try processed(source, recipe), of: source)
        // The stored bytes decode completely. If they are the source's own data, the pixels are the
        // same.
        let again = try processed(stored, Recipe(encoding: .original))
        #expect(again.widthInPixels == 64)
        if quality == 100 { #expect(stored == source) }
    }

    @Test func plainCMYKStaysPlain() throws {
        let source = HandmadeJPEG.plainCMYK()
        let stored = bytes(
            try processed(source, Recipe(quality: 50, keepsLarger: true)), of: source)
        #expect(stored != source)
        #expect(stored.markers(0xEE).isEmpty)
        let before = try Pixels(jpeg: source)
        #expect(before.peakSignalToNoise(try Pixels(jpeg: stored)) > 28)
    }

    /// Adobe's marker with each colour transform, and without a marker: only YCCK differs.
    @Test(arguments: [nil, 0, 2] as [UInt8?], [false, true])
    func fourComponentsAreInverted(transform: UInt8?, hasJFIF: Bool) throws {
        let plain = HandmadeJPEG.plainCMYK()
        var segments: [UInt8] = []
        if hasJFIF {
            segments += JPEGFile.segment(0xE0, Array("JFIF\0".utf8) + [1, 1, 0, 0, 1, 0, 1, 0, 0])
        }
        if let transform {
            segments += JPEGFile.segment(
                0xEE, Array("Adobe".utf8) + [0, 100, 0, 0, 0, 0, transform])
        }
        // The levels are 200, 120, 40 and 30.
        let wanted = transform == 2 ? [21, 0, 8] : [24, 14, 5]
        let marked = plain[..<2] + segments + plain[2...]
        for recipe in [Recipe(encoding: .png), Recipe(quality: 50, keepsLarger: true)] {
            let stored = bytes(try processed(Array(marked), recipe), of: Array(marked))
            let shown = try EncodingTests.raster(stored)
            for channel in 0..<3 {
                let mean = shown.reduce(0) { $0 + Int($1[channel]) } / shown.count
                #expect(abs(mean - wanted[channel]) <= 2)
            }
        }
        // The profile is applied to the same inks.
        let profile = JPEGFile.profileSegments(try ColourTransformTests.profile("inks.jpg"))
        let described = try [segments, []].map { segments in
            try EncodingTests.raster(Array(plain[..<2] + segments + profile + plain[2...]))
        }
        #expect((described[0] == described[1]) == (transform != 2))
        #expect(try described[0] != EncodingTests.raster(Array(marked)))
    }

    @Test func limitsMarkers() throws {
        let piece: [UInt8] = [0xFF, 0xE1, 0x00, 0x02]
        let source =
            [0xFF, 0xD8]
            + Array(repeatElement(piece, count: CodecLimits.maximumPieces + 1).joined())
        #expect {
            try source.withUnsafeBytes { try header(of: $0) }
        } throws: { error in
            guard case .limitExceeded? = error as? CodecError else { return false }
            return true
        }
    }
}

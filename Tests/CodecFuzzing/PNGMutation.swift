internal import CDeflate
internal import CPNG
internal import Glibc
package import SeededRandom

/// A mutator for PNG files that keeps checksums valid and changes image data before compression.
/// Random bytes alone would fail the first check.
package struct PNGMutation {
    private var random: SplitMix
    /// Changes bytes at random, up to a maximum length.
    private let mutate: (inout [UInt8], Int) -> Void

    private struct Chunk {
        var type: [UInt8]
        var data: [UInt8]
    }

    /// The largest side of a rewritten header.
    private static let maximumSide = 40

    /// Chunks that the codecs interpret, with their correct lengths; 0 for any.
    private static let known: [(type: String, length: Int)] = [
        ("PLTE", 48), ("tRNS", 6), ("tRNS", 2), ("tRNS", 16), ("gAMA", 4), ("cHRM", 32),
        ("sRGB", 1), ("sBIT", 3), ("sBIT", 4), ("bKGD", 6), ("hIST", 32), ("iCCP", 0),
        ("eXIf", 0), ("acTL", 8), ("fcTL", 26), ("fdAT", 0), ("IDAT", 0), ("cICP", 4),
        ("tIME", 7), ("tEXt", 0), ("zTXt", 0), ("sPLT", 0), ("pHYs", 9), ("aaAa", 0), ("aaAA", 0),
        ("IEND", 0),
    ]

    package init(seed: UInt64, mutate: @escaping (inout [UInt8], Int) -> Void) {
        random = SplitMix(seed: seed)
        self.mutate = mutate
    }

    /// Mutates a PNG.
    ///
    /// - Returns: Another PNG, valid or not, up to the maximum length; nil if the source is no PNG.
    package mutating func mutated(_ source: UnsafeRawBufferPointer, maximumBytes: Int) -> [UInt8]? {
        guard source.count >= 33, source.starts(with: PNGMutation.signature),
            var chunks = PNGMutation.chunks(of: source), !chunks.isEmpty
        else { return nil }
        for _ in 0...random.below(3) {
            switch random.below(9) {
            case 0, 1: changeData(of: random.below(chunks.count), in: &chunks)
            case 2, 3: changePixels(in: &chunks)
            case 4: changeHeader(in: &chunks)
            case 5: insertKnown(into: &chunks)
            case 6: chunks.swapAt(random.below(chunks.count), random.below(chunks.count))
            case 7: changeStream(in: &chunks)
            default:
                let index = random.below(chunks.count)
                if random.below(2) == 0 || chunks.count == 1 {
                    chunks.insert(chunks[index], at: random.below(chunks.count))
                } else {
                    chunks.remove(at: index)
                }
            }
        }
        let result = PNGMutation.signature + chunks.flatMap(PNGMutation.bytes)
        return result.count <= maximumBytes ? result : nil
    }

    private static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

    /// Nil if a chunk exceeds the file.
    private static func chunks(of source: UnsafeRawBufferPointer) -> [Chunk]? {
        var chunks: [Chunk] = []
        var offset = 8
        while source.count - offset >= 12 {
            let length = (0..<4).reduce(0) { $0 << 8 | Int(source[offset + $1]) }
            guard length <= source.count - offset - 12 else { return nil }
            chunks.append(
                Chunk(
                    type: Array(source[offset + 4..<offset + 8]),
                    data: Array(source[offset + 8..<offset + 8 + length])))
            offset += 12 + length
        }
        return chunks
    }

    private static func bytes(_ value: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) }
    }

    private static func bytes(of chunk: Chunk) -> [UInt8] {
        let body = chunk.type + chunk.data
        return bytes(UInt32(chunk.data.count)) + body + bytes(cpng_crc(body, body.count))
    }

    private mutating func changeData(of index: Int, in chunks: inout [Chunk]) {
        mutate(&chunks[index].data, chunks[index].data.count + 16)
    }

    private static func isImageData(_ chunk: Chunk) -> Bool { chunk.type == Array("IDAT".utf8) }

    /// Decompresses all image data, changes it and recompresses it into one or two chunks.
    private mutating func changePixels(in chunks: inout [Chunk]) {
        guard let first = chunks.firstIndex(where: PNGMutation.isImageData),
            var rows = PNGMutation.inflated(
                chunks.filter(PNGMutation.isImageData).flatMap { $0.data })
        else { return }
        mutate(&rows, rows.count + 64)
        replaceImageData(from: first, by: rows, in: &chunks)
    }

    /// Changes the zlib stream outside the compressed rows: its window size, length or checksum, or
    /// its division into chunks.
    private mutating func changeStream(in chunks: inout [Chunk]) {
        guard let first = chunks.firstIndex(where: PNGMutation.isImageData) else { return }
        var stream = chunks.filter(PNGMutation.isImageData).flatMap { $0.data }
        guard stream.count > 6 else { return }
        switch random.below(5) {
        case 0:
            // RFC 1950 section 2.2: the window's exponent, and check bits that make both a multiple
            // of 31.
            stream[0] = UInt8(random.below(9) << 4 | 8)
            stream[1] = UInt8((31 - Int(stream[0]) * 256 % 31) % 31)
        case 1: stream += (0...random.below(3)).map { _ in UInt8(random.below(256)) }
        case 2: stream.removeLast(1 + random.below(5))
        case 3: stream[stream.count - 1 - random.below(4)] ^= 1
        default: break
        }
        var parts: [[UInt8]] = []
        let most = random.below(3) == 0 ? 3 : stream.count
        while !stream.isEmpty {
            let count = min(random.below(most + 1), stream.count)
            // Some are empty.
            parts.append(Array(stream.prefix(count)))
            stream.removeFirst(count)
            if parts.count == 200 {
                parts.append(stream)
                break
            }
        }
        chunks.removeAll(where: PNGMutation.isImageData)
        chunks.insert(
            contentsOf: parts.map { Chunk(type: Array("IDAT".utf8), data: $0) }, at: first)
    }

    private mutating func replaceImageData(
        from first: Int, by rows: [UInt8], in chunks: inout [Chunk]
    ) {
        let packed = PNGMutation.deflated(rows)
        let cut = random.below(4) == 0 ? random.below(packed.count + 1) : packed.count
        let parts = cut < packed.count ? [packed[..<cut], packed[cut...]] : [packed[...]]
        chunks.removeAll(where: PNGMutation.isImageData)
        chunks.insert(
            contentsOf: parts.map { Chunk(type: Array("IDAT".utf8), data: Array($0)) },
            at: first)
    }

    /// Changes size and pixel format, and generates matching data, so that the result may be valid.
    private mutating func changeHeader(in chunks: inout [Chunk]) {
        guard let header = chunks.firstIndex(where: { $0.type == Array("IHDR".utf8) }),
            chunks[header].data.count == 13,
            let first = chunks.firstIndex(where: PNGMutation.isImageData)
        else { return }
        let kinds: [(type: UInt8, depths: [UInt8], channels: Int)] = [
            (0, [1, 2, 4, 8, 16], 1), (2, [8, 16], 3), (3, [1, 2, 4, 8], 1), (4, [8, 16], 2),
            (6, [8, 16], 4),
        ]
        let kind = kinds[random.below(kinds.count)]
        let depth = kind.depths[random.below(kind.depths.count)]
        let width = 1 + random.below(PNGMutation.maximumSide)
        let height = 1 + random.below(PNGMutation.maximumSide)
        let isInterlaced = random.below(4) == 0
        chunks[header].data =
            PNGMutation.bytes(UInt32(width)) + PNGMutation.bytes(UInt32(height))
            + [depth, kind.type, 0, 0, isInterlaced ? 1 : 0]
        let bits = kind.channels * Int(depth)
        let passes = isInterlaced ? PNGMutation.passes : [(0, 0, 1, 1)]
        var lengths: [Int] = []
        for (x, y, stepX, stepY) in passes where width > x && height > y {
            let columns = (width - x + stepX - 1) / stepX
            let rows = (height - y + stepY - 1) / stepY
            lengths += [Int](repeating: 1 + (columns * bits + 7) / 8, count: rows)
        }
        let old =
            PNGMutation.inflated(chunks.filter(PNGMutation.isImageData).flatMap { $0.data }) ?? []
        var rows: [UInt8] = []
        for length in lengths {
            let start = rows.count
            for index in 0..<length {
                let place = old.isEmpty ? 0 : (start + index) % old.count
                rows.append(old.isEmpty ? UInt8(random.below(256)) : old[place])
            }
            rows[start] %= 5
        }
        replaceImageData(from: first, by: rows, in: &chunks)
        if kind.type == 3, !chunks.contains(where: { $0.type == Array("PLTE".utf8) }) {
            insert("PLTE", length: 48, at: header + 1, into: &chunks)
        }
    }

    /// The origins and steps of the seven passes of an interlaced PNG (section 8.1).
    private static let passes = [
        (0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
        (0, 1, 1, 2),
    ]

    private mutating func insertKnown(into chunks: inout [Chunk]) {
        let (type, length) = PNGMutation.known[random.below(PNGMutation.known.count)]
        insert(
            type, length: length == 0 ? random.below(40) : length,
            at: random.below(chunks.count + 1), into: &chunks)
    }

    private mutating func insert(
        _ type: String, length: Int, at index: Int, into chunks: inout [Chunk]
    ) {
        let isSmall = random.below(2) == 0
        let data = (0..<length).map { _ in UInt8(random.below(isSmall ? 3 : 256)) }
        chunks.insert(
            Chunk(type: Array(type.utf8), data: data), at: min(index, chunks.count))
    }

    private static func inflated(_ bytes: [UInt8]) -> [UInt8]? {
        var length = 0
        guard let start = cdeflate_decompress(bytes, bytes.count, 1 << 20, &length) else {
            return nil
        }
        defer { free(start) }
        return [UInt8](UnsafeBufferPointer(start: start, count: length))
    }

    private static func deflated(_ bytes: [UInt8]) -> [UInt8] {
        var length = 0
        guard let start = cdeflate_compress(bytes, bytes.count, 1, &length) else { return [] }
        defer { free(start) }
        return [UInt8](UnsafeBufferPointer(start: start, count: length))
    }
}

extension SplitMix {
    /// A number in 0..<`count`; `count` must be above 0.
    package mutating func below(_ count: Int) -> Int { Int(next() % UInt64(max(count, 1))) }

    /// Changes a few bytes: flips, replaces, inserts, removes, copies.
    package mutating func change(_ bytes: inout [UInt8], maximumBytes: Int) {
        for _ in 0...below(4) {
            let place = below(bytes.count + 1)
            switch below(5) {
            case 0 where place < bytes.count: bytes[place] ^= 1 << UInt8(below(8))
            case 1 where place < bytes.count: bytes[place] = UInt8(below(256))
            case 2 where place < bytes.count: bytes.remove(at: place)
            case 3 where bytes.count < maximumBytes:
                bytes.insert(UInt8(below(256)), at: place)
            default:
                guard place < bytes.count else { continue }
                bytes[below(bytes.count)] = bytes[place]
            }
        }
    }
}

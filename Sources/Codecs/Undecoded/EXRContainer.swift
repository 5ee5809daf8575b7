internal import PrefetchModel

/// OpenEXR (OpenEXR File Layout): headers of attributes, one a part, a table of offsets for each
/// part, and the chunks that they point to.
enum EXRContainer: ImageContainer {
    static let magic: [UInt8] = [0x76, 0x2F, 0x31, 0x01]

    /// The display window of the first part.
    static func size(in beginning: UnsafeRawBufferPointer) -> DeclaredSize {
        guard let layout = try? EXRHeaders(beginning), let part = layout.parts.first else {
            return .later
        }
        guard let (width, height) = part.display?.size, width > 0, height > 0 else {
            return .unknown
        }
        return .known(width: width, height: height)
    }

    static func check(
        _ source: UnsafeRawBufferPointer, memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) -> ImageWarning? {
        let layout = try EXRHeaders(source)
        var table = layout.end
        for part in layout.parts {
            let chunks = try part.chunks
            guard source.holds((ByteEstimate(chunks) * 8).count, at: table) else { throw .cutImage }
            for place in stride(from: table, to: table + 8 * chunks, by: 8) {
                try interruption.check(after: 8)
                guard let start = source.number(at: place, bytes: 8, isLittleEndian: true),
                    start > 0, layout.holdsChunk(at: start, of: part, source)
                else { throw .cutImage }
            }
            table += 8 * chunks
        }
        return nil
    }

    private struct EXRHeaders {
        private(set) var parts: [EXRPart] = []
        /// The end of the headers.
        private(set) var end = 8
        private let isMultipart: Bool

        /// - Throws: `corrupt`, as truncated if the headers are.
        init(_ source: UnsafeRawBufferPointer) throws(CodecError) {
            guard let version = source.number(at: 4, bytes: 4, isLittleEndian: true) else {
                throw .cutHeader
            }
            isMultipart = version & 0x1000 != 0
            repeat {
                guard parts.count < CodecLimits.maximumPieces else {
                    throw .limitExceeded("more than \(CodecLimits.maximumPieces) parts")
                }
                var part = EXRPart(isTiled: version & 0x200 != 0, isDeep: version & 0x800 != 0)
                end = try part.read(source, from: end)
                parts.append(part)
                guard end < source.count else { throw .cutHeader }
            } while isMultipart && source[end] != 0
            if isMultipart { end += 1 }
        }

        /// Whether a chunk of a part is within the file.
        func holdsChunk(at start: Int, of part: EXRPart, _ source: UnsafeRawBufferPointer) -> Bool {
            let place = start.addingReportingOverflow(
                (isMultipart ? 4 : 0) + (part.isTiled ? 16 : 4))
            guard !place.overflow else { return false }
            func number(_ offset: Int, _ bytes: Int) -> Int? {
                source.number(at: place.partialValue + offset, bytes: bytes, isLittleEndian: true)
            }
            guard source.holds(part.isDeep ? 24 : 4, at: place.partialValue) else { return false }
            guard part.isDeep else {
                return number(0, 4).map { source.holds($0, at: place.partialValue + 4) } ?? false
            }
            // A table and samples, packed, and the unpacked length.
            guard let table = number(0, 8), let samples = number(8, 8) else { return false }
            let total = ByteEstimate(table) + ByteEstimate(samples)
            return source.holds(total.count, at: place.partialValue + 24)
        }
    }

    private struct EXRWindow {
        let size: (width: Int, height: Int)

        /// A `box2i`: the smallest and the largest coordinates.
        init?(_ source: UnsafeRawBufferPointer, at place: Int, bytes: Int) {
            guard bytes == 16 else { return nil }
            let sides = (0..<4).map {
                Int(Int32(truncatingIfNeeded: source.littleEndian32(at: place + 4 * $0)))
            }
            size = (sides[2] - sides[0] + 1, sides[3] - sides[1] + 1)
        }
    }

    private struct EXRPart {
        private(set) var isTiled: Bool
        private(set) var isDeep: Bool
        private(set) var display: EXRWindow?
        private var data: EXRWindow?
        private var compression = 0
        private var tile: (width: Int, height: Int, mode: Int)?
        private var chunkCount: Int?

        init(isTiled: Bool, isDeep: Bool) {
            self.isTiled = isTiled
            self.isDeep = isDeep
        }

        /// Reads the attributes from `start` on, and returns their end.
        mutating func read(
            _ source: UnsafeRawBufferPointer, from start: Int
        ) throws(CodecError) -> Int {
            var offset = start
            for _ in 0..<CodecLimits.maximumPieces {
                guard offset < source.count else { throw .cutHeader }
                if source[offset] == 0 { return offset + 1 }
                let name = try EXRContainer.text(source, from: offset)
                let type = try EXRContainer.text(source, from: offset + name.count + 1)
                let place = type.endIndex + 5
                guard let bytes = source.number(at: place - 4, bytes: 4, isLittleEndian: true),
                    source.holds(bytes, at: place)
                else { throw .cutHeader }
                note(String(decoding: name, as: UTF8.self), source, place..<place + bytes)
                offset = place + bytes
            }
            throw .limitExceeded("more than \(CodecLimits.maximumPieces) attributes")
        }

        private mutating func note(
            _ name: String, _ source: UnsafeRawBufferPointer, _ value: Range<Int>
        ) {
            let start = value.lowerBound
            switch name {
            case "displayWindow": display = EXRWindow(source, at: start, bytes: value.count)
            case "dataWindow": data = EXRWindow(source, at: start, bytes: value.count)
            case "compression" where value.count == 1: compression = Int(source[start])
            case "tiles" where value.count == 9:
                tile = (
                    source.littleEndian32(at: start), source.littleEndian32(at: start + 4),
                    Int(source[start + 8])
                )
            case "chunkCount" where value.count == 4:
                chunkCount = source.littleEndian32(at: start)
            case "type":
                let type = String(decoding: source[value], as: UTF8.self)
                isTiled = type.hasSuffix("tile") || type.hasSuffix("tiledimage")
                isDeep = type.hasPrefix("deep")
            default: break
            }
        }

        /// The number of chunks.
        var chunks: Int {
            get throws(CodecError) {
                if let chunkCount {
                    guard chunkCount > 0 else { throw .broken("an image without pixels") }
                    return chunkCount
                }
                guard let (width, height) = data?.size, width > 0, height > 0 else {
                    throw .broken("no data window")
                }
                guard isTiled else {
                    // Rows of a chunk by compression, from none to DWAB.
                    let rows = [1, 1, 1, 16, 32, 16, 32, 32, 32, 256]
                    guard rows.indices.contains(compression) else {
                        throw .broken("an unknown compression")
                    }
                    return (height + rows[compression] - 1) / rows[compression]
                }
                guard let tile, tile.width > 0, tile.height > 0 else { throw .broken("no tiles") }
                return EXRPart.tiles(width, height, tile).count
            }
        }

        /// The tiles of all levels: of one, of sizes halved together, or halved each by itself.
        private static func tiles(
            _ width: Int, _ height: Int, _ tile: (width: Int, height: Int, mode: Int)
        ) -> ByteEstimate {
            let isRoundedUp = tile.mode >> 4 == 1
            func levels(_ size: Int) -> [Int] {
                var sizes = [size]
                while let last = sizes.last, last > 1 {
                    sizes.append((last + (isRoundedUp ? 1 : 0)) / 2)
                }
                return sizes
            }
            func count(_ sizes: [Int], _ tile: Int) -> [ByteEstimate] {
                sizes.map { ByteEstimate(($0 + tile - 1) / tile) }
            }
            let columns = count(levels(width), tile.width)
            let rows = count(levels(height), tile.height)
            switch tile.mode & 15 {
            case 0: return columns[0] * rows[0]
            case 1:
                return (0..<max(columns.count, rows.count)).reduce(0) { sum, level in
                    sum + columns[min(level, columns.count - 1)] * rows[min(level, rows.count - 1)]
                }
            default: return columns.reduce(0, +) * rows.reduce(0, +)
            }
        }
    }

    /// Returns the bytes up to the next zero.
    private static func text(
        _ source: UnsafeRawBufferPointer, from start: Int
    ) throws(CodecError) -> Slice<UnsafeRawBufferPointer> {
        let rest = source[min(start, source.count)...].prefix(256)
        guard let end = rest.firstIndex(of: 0) else {
            throw rest.count < 256 ? .cutHeader : .broken("bad header")
        }
        return source[start..<end]
    }
}

#if AVIF
    /// The size and quantiser of AV1 data, from its sequence header and first frame header (AV1,
    /// sections 5.3, 5.5 and 5.9).
    struct AV1Headers {
        /// The largest size of a frame.
        private(set) var width = 0
        private(set) var height = 0
        /// `base_q_idx`, 0 (lossless) to 255; nil if the first frame is no key frame, or has a
        /// header of a rare kind.
        private(set) var quantizer: Int?

        // Fields of the sequence header on which the frame header depends.
        private var isReduced = false
        private var hasDecoderModel = false
        private var frameIDBits = 0
        private var sizeBits = (width: 0, height: 0)
        private var hasLargeSuperblocks = false
        /// Nil if the frame decides.
        private var screenContentTools: Bool?
        private var integerMotion: Bool?
        private var orderHintBits = 0
        private var mayUpscale = false

        /// Reads the first headers in a range of the file; nil without a sequence header.
        init?(_ source: UnsafeRawBufferPointer, in range: Range<Int>) {
            var offset = range.lowerBound
            var hasSequence = false
            // They follow a temporal delimiter and metadata.
            for _ in 0..<16 {
                guard offset < range.upperBound else { break }
                let head = source[offset]
                offset += head & 4 == 0 ? 1 : 2
                var length = range.upperBound - offset
                if head & 2 != 0 {
                    guard let stated = AV1Headers.length(source, &offset, range.upperBound)
                    else { break }
                    length = stated
                }
                // A header may be whole though the data of its unit is cut.
                let isWhole = length >= 0 && length <= range.upperBound - offset
                let end = isWhole ? offset + length : range.upperBound
                guard offset <= end else { break }
                var bits = Bits(source: source, place: offset * 8, end: end * 8)
                switch head >> 3 & 15 {
                case AV1Headers.sequenceHeader where !hasSequence:
                    guard isWhole, readSequence(&bits) else { return nil }
                    hasSequence = true
                case AV1Headers.frameHeader, AV1Headers.frame:
                    guard hasSequence else { return nil }
                    quantizer = readQuantizer(&bits)
                    return
                default: break
                }
                guard isWhole else { break }
                offset = end
            }
            if !hasSequence { return nil }
        }

        private static let sequenceHeader: UInt8 = 1
        private static let frameHeader: UInt8 = 3
        /// A frame header with its tiles.
        private static let frame: UInt8 = 6

        /// Reads seven bits a byte, the lowest first.
        private static func length(
            _ source: UnsafeRawBufferPointer, _ offset: inout Int, _ end: Int
        ) -> Int? {
            var value = 0
            for index in 0..<5 {
                guard offset < end else { return nil }
                let byte = Int(source[offset])
                offset += 1
                value |= (byte & 0x7F) << (7 * index)
                if byte & 0x80 == 0 { return value }
            }
            return nil
        }

        // MARK: The sequence header

        private mutating func readSequence(_ bits: inout Bits) -> Bool {
            // The profile, and whether it is a still picture.
            _ = bits.next(4)
            isReduced = bits.flag()
            if isReduced {
                _ = bits.next(5)
            } else {
                readOperatingPoints(&bits)
            }
            sizeBits = (bits.next(4) + 1, bits.next(4) + 1)
            (width, height) = (bits.next(sizeBits.width) + 1, bits.next(sizeBits.height) + 1)
            guard bits.isWithin else { return false }
            if !isReduced, bits.flag() { frameIDBits = bits.next(4) + bits.next(3) + 3 }
            hasLargeSuperblocks = bits.flag()
            // Filters.
            _ = bits.next(2)
            if !isReduced { readTools(&bits) }
            mayUpscale = bits.flag()
            return true
        }

        private mutating func readTools(_ bits: inout Bits) {
            // Compound prediction, warped motion and filters.
            _ = bits.next(4)
            let hasOrderHints = bits.flag()
            if hasOrderHints { _ = bits.next(2) }
            screenContentTools = bits.flag() ? nil : bits.flag()
            if screenContentTools != false { integerMotion = bits.flag() ? nil : bits.flag() }
            if hasOrderHints { orderHintBits = bits.next(3) + 1 }
        }

        private mutating func readOperatingPoints(_ bits: inout Bits) {
            var delayBits = 0
            if bits.flag() {
                // Timing: two numbers, and one of variable length if pictures are equally long.
                bits.skip(64)
                if bits.flag() { bits.skipVariable() }
                hasDecoderModel = bits.flag()
                if hasDecoderModel {
                    delayBits = bits.next(5) + 1
                    bits.skip(42)
                }
            }
            let hasDelays = bits.flag()
            for _ in 0...bits.next(5) {
                bits.skip(12)
                if bits.next(5) > 7 { bits.skip(1) }
                if delayBits > 0, bits.flag() { bits.skip(2 * delayBits + 1) }
                if hasDelays, bits.flag() { bits.skip(4) }
            }
        }

        // MARK: The frame header

        private func readQuantizer(_ bits: inout Bits) -> Int? {
            guard !hasDecoderModel else { return nil }
            var hasOwnSize = false
            if !isReduced {
                // A frame shown again, or a frame that is not a shown key frame.
                guard !bits.flag(), bits.next(2) == 0, bits.flag() else { return nil }
            }
            let keepsProbabilities = bits.flag()
            let hasScreenTools = screenContentTools ?? bits.flag()
            if hasScreenTools, integerMotion == nil { bits.skip(1) }
            bits.skip(frameIDBits)
            if !isReduced { hasOwnSize = bits.flag() }
            bits.skip(orderHintBits)
            var size = (width: width, height: height)
            if hasOwnSize {
                size = (bits.next(sizeBits.width) + 1, bits.next(sizeBits.height) + 1)
            }
            let isUpscaled = mayUpscale && bits.flag()
            if isUpscaled {
                let denominator = bits.next(3) + 9
                size.width = (size.width * 8 + denominator / 2) / denominator
            }
            // The size to show at.
            if bits.flag() { bits.skip(32) }
            // Copies within the frame.
            if hasScreenTools, !isUpscaled { bits.skip(1) }
            if !isReduced, !keepsProbabilities { bits.skip(1) }
            skipTiles(size.width, size.height, &bits)
            let quantizer = bits.next(8)
            return bits.isWithin ? quantizer : nil
        }

        /// Skips `tile_info` (AV1, section 5.9.15).
        private func skipTiles(_ width: Int, _ height: Int, _ bits: inout Bits) {
            let shift = hasLargeSuperblocks ? 7 : 6
            // Sizes count in blocks of 8 samples.
            func superblocks(_ length: Int) -> Int {
                ((length + 7) / 8 * 8 + (1 << shift) - 1) >> shift
            }
            let (columns, rows) = (superblocks(width), superblocks(height))
            let mostWidth = 4096 >> shift
            let leastColumns = AV1Headers.logarithm(of: columns, by: mostWidth)
            let leastTiles = max(
                leastColumns,
                AV1Headers.logarithm(of: rows * columns, by: (4096 * 2304) >> (2 * shift)))
            var (tileColumns, tileRows) = (leastColumns, 0)
            if bits.flag() {
                let mostColumns = AV1Headers.logarithm(of: min(columns, 64), by: 1)
                while tileColumns < mostColumns, bits.flag() { tileColumns += 1 }
                let mostRows = AV1Headers.logarithm(of: min(rows, 64), by: 1)
                tileRows = max(leastTiles - tileColumns, 0)
                while tileRows < mostRows, bits.flag() { tileRows += 1 }
            } else {
                let across = AV1Headers.skipSizes(upTo: columns, each: mostWidth, &bits)
                let area = (rows * columns) >> (leastTiles > 0 ? leastTiles + 1 : 0)
                let down = AV1Headers.skipSizes(
                    upTo: rows, each: max(area / max(across.largest, 1), 1), &bits)
                tileColumns = AV1Headers.logarithm(of: across.count, by: 1)
                tileRows = AV1Headers.logarithm(of: down.count, by: 1)
            }
            // The tile with the probabilities to keep, and the bytes of a tile's length.
            if tileColumns + tileRows > 0 { bits.skip(tileColumns + tileRows + 2) }
        }

        /// Skips the sizes of tiles that fill `total` superblocks.
        private static func skipSizes(
            upTo total: Int, each most: Int, _ bits: inout Bits
        ) -> (count: Int, largest: Int) {
            var (start, count, largest) = (0, 0, 0)
            while start < total, bits.isWithin {
                let size = bits.nextBelow(min(total - start, most)) + 1
                start += size
                count += 1
                largest = max(largest, size)
            }
            return (count, largest)
        }

        /// The least power of two by which `unit` reaches `target`.
        private static func logarithm(of target: Int, by unit: Int) -> Int {
            var power = 0
            while unit << power < target { power += 1 }
            return power
        }

        /// Bits, the highest of a byte first; zeros beyond the end.
        private struct Bits {
            let source: UnsafeRawBufferPointer
            var place: Int
            let end: Int

            var isWithin: Bool { place <= end }

            mutating func skip(_ count: Int) { place += count }

            mutating func flag() -> Bool { next(1) == 1 }

            mutating func next(_ count: Int) -> Int {
                var value = 0
                for _ in 0..<count {
                    let bit = place < end ? source[place / 8] >> UInt8(7 - place % 8) & 1 : 0
                    value = value << 1 | Int(bit)
                    place += 1
                }
                return value
            }

            /// A number below `count` in the fewest bits (`ns`, AV1, section 4.10.7).
            mutating func nextBelow(_ count: Int) -> Int {
                guard count > 1 else { return 0 }
                let width = Int.bitWidth - count.leadingZeroBitCount
                let short = (1 << width) - count
                let value = next(width - 1)
                return value < short ? value : (value << 1) - short + next(1)
            }

            mutating func skipVariable() {
                var zeros = 0
                while zeros < 32, place < end, next(1) == 0 { zeros += 1 }
                if zeros < 32 { skip(zeros) }
            }
        }
    }
#endif

#if WebP
    internal import Glibc

    /// The quantisers of a lossy WebP picture, from its frame header (RFC 6386, sections 9.2 to 9.6
    /// and 19.2).
    struct VP8FrameHeader {
        /// The mean quantiser index over the picture, 0 (the finest) to 127. Segments count by the
        /// probabilities that the header states for them.
        let quantizer: Double

        /// Reads the data of a chunk `VP8 `; nil if it ends inside the header.
        init?(_ data: UnsafeRawBufferPointer) {
            // The frame's tag, start code and size precede the coded part.
            guard data.count > 10 else { return nil }
            var bits = BooleanDecoder(UnsafeRawBufferPointer(rebasing: data[10...]))
            // The colour space, and whether samples need clamping.
            _ = bits.number(2)
            let segments = VP8FrameHeader.segments(&bits)
            // The loop filter: its type, level and sharpness, then its adjustments.
            _ = bits.number(10)
            if bits.bit(), bits.bit() {
                for _ in 0..<8 { _ = bits.optionalSigned(6) }
            }
            // The number of partitions.
            _ = bits.number(2)
            let base = bits.number(7)
            guard bits.isWithin else { return nil }
            guard let segments else {
                quantizer = Double(base)
                return
            }
            quantizer = zip(segments.quantizers, segments.shares).reduce(0) { sum, segment in
                let index = segments.areAbsolute ? segment.0 : base + segment.0
                return sum + Double(min(max(index, 0), 127)) * segment.1
            }
        }

        private struct Segments {
            var areAbsolute = false
            var quantizers = [0, 0, 0, 0]
            /// Their sum is 1.
            var shares = [1.0, 0, 0, 0]
        }

        /// Reads the segments; nil if the whole picture has the same quantiser.
        private static func segments(_ bits: inout BooleanDecoder) -> Segments? {
            guard bits.bit() else { return nil }
            var result = Segments()
            let (hasMap, hasValues) = (bits.bit(), bits.bit())
            if hasValues {
                result.areAbsolute = bits.bit()
                for index in 0..<4 { result.quantizers[index] = bits.optionalSigned(7) ?? 0 }
                // The levels of the loop filter.
                for _ in 0..<4 { _ = bits.optionalSigned(6) }
            }
            if hasMap {
                func probability() -> Double {
                    bits.bit() ? Double(bits.number(8)) / 256 : 1
                }
                let (first, low, high) = (probability(), probability(), probability())
                result.shares = [
                    first * low, first * (1 - low), (1 - first) * high, (1 - first) * (1 - high),
                ]
            }
            return hasValues ? result : nil
        }

        /// libwebp's quality, 0…100, at which its encoder has this mean quantiser
        /// (`QualityToCompression` in `quant_enc.c`, inverted). Measured with libwebp 1.2.4 over
        /// 10 photographs at five qualities, it is at most 3 off.
        var libwebpQuality: Double {
            let compression = pow(1 - quantizer / 127, 3)
            return 100 * (compression < 0.5 ? compression * 1.5 : (compression + 1) / 2)
        }
    }

    /// The arithmetic decoder of VP8 (RFC 6386, section 7.3), for flags of even odds. Zeros follow
    /// the end.
    private struct BooleanDecoder {
        private let data: UnsafeRawBufferPointer
        private var place = 0
        private var value: UInt32 = 0
        private var range: UInt32 = 255
        private var shifts = 0

        init(_ data: UnsafeRawBufferPointer) {
            self.data = data
            for _ in 0..<2 { value = value << 8 | nextByte() }
        }

        /// Whether only bytes of the data were read; a decoder is up to two bytes ahead.
        var isWithin: Bool { place <= data.count + 2 }

        private mutating func nextByte() -> UInt32 {
            defer { place += 1 }
            return place < data.count ? UInt32(data[place]) : 0
        }

        mutating func bit() -> Bool {
            let split = (range + 1) / 2
            let isSet = value >= split << 8
            if isSet {
                range -= split
                value -= split << 8
            } else {
                range = split
            }
            while range < 128 {
                value <<= 1
                range <<= 1
                shifts += 1
                if shifts == 8 {
                    shifts = 0
                    value |= nextByte()
                }
            }
            return isSet
        }

        /// The highest bit is first.
        mutating func number(_ count: Int) -> Int {
            (0..<count).reduce(0) { value, _ in 2 * value + (bit() ? 1 : 0) }
        }

        /// A flag, and if it is set, a number and its sign.
        mutating func optionalSigned(_ count: Int) -> Int? {
            guard bit() else { return nil }
            let value = number(count)
            return bit() ? -value : value
        }
    }
#endif

#if AVIF
    /// The largest size of a frame, from the sequence header of AV1 data (AV1, sections 5.3 and
    /// 5.5).
    struct AV1SequenceHeader {
        private(set) var width = 0
        private(set) var height = 0

        /// Reads the first sequence header in a range of the file; nil without one.
        init?(_ source: UnsafeRawBufferPointer, in range: Range<Int>) {
            var offset = range.lowerBound
            // It follows a temporal delimiter and metadata.
            for _ in 0..<16 {
                guard offset < range.upperBound else { return nil }
                let head = source[offset]
                offset += head & 4 == 0 ? 1 : 2
                var length = range.upperBound - offset
                if head & 2 != 0 {
                    guard let stated = AV1SequenceHeader.length(source, &offset, range.upperBound)
                    else { return nil }
                    length = stated
                }
                guard length >= 0, length <= range.upperBound - offset else { return nil }
                if head >> 3 & 15 == 1 {
                    var bits = Bits(source: source, place: offset * 8, end: (offset + length) * 8)
                    guard read(&bits) else { return nil }
                    return
                }
                offset += length
            }
            return nil
        }

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

        private mutating func read(_ bits: inout Bits) -> Bool {
            // The profile, and whether it is a still picture.
            _ = bits.next(4)
            if bits.next(1) == 1 {
                _ = bits.next(5)
            } else {
                skipOperatingPoints(&bits)
            }
            let (widthBits, heightBits) = (bits.next(4) + 1, bits.next(4) + 1)
            (width, height) = (bits.next(widthBits) + 1, bits.next(heightBits) + 1)
            return bits.isWithin
        }

        private func skipOperatingPoints(_ bits: inout Bits) {
            var delayBits = 0
            if bits.next(1) == 1 {
                // Timing: two numbers, and one of variable length if pictures are equally long.
                bits.skip(64)
                if bits.next(1) == 1 { bits.skipVariable() }
                if bits.next(1) == 1 {
                    delayBits = bits.next(5) + 1
                    bits.skip(42)
                }
            }
            let hasDelays = bits.next(1) == 1
            for _ in 0...bits.next(5) {
                bits.skip(12)
                if bits.next(5) > 7 { bits.skip(1) }
                if delayBits > 0, bits.next(1) == 1 { bits.skip(2 * delayBits + 1) }
                if hasDelays, bits.next(1) == 1 { bits.skip(4) }
            }
        }

        /// Bits, the highest of a byte first; zeros beyond the end.
        private struct Bits {
            let source: UnsafeRawBufferPointer
            var place: Int
            let end: Int

            var isWithin: Bool { place <= end }

            mutating func skip(_ count: Int) { place += count }

            mutating func next(_ count: Int) -> Int {
                var value = 0
                for _ in 0..<count {
                    let bit = place < end ? source[place / 8] >> UInt8(7 - place % 8) & 1 : 0
                    value = value << 1 | Int(bit)
                    place += 1
                }
                return value
            }

            mutating func skipVariable() {
                var zeros = 0
                while zeros < 32, place < end, next(1) == 0 { zeros += 1 }
                if zeros < 32 { skip(zeros) }
            }
        }
    }
#endif

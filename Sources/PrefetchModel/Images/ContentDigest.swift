/// The SHA-256 of stored or fetched bytes (FIPS 180-4), 32 bytes.
package struct ContentDigest: Hashable, BitwiseCopyable, Sendable {
    /// The digest as four big-endian words, the first byte being the most significant of the first.
    private let words: (UInt64, UInt64, UInt64, UInt64)

    package static let byteCount = 32

    /// A placeholder where only the form of a text matters.
    package static let zero = ContentDigest(words: (0, 0, 0, 0))

    private init(words: (UInt64, UInt64, UInt64, UInt64)) {
        self.words = words
    }

    package init?(bytes: UnsafeRawBufferPointer) {
        guard bytes.count == ContentDigest.byteCount else { return nil }
        func word(_ index: Int) -> UInt64 {
            UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8 * index, as: UInt64.self))
        }
        words = (word(0), word(1), word(2), word(3))
    }

    package var leadingWords: (UInt64, UInt64) { (words.0, words.1) }

    /// Returns nil unless the text is exactly 64 hexadecimal digits.
    package init?(hexadecimal text: some StringProtocol) {
        let letters = UInt8(ascii: "A")...UInt8(ascii: "F")
        let digest = text.utf8.map { letters.contains($0) ? $0 | 0x20 : $0 }.withUnsafeBytes {
            ContentDigest(lowercaseHexadecimal: $0)
        }
        guard let digest else { return nil }
        self = digest
    }

    /// Parses 64 digits `0`…`9` and `a`…`f`, the form of ``description``; nil for anything else.
    package init?(lowercaseHexadecimal digits: UnsafeRawBufferPointer) {
        guard digits.count == 2 * ContentDigest.byteCount else { return nil }
        func word(_ index: Int) -> UInt64? {
            var value: UInt64 = 0
            for digit in digits[(16 * index)..<(16 * index + 16)] {
                switch digit {
                case UInt8(ascii: "0")...UInt8(ascii: "9"):
                    value = value << 4 | UInt64(digit - UInt8(ascii: "0"))
                case UInt8(ascii: "a")...UInt8(ascii: "f"):
                    value = value << 4 | UInt64(digit - UInt8(ascii: "a") + 10)
                default: return nil
                }
            }
            return value
        }
        guard let first = word(0), let second = word(1), let third = word(2), let fourth = word(3)
        else { return nil }
        words = (first, second, third, fourth)
    }

    package var bytes: [UInt8] { withBytes { [UInt8]($0) } }

    package func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows
        -> Result
    {
        try withUnsafeBytes(
            of: (words.0.bigEndian, words.1.bigEndian, words.2.bigEndian, words.3.bigEndian), body)
    }

    package static func == (left: ContentDigest, right: ContentDigest) -> Bool {
        left.words == right.words
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(words.0)
        hasher.combine(words.1)
    }
}

extension ContentDigest: CustomStringConvertible {
    /// 64 lower-case hexadecimal digits.
    package var description: String {
        String(unsafeUninitializedCapacity: 2 * ContentDigest.byteCount) { buffer in
            withBytes { bytes in
                for (index, byte) in bytes.enumerated() {
                    buffer[2 * index] = UInt8(hexadecimalDigitOf: byte >> 4)
                    buffer[2 * index + 1] = UInt8(hexadecimalDigitOf: byte & 15)
                }
                return 2 * bytes.count
            }
        }
    }
}

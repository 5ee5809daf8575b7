internal import PrefetchModel

/// The portable maps of Netpbm: PBM, PGM, PPM (`P1` to `P6`), PAM (`P7`), and PFM (`PF`, `Pf`): a
/// header in ASCII, and the samples of one picture or more.
enum PNMContainer: ImageContainer {
    static func recognition(of bytes: UnsafeRawBufferPointer) -> Recognition {
        switch MapHeader.read(UnsafeRawBufferPointer(rebasing: bytes.prefix(signatureBytes))) {
        case .header: .recognised
        case .incomplete: bytes.count < signatureBytes ? .undecided : .other
        case .other: .other
        }
    }

    static func size(in beginning: UnsafeRawBufferPointer) -> DeclaredSize {
        guard case .header(let header) = MapHeader.read(beginning) else { return .later }
        guard header.width > 0, header.height > 0 else { return .unknown }
        return .known(width: header.width, height: header.height)
    }

    static func check(
        _ source: UnsafeRawBufferPointer, memoryBytes: Int, _ interruption: Interruption
    ) throws(CodecError) -> ImageWarning? {
        guard case .header(let header) = MapHeader.read(source) else { throw .cutHeader }
        guard header.width > 0, header.height > 0, header.samples > 0, header.maximum > 0 else {
            throw .broken("an image without pixels")
        }
        guard header.isText else {
            let row = ByteEstimate(header.width) * ByteEstimate(header.samples * header.bits) + 7
            let bytes = row / 8 * ByteEstimate(header.height)
            guard source.holds(bytes.count, at: header.end) else { throw .cutImage }
            return nil
        }
        let row = ByteEstimate(header.width) * ByteEstimate(header.samples)
        let count = (row * ByteEstimate(header.height)).count
        try checkText(source.dropFirst(header.end), count, isPacked: header.bits == 1, interruption)
        return nil
    }

    /// Checks that there are as many numbers. Digits of packed ones need no space in between.
    private static func checkText(
        _ text: Slice<UnsafeRawBufferPointer>, _ count: Int, isPacked: Bool,
        _ interruption: Interruption
    ) throws(CodecError) {
        var left = count
        var (isInNumber, isInComment) = (false, false)
        for byte in text where left > 0 || isInNumber {
            try interruption.check(after: 1)
            let isDigit = (0x30...0x39).contains(byte)
            if isInComment {
                isInComment = byte != 0x0A && byte != 0x0D
            } else if isDigit {
                if isPacked || !isInNumber { left -= 1 }
                isInNumber = !isPacked
            } else {
                isInNumber = false
                isInComment = byte == UInt8(ascii: "#")
                guard isInComment || left == 0 || MapHeader.isSpace(byte) else {
                    throw .broken("a sample that is not a number")
                }
            }
        }
        guard left == 0 else { throw .cutImage }
    }

    /// A number at the end of the file may be half of one.
    static func statesItsEnd(_ source: UnsafeRawBufferPointer) -> Bool {
        guard case .header(let header) = MapHeader.read(source), header.isText, header.bits > 1
        else {
            return true
        }
        return source.last.map { !(0x30...0x39).contains($0) } ?? true
    }

    private struct MapHeader {
        var isText = false
        var width = 0
        var height = 0
        /// Samples a pixel.
        var samples = 1
        /// The largest sample.
        var maximum = 1
        /// Bits of a sample.
        var bits = 1
        /// The place of the samples.
        var end = 0

        enum Reading {
            case header(MapHeader)
            case incomplete
            case other
        }

        static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }

        static func read(_ bytes: UnsafeRawBufferPointer) -> Reading {
            guard bytes.first.map({ $0 == UInt8(ascii: "P") }) ?? true else { return .other }
            guard bytes.count >= 3 else {
                let isPossible = bytes.dropFirst().allSatisfy { kinds.contains($0) }
                return isPossible ? .incomplete : .other
            }
            guard kinds.contains(bytes[1]), isSpace(bytes[2]) || bytes[2] == UInt8(ascii: "#")
            else { return .other }
            var words = Words(bytes: bytes, offset: 2)
            guard let header = MapHeader(kind: bytes[1], &words) else {
                return words.isIncomplete ? .incomplete : .other
            }
            return .header(header)
        }

        private static let kinds = Array("1234567Ff".utf8)

        private init?(kind: UInt8, _ words: inout Words) {
            switch kind {
            case UInt8(ascii: "7"): guard readFields(&words) else { return nil }
            case UInt8(ascii: "F"), UInt8(ascii: "f"):
                // The scale's sign is the byte order.
                guard let width = words.number(), let height = words.number(),
                    let scale = words.word().flatMap({ Double($0) }), scale.isFinite, scale != 0
                else { return nil }
                (self.width, self.height) = (width, height)
                (samples, bits) = (kind == UInt8(ascii: "F") ? 3 : 1, 32)
            default:
                isText = kind <= UInt8(ascii: "3")
                let plain = isText ? kind : kind - 3
                let isBitmap = plain == UInt8(ascii: "1")
                guard let width = words.number(), let height = words.number(),
                    let maximum = isBitmap ? 1 : words.number()
                else { return nil }
                (self.width, self.height, self.maximum) = (width, height, maximum)
                samples = plain == UInt8(ascii: "3") ? 3 : 1
                bits = isBitmap ? 1 : maximum > 255 ? 16 : 8
            }
            // One byte of white space follows.
            end = words.offset + 1
        }

        /// Reads the lines of a PAM up to `ENDHDR`.
        private mutating func readFields(_ words: inout Words) -> Bool {
            while true {
                guard let name = words.word() else { return false }
                switch name {
                case "ENDHDR":
                    bits = maximum > 255 ? 16 : 8
                    return true
                case "TUPLTYPE": guard words.word() != nil else { return false }
                default:
                    guard let value = words.number(), note(value, as: name) else { return false }
                }
            }
        }

        private mutating func note(_ value: Int, as name: String) -> Bool {
            switch name {
            case "WIDTH": width = value
            case "HEIGHT": height = value
            case "DEPTH": samples = value
            case "MAXVAL": maximum = value
            default: return false
            }
            return true
        }
    }

    /// The words of a header, between white space and comments.
    private struct Words {
        let bytes: UnsafeRawBufferPointer
        /// After a word: that of the white space behind it.
        var offset: Int
        /// Whether the bytes end before the word that was not found.
        var isIncomplete = false

        /// Returns nil for bytes that are no word, or a cut one.
        mutating func word() -> String? {
            var isInComment = false
            while offset < bytes.count,
                isInComment || MapHeader.isSpace(bytes[offset])
                    || bytes[offset] == UInt8(ascii: "#")
            {
                let isEndOfLine = bytes[offset] == 0x0A || bytes[offset] == 0x0D
                isInComment = (isInComment || bytes[offset] == UInt8(ascii: "#")) && !isEndOfLine
                offset += 1
            }
            let text = bytes[offset...].prefix {
                !MapHeader.isSpace($0) && $0 != UInt8(ascii: "#")
            }
            // No word of a header is longer.
            guard text.count <= 32, text.allSatisfy({ (0x21...0x7E).contains($0) }) else {
                return nil
            }
            offset = text.endIndex
            isIncomplete = offset == bytes.count
            return isIncomplete ? nil : String(decoding: text, as: UTF8.self)
        }

        /// The same for digits.
        mutating func number() -> Int? {
            word().flatMap { text in
                text.utf8.count <= 9 && text.utf8.allSatisfy { (0x30...0x39).contains($0) }
                    ? Int(text) : nil
            }
        }
    }
}

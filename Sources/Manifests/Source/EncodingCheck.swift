import PrefetchModel

/// Finds the lines of a list that are not UTF-8, as in lists of other programs: bytes of Latin-1
/// or windows-1252 would become U+FFFD.
struct EncodingCheck {
    private var lines = 0
    private var first: (line: Int, position: Int, byte: UInt8)?
    private var lastLine = 0
    /// The bytes of the present line before the present piece.
    private var offset = 0
    /// The beginning of a character at the end of the last piece.
    private var cut: [UInt8] = []

    static let remedy =
        "convert it with iconv -f WINDOWS-1252 -t UTF-8, or from the encoding that it has"

    /// Examines the next piece of a line, the whole one mostly. It may end within a character if
    /// the line is longer.
    mutating func examine(
        _ bytes: UnsafeBufferPointer<UInt8>, line: Int, isContinued: Bool, endsLine: Bool
    ) {
        if !isContinued { (offset, cut) = (0, []) }
        defer { offset += bytes.count }
        var piece = bytes[...]
        if let lead = cut.first {
            let missing = (lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2) - cut.count
            let character = cut + piece.prefix(missing)
            if character.withUnsafeBufferPointer(EncodingCheck.wrongBytes) != nil {
                note(lead, at: offset - cut.count, of: line)
            } else {
                piece = piece.dropFirst(missing)
            }
            cut = []
        }
        let rest = UnsafeBufferPointer(rebasing: piece)
        guard let wrong = EncodingCheck.wrongBytes(in: rest) else { return }
        if wrong.upperBound == rest.count, !endsLine, rest[wrong.lowerBound] >= 0xC2 {
            cut = Array(rest[wrong])
        } else {
            note(rest[wrong.lowerBound], at: offset + piece.startIndex + wrong.lowerBound, of: line)
        }
    }

    private mutating func note(_ byte: UInt8, at index: Int, of line: Int) {
        guard line != lastLine else { return }
        lines += 1
        lastLine = line
        if first == nil { first = (line, index + 1, byte) }
    }

    /// The first bytes that are not UTF-8; nil without any.
    static func wrongBytes(in bytes: UnsafeBufferPointer<UInt8>) -> Range<Int>? {
        do {
            _ = try UTF8Span(validating: bytes.span)
            return nil
        } catch {
            return error.byteOffsets
        }
    }

    /// A line for people, without the manifest's name, and the remedy.
    var notes: [(text: String, remedy: String)] {
        guard let (line, position, byte) = first else { return [] }
        let digits = String(byte, radix: 16, uppercase: true)
        let found = lines == 1 ? "1 line is" : "\(lines) lines are"
        return [
            (
                "\(found) not UTF-8, first line \(line) at byte \(position), 0x\(digits)",
                EncodingCheck.remedy
            )
        ]
    }
}

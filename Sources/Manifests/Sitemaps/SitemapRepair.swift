import PrefetchModel

/// Rewrites sitemaps that are not XML but meant to be, so that expat reads them.
///
/// - The text becomes UTF-8, and its declaration is left out: also one that does not stand at the
///   start, and marks and blank lines in front of it.
/// - A `&` that begins no reference becomes `&amp;`, and a `<` that begins no tag `&lt;`.
/// - Names of HTML's characters (`&eacute;`) become these characters.
/// - Characters that XML forbids, and references to them, are left out.
///
/// Line ends stay, and with them the numbers of lines. Broken tags are errors of the format.
///
/// Not thread-safe.
final class SitemapRepair {
    /// A kind of repair.
    private enum RepairKind: CaseIterable {
        case start, markup, entity, character, bytes
    }

    /// The part of the document at the next byte.
    private enum MarkupPart: Equatable {
        case text
        /// In a tag; the quotation mark of the attribute's value there, 0 outside of one.
        case tag(quote: UInt8)
        case comment, section, instruction

        /// The text that ends it; nil for parts that end otherwise.
        var end: [UInt8]? {
            switch self {
            case .comment: Array("-->".utf8)
            case .section: Array("]]>".utf8)
            case .instruction: Array("?>".utf8)
            default: nil
            }
        }
    }

    /// Nil until the beginning is there.
    private var decoder: SitemapDecoder?
    /// The beginning, or characters that cannot be judged without the next ones.
    private var waiting: [UInt8] = []
    private var part = MarkupPart.text
    private var line = 1
    private var hasBegun = false
    private var found: [RepairKind: (count: Int, line: Int)] = [:]
    /// The first HTML entity.
    private var entity = ""

    /// The part of the beginning that may have the declaration.
    private static let headBytes = 1024
    /// The longest reference is `&thetasym;` or one to a number with zeros in front.
    private static let referenceBytes = 32
    /// The longest text that begins or ends a part.
    private static let markBytes = 9

    /// The bytes that are not passed over in any part.
    private static let special: [Bool] = (0...255).map { (byte: UInt8) in
        byte < 0x20
            ? !"\t\n\r".utf8.contains(byte) : byte == 0xEF || "<>&\"'-]?".utf8.contains(byte)
    }

    /// Returns the text of the next piece, as far as it can be judged.
    func repaired(_ bytes: UnsafeBufferPointer<UInt8>, isLast: Bool) -> [UInt8] {
        guard let decoder else {
            waiting += bytes
            guard waiting.count >= SitemapRepair.headBytes || isLast else { return [] }
            let head = waiting
            decoder = SitemapDecoder(head: Array(head.prefix(SitemapRepair.headBytes)))
            waiting = []
            return head.withUnsafeBufferPointer { repaired($0, isLast: isLast) }
        }
        let (text, wrong) = decoder.decoded(bytes, isLast: isLast)
        if let first = wrong.first {
            note(
                .bytes, count: wrong.count,
                line: line + (waiting + text[..<first]).count { $0 == 0x0A })
        }
        let input = waiting + text
        waiting = []
        return input.withUnsafeBufferPointer { repair($0, isLast) }
    }

    private func note(_ kind: RepairKind, count: Int = 1, line: Int? = nil) {
        found[kind, default: (0, line ?? self.line)].count += count
    }

    // MARK: The text

    private func repair(_ input: UnsafeBufferPointer<UInt8>, _ isLast: Bool) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(input.count + input.count / 16)
        var index = hasBegun ? 0 : begin(input, &output)
        var copied = index
        let special = SitemapRepair.special
        while index < input.count {
            let byte = input[index]
            if byte == 0x0A { line += 1 }
            guard special[Int(byte)] else {
                index += 1
                continue
            }
            let rest = UnsafeBufferPointer(rebasing: input[index...])
            guard let (length, text) = pass(rest, isLast) else { break }
            if let text {
                output += input[copied..<index]
                output += text
                copied = index + length
            }
            index += length
        }
        output += input[copied..<index]
        waiting = Array(input[index...])
        return output
    }

    /// Passes marks and blank lines in front of the document; returns their length.
    private func begin(_ input: UnsafeBufferPointer<UInt8>, _ output: inout [UInt8]) -> Int {
        hasBegun = true
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        let start = input.firstIndex { $0 > 0x20 && $0 < 0x7F } ?? 0
        guard start < input.count, input[start] == UInt8(ascii: "<") else { return 0 }
        let front = input[..<start]
        if start > 0, !front.elementsEqual(mark), input[start...].starts(with: "<?xml".utf8) {
            note(.start)
        }
        let lines = front.filter { $0 == 0x0A }
        output += lines
        line += lines.count
        return start
    }

    /// Decides about the byte at the beginning, which is a special one.
    ///
    /// - Returns: the number of bytes to pass, at least 1, and the text that replaces them; nil if
    ///   more bytes are needed.
    private func pass(
        _ rest: UnsafeBufferPointer<UInt8>, _ isLast: Bool
    ) -> (length: Int, text: [UInt8]?)? {
        let byte = rest[0]
        let isReference = byte == UInt8(ascii: "&")
        guard
            isLast
                || rest.count
                    >= (isReference ? SitemapRepair.referenceBytes : SitemapRepair.markBytes)
        else { return nil }
        if let length = SitemapRepair.forbiddenLength(rest) {
            note(.character)
            return (length, [])
        }
        if let end = part.end {
            guard rest.starts(with: end) else { return (1, nil) }
            part = .text
            return (end.count, nil)
        }
        switch (byte, part) {
        case (UInt8(ascii: "&"), .text): return passReference(rest)
        case (UInt8(ascii: "&"), .tag(let quote)) where quote != 0: return passReference(rest)
        case (UInt8(ascii: "<"), .text): return open(rest, isLast)
        case (UInt8(ascii: "<"), .tag(let quote)) where quote != 0:
            note(.markup)
            return (1, Array("&lt;".utf8))
        // The parts of a DOCTYPE.
        case (UInt8(ascii: "<"), .tag(0)) where "!?".utf8.contains(rest.count > 1 ? rest[1] : 0):
            return open(rest, isLast)
        case (UInt8(ascii: ">"), .tag(0)): part = .text
        case (UInt8(ascii: "\""), .tag(0)), (UInt8(ascii: "'"), .tag(0)): part = .tag(quote: byte)
        case (_, .tag(let quote)) where quote == byte: part = .tag(quote: 0)
        default: break
        }
        return (1, nil)
    }

    /// The length of a character that XML forbids; nil for others.
    private static func forbiddenLength(_ rest: UnsafeBufferPointer<UInt8>) -> Int? {
        if rest[0] < 0x20 { return 1 }
        // U+FFFE and U+FFFF.
        return rest.starts(with: [0xEF, 0xBF]) && rest.count > 2 && rest[2] >= 0xBE ? 3 : nil
    }

    /// Begins a part at a `<`, and leaves out a declaration.
    private func open(
        _ rest: UnsafeBufferPointer<UInt8>, _ isLast: Bool
    ) -> (length: Int, text: [UInt8]?)? {
        if rest.starts(with: "<!--".utf8) {
            part = .comment
            return (4, nil)
        }
        if rest.starts(with: "<![CDATA[".utf8) {
            part = .section
            return (SitemapRepair.markBytes, nil)
        }
        if rest.starts(with: "<?".utf8) {
            guard rest.starts(with: "<?xml".utf8), rest.count > 5,
                rest[5].isBlank || "\r\n".utf8.contains(rest[5])
            else {
                part = .instruction
                return (2, nil)
            }
            let declaration = rest.prefix(SitemapRepair.headBytes)
            guard
                let end = declaration.indices.first(where: {
                    declaration[$0...].starts(with: "?>".utf8)
                })
            else {
                guard isLast || declaration.count == SitemapRepair.headBytes else { return nil }
                part = .instruction
                return (2, nil)
            }
            let lines = declaration[..<end].filter { $0 == 0x0A }
            line += lines.count
            return (end + 2, lines)
        }
        let next = rest.count > 1 ? rest[1] : 0
        guard next.isLetter || next >= 0x80 || "_:/!".utf8.contains(next) else {
            note(.markup)
            return (1, Array("&lt;".utf8))
        }
        part = .tag(quote: 0)
        return (1, nil)
    }

    /// Passes a `&`.
    private func passReference(
        _ rest: UnsafeBufferPointer<UInt8>
    ) -> (length: Int, text: [UInt8]?) {
        let name = rest.dropFirst().prefix(SitemapRepair.referenceBytes - 2)
            .prefix { $0 != UInt8(ascii: ";") }
        let length = name.count + 2
        if name.endIndex < rest.count, rest[name.endIndex] == UInt8(ascii: ";") {
            let text = String(decoding: name, as: UTF8.self)
            if ["amp", "lt", "gt", "quot", "apos"].contains(text) { return (length, nil) }
            if let character = HTMLEntities.character(name) {
                if entity.isEmpty { entity = text }
                note(.entity)
                return (length, Array(String(character).utf8))
            }
            if text.first == "#", let code = SitemapRepair.code(text.dropFirst()) {
                if SitemapRepair.isAllowed(code) { return (length, nil) }
                note(.character)
                return (length, [])
            }
        }
        note(.markup)
        return (1, Array("&amp;".utf8))
    }

    /// The number of a reference to a character.
    private static func code(_ text: Substring) -> UInt32? {
        let digits = text.first == "x" ? text.dropFirst() : text
        guard digits.allSatisfy({ $0.isASCII && $0.isHexDigit }) else { return nil }
        return UInt32(digits, radix: text.first == "x" ? 16 : 10)
    }

    /// Whether XML 1.0 §2.2 allows a character.
    private static func isAllowed(_ code: UInt32) -> Bool {
        guard Unicode.Scalar(code) != nil else { return false }
        return code >= 0x20 ? code & ~1 != 0xFFFE : [0x09, 0x0A, 0x0D].contains(code)
    }

    // MARK: Notes

    /// The repairs so far, for people.
    var notes: [(text: String, remedy: String)] {
        var notes = RepairKind.allCases.compactMap { kind in
            found[kind].map { note(of: kind, count: $0.count, line: $0.line) }
        }
        if let encodingNote { notes.append(encodingNote) }
        return notes
    }

    /// The note about an encoding that is not known, and so the likely cause of errors.
    var encodingNote: (text: String, remedy: String)? {
        decoder?.unknownEncoding.map { name in
            (
                "its encoding '\(LineExcerpt.text(of: name))' is not supported here, it was read "
                    + "as UTF-8", "convert it to UTF-8 with iconv"
            )
        }
    }

    private func note(
        of kind: RepairKind, count: Int, line: Int
    ) -> (text: String, remedy: String) {
        func counted(_ thing: String, _ things: String) -> String {
            "\(count == 1 ? "1 \(thing)" : "\(count) \(things)"), first line \(line)"
        }
        return switch kind {
        case .start:
            (
                "blank lines or a mark precede the XML declaration",
                "remove them: the declaration must come first"
            )
        case .markup:
            (
                counted("& or < that is not escaped", "& or < that are not escaped"),
                "write them &amp; and &lt;"
            )
        case .entity:
            (
                counted("HTML entity", "HTML entities") + ": &\(entity);",
                "XML does not have them: write the characters themselves"
            )
        case .character:
            (
                counted("control character was", "control characters were")
                    .replacing(",", with: " left out,"), "XML forbids them"
            )
        case .bytes:
            (
                counted("character is", "characters are")
                    .replacing(",", with: " not in its encoding,"), EncodingCheck.remedy
            )
        }
    }
}

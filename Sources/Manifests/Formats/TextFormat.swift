import PrefetchModel

/// The format `text`: one URL per line, with optional fields; see ``ManifestReader``.
final class TextFormat: LineFormat {
    func take(_ line: ListLine, to entries: EntryAppender) throws {
        let bytes = line.text
        var start = 0
        while start < bytes.count, bytes[start].isBlank { start += 1 }
        if start == bytes.count ? !line.isLong : bytes[start] == UInt8(ascii: "#") { return }
        let text = UnsafeBufferPointer(rebasing: bytes[start...])
        entries.notes.oddLines.examine(text, number: line.number)
        do {
            guard !line.isLong else {
                throw LineProblem.tooLong("line", entries.options.maximumLineBytes)
            }
            try append(text, number: line.number, to: entries)
        } catch let problem as LineProblem {
            let isHeader = entries.isEmpty && ForeignContent.isColumnOfURLs(text)
            let url = problem.namesField ? text.firstIndex(where: \.isBlank) : nil
            entries.appendBad(
                text, url: url.map { UnsafeBufferPointer(rebasing: text[..<$0]) },
                isHeader ? .header : problem, line: line.number)
        }
    }

    /// Appends the entry of a line that begins with its URL.
    private func append(
        _ bytes: UnsafeBufferPointer<UInt8>, number: Int, to entries: EntryAppender
    ) throws {
        if entries.appendCanonical(bytes, line: number) { return }
        guard !bytes.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) else {
            throw LineProblem("the line contains a control character")
        }
        let end = bytes.firstIndex(where: \.isBlank) ?? bytes.count
        switch LineOddity.followingText(bytes) {
        case .sourceSet?:
            throw LineProblem("an entry of a srcset; keep only its URL, without the size")
        case .mirrors?:
            throw LineProblem(
                "another URL behind a tab or space; a mirror is written url=URL, and another image "
                    + "has a line of its own")
        default: break
        }
        var fields = EntryFields()
        try TextFormat.read(UnsafeBufferPointer(rebasing: bytes[end...]), into: &fields)
        try entries.append(
            UnsafeBufferPointer(rebasing: bytes[..<end]), fields, unit: "line", line: number)
    }

    /// Parses the fields after the URL: `name=value` or `name="value"`.
    ///
    /// - Precondition: the line has no control bytes except tabs.
    /// - Throws: a problem that names the first invalid field.
    private static func read(
        _ line: UnsafeBufferPointer<UInt8>, into fields: inout EntryFields
    ) throws {
        var index = 0
        while true {
            while index < line.count, line[index].isBlank { index += 1 }
            // A comment extends to the end of the line.
            guard index < line.count, line[index] != UInt8(ascii: "#") else { return }
            let start = index
            while index < line.count, !line[index].isBlank, line[index] != UInt8(ascii: "=") {
                index += 1
            }
            guard index < line.count, line[index] == UInt8(ascii: "=") else {
                throw LineProblem("text without '=' after the URL; a space in a URL is written %20")
            }
            let name = line[start..<index]
            index += 1
            guard index < line.count, line[index] == UInt8(ascii: "\"") else {
                let value = index
                while index < line.count, !line[index].isBlank { index += 1 }
                try fields.add(name, line[value..<index])
                continue
            }
            var value: [UInt8] = []
            guard let end = unquote(line[(index + 1)...], to: &value) else {
                throw EntryFields.problemOfQuotes(name, "its closing quotation mark is missing")
            }
            index = end
            guard index == line.count || line[index].isBlank else {
                throw EntryFields.problemOfQuotes(name, "text follows the closing quotation mark")
            }
            try value.withUnsafeBufferPointer { value in
                try fields.add(name, value[...])
            }
        }
    }

    /// Appends a quoted value: `\"` and `\\` stand for `"` and `\`.
    ///
    /// - Returns: the index after the closing quotation mark; nil without one.
    private static func unquote(_ text: EntryFields.Bytes, to value: inout [UInt8]) -> Int? {
        var index = text.startIndex
        while index < text.endIndex {
            var byte = text[index]
            if byte == UInt8(ascii: "\"") { return index + 1 }
            if byte == UInt8(ascii: "\\"), index + 1 < text.endIndex,
                text[index + 1] == UInt8(ascii: "\"") || text[index + 1] == byte
            {
                index += 1
                byte = text[index]
            }
            value.append(byte)
            index += 1
        }
        return nil
    }
}

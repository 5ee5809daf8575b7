/// A line of a header section, as bytes: libcurl's list of fields is slow to search.
enum HeaderLine {
    /// The fields that decide where a body ends, in lower case.
    static let framingNames: [StaticString] = ["content-length", "transfer-encoding"]

    /// The value of a field if the line has this name, which is in lower case; nil for other lines.
    static func value(
        of name: StaticString, in line: UnsafeRawBufferPointer
    ) -> UnsafeRawBufferPointer? {
        guard has(name, line), line.count > name.utf8CodeUnitCount,
            line[name.utf8CodeUnitCount] == UInt8(ascii: ":")
        else { return nil }
        return UnsafeRawBufferPointer(rebasing: line[(name.utf8CodeUnitCount + 1)...])
    }

    /// Whether the line has one of these names, followed by blanks and then by the colon.
    static func hasBlankBeforeColon(
        _ line: UnsafeRawBufferPointer, in names: [StaticString]
    ) -> Bool {
        names.contains { name in
            guard has(name, line) else { return false }
            let rest = line[name.utf8CodeUnitCount...]
            let blanks = rest.prefix { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
            return !blanks.isEmpty && rest.dropFirst(blanks.count).first == UInt8(ascii: ":")
        }
    }

    private static func has(_ name: StaticString, _ line: UnsafeRawBufferPointer) -> Bool {
        guard line.count >= name.utf8CodeUnitCount, let first = line.first,
            first | 0x20 == name.utf8Start[0]
        else { return false }
        let bytes = UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
        // The bit that separates the cases of a letter changes no hyphen.
        return zip(line, bytes).allSatisfy { $0 | 0x20 == $1 }
    }
}

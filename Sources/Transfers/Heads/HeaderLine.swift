/// A line of a header section, as bytes: libcurl's list of fields is slow to search.
enum HeaderLine {
    /// The fields that decide where a body ends, in lower case.
    static let framingNames: [StaticString] = ["content-length", "transfer-encoding"]

    /// The value of a field if the line has this name, which is in lower case; nil for other lines.
    static func value(
        of name: StaticString, in line: UnsafeRawBufferPointer
    ) -> UnsafeRawBufferPointer? {
        let count = name.utf8CodeUnitCount
        guard line.count > count, line[count] == UInt8(ascii: ":"), equal(line.prefix(count), name)
        else { return nil }
        return UnsafeRawBufferPointer(rebasing: line[(count + 1)...])
    }

    /// How a line contains a name.
    enum Naming {
        case exact
        /// Mixed with other bytes, or behind a bare CR, which some readers skip (RFC 9112 §2.2,
        /// §5.1).
        case disguised
    }

    /// Looks for a name of ``framingNames`` before a colon; nil for other lines.
    static func framingName(in line: UnsafeRawBufferPointer) -> Naming? {
        var rest = line[...]
        while !rest.isEmpty {
            let part = rest.prefix { $0 != UInt8(ascii: "\r") }
            if let colon = part.firstIndex(of: UInt8(ascii: ":")) {
                // Bytes that no name has, such as blanks, controls and a no-break space.
                let visible = part[..<colon].lazy.filter { (0x21...0x7e).contains($0) }
                for name in framingNames where equal(visible, name) {
                    let isExact = colon == name.utf8CodeUnitCount
                    return isExact ? .exact : .disguised
                }
            }
            rest = rest.dropFirst(part.count + 1)
        }
        return nil
    }

    private static func equal(_ bytes: some Sequence<UInt8>, _ name: StaticString) -> Bool {
        let name = UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
        // The bit that separates the cases of a letter changes no hyphen.
        return bytes.elementsEqual(name) { $0 | 0x20 == $1 }
    }
}

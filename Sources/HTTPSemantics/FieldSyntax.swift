import PrefetchModel

/// Field syntax shared by several fields (RFC 9110 §5.6).
enum FieldSyntax {
    static let space = UInt8(ascii: " ")
    static let tab = UInt8(ascii: "\t")
    static let comma = UInt8(ascii: ",")
    static let quote = UInt8(ascii: "\"")
    static let backslash = UInt8(ascii: "\\")

    static func isWhiteSpace(_ byte: UInt8) -> Bool {
        byte == space || byte == tab
    }

    static func isToken(_ bytes: some Collection<UInt8>) -> Bool {
        !bytes.isEmpty && bytes.allSatisfy(\.isTokenByte)
    }

    /// Whether a value of `Content-Encoding` (RFC 9110 §8.4) names any coding but `identity`, which
    /// changes nothing.
    static func isEncoding(_ value: String) -> Bool {
        !members(of: value).allSatisfy { text($0).lowercased() == "identity" }
    }

    /// Removes the optional white space (RFC 9110 §5.6.3) at both ends.
    static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let start = bytes.firstIndex { !isWhiteSpace($0) } ?? bytes.endIndex
        let end = bytes.lastIndex { !isWhiteSpace($0) }.map { $0 + 1 } ?? start
        return bytes[start..<end]
    }

    /// The members of a list without quoted strings; empty ones are left out (RFC 9110 §5.6.1.2).
    static func members(of value: some StringProtocol) -> [ArraySlice<UInt8>] {
        Array(value.utf8).split(separator: comma).map(trimmed).filter { !$0.isEmpty }
    }

    /// Decodes bytes cut out of a Swift string at ASCII delimiters, so that characters stay whole.
    static func text(_ bytes: some Collection<UInt8>) -> String {
        String(decoding: bytes, as: UTF8.self)
    }
}

extension [HeaderField] {
    /// The value of a field that is allowed once; nil without one, or when several differ.
    func onlyValue(of name: String) -> String? {
        guard let first = firstIndex(where: { $0.isNamed(name) }) else { return nil }
        let value = self[first].value
        let differs = self[(first + 1)...].contains {
            $0.isNamed(name) && !$0.value.utf8.elementsEqual(value.utf8)
        }
        return differs ? nil : value
    }

    /// The field lines of that name as one value (RFC 9110 §5.3), or nil without any.
    func combinedValue(of name: String) -> String? {
        let values = values(of: name)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }
}

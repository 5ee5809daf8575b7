/// Validation of the request header fields that users set by flags or in a manifest.
extension HeaderField {
    /// The fields that users cannot set, in lower case, with the alternative, as in `the header
    /// 'range' …`.
    private static let ownership: [String: String] = {
        let framing = "belongs to the connection, which libcurl looks after"
        let condition = "is made from what the cache holds"
        return [
            "accept-encoding": "is 'identity', since images gain nothing from another",
            "connection": framing, "content-length": framing,
            "expect": framing,
            "host": "is made from the URL (another address can be given to a name)",
            "if-match": condition, "if-modified-since": condition, "if-none-match": condition,
            "if-range": condition, "if-unmodified-since": condition, "keep-alive": framing,
            "proxy-authorization": "is made from the proxy's URL", "proxy-connection": framing,
            "range": condition, "te": framing, "trailer": framing, "transfer-encoding": framing,
            "upgrade": framing,
        ]
    }()

    /// Parses a field in the form of `curl --header`: `Name: value`. `Name:` removes a field that
    /// would otherwise be sent, and is represented by an empty ``value``.
    ///
    /// - Throws: For a name that is not a token (RFC 9110 §5.6.2), for CR, LF, NUL and other
    ///   control characters except tabs, and for fields derived from the URL, the cache or the
    ///   connection. The error repeats nothing of the value, which may be secret.
    package init(
        requestLine line: some StringProtocol, form: String = "'Name: value'"
    ) throws(UserError) {
        let bytes = Array(line.utf8)
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else {
            throw UserError(.usage, "a header is written \(form)")
        }
        let name = bytes[..<colon]
        guard !name.isEmpty, name.allSatisfy(\.isTokenByte) else {
            throw UserError(
                .usage, "a header's name is not made of letters, digits and !#$%&'*+-.^_`|~")
        }
        let isBlank: (UInt8) -> Bool = { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
        var value = bytes[(colon + 1)...].drop(while: isBlank)
        while let last = value.last, isBlank(last) { value.removeLast() }
        guard !value.contains(where: { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F }) else {
            throw UserError(.usage, "a header's value has a control character")
        }
        self.init(
            name: String(decoding: name, as: UTF8.self),
            value: String(decoding: value, as: UTF8.self))
        let lowercased = self.name.lowercased()
        if let owner = HeaderField.ownership[lowercased] {
            throw UserError(.usage, "the header '\(lowercased)' \(owner)")
        }
    }
}

extension [HeaderField] {
    /// These fields, with `others` replacing fields of the same names.
    package func replaced(by others: [HeaderField]) -> [HeaderField] {
        guard !others.isEmpty else { return self }
        let names = Set(others.map { $0.name.lowercased() })
        return filter { !names.contains($0.name.lowercased()) } + others
    }
}

/// `Content-Encoding` (RFC 9110 §8.4).
enum ContentCoding {
    /// Whether a value of the field names any coding but `identity`, which changes nothing.
    static func isEncoded(_ value: String) -> Bool {
        !FieldSyntax.members(of: value).allSatisfy {
            FieldSyntax.text($0).lowercased() == "identity"
        }
    }
}

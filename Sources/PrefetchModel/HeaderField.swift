/// One header field of a response, as it came.
///
/// Names compare without regard to case (RFC 9110 §5.1). Values are the field's bytes read as
/// UTF-8, with the surrounding white space removed; bytes that are no UTF-8 become U+FFFD.
package struct HeaderField: Hashable, Sendable {
    package let name: String
    package let value: String

    package init(name: String, value: String) {
        self.name = name
        self.value = value
    }
}

extension [HeaderField] {
    /// The values of every field of that name, given in lower case, in the order in which they came.
    package func values(of name: String) -> [String] {
        filter { $0.name.utf8.count == name.utf8.count && $0.name.lowercased() == name }
            .map(\.value)
    }

    /// The first value of the field, whose name is given in lower case, or nil without one.
    package func first(_ name: String) -> String? {
        values(of: name).first
    }
}

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

    /// Whether the field has that name, given in lower case; allocates nothing.
    package func isNamed(_ name: String) -> Bool {
        guard self.name.utf8.count == name.utf8.count else { return false }
        return self.name.withBytes { bytes in
            name.withBytes { lowerCase in
                bytes.indices.allSatisfy {
                    bytes[$0] == lowerCase[$0]
                        || (0x41...0x5A).contains(bytes[$0]) && bytes[$0] | 0x20 == lowerCase[$0]
                }
            }
        }
    }
}

extension [HeaderField] {
    /// The values of every field of that name, given in lower case, in the order in which they came.
    package func values(of name: String) -> [String] {
        compactMap { $0.isNamed(name) ? $0.value : nil }
    }

    /// The first value of the field, whose name is given in lower case, or nil without one.
    package func first(_ name: String) -> String? {
        first { $0.isNamed(name) }?.value
    }
}

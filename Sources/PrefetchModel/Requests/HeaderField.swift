/// One header field of a response, unchanged.
///
/// Names are case-insensitive (RFC 9110 §5.1). Values are decoded as UTF-8 without surrounding
/// white space; invalid bytes become U+FFFD.
package struct HeaderField: Hashable, Sendable {
    package let name: String
    package let value: String

    package init(name: String, value: String) {
        self.name = name
        self.value = value
    }

    /// Whether the field has this lower-case name; does not allocate.
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
    package func values(of name: String) -> [String] {
        compactMap { $0.isNamed(name) ? $0.value : nil }
    }

    /// The first value of the field with this lower-case name, or nil.
    package func first(_ name: String) -> String? {
        first { $0.isNamed(name) }?.value
    }
}

/// A user's extended attribute of an image, stored with it in the cache.
///
/// Names are compared byte by byte, so two normalisation forms of `é` are two names. Values are
/// arbitrary bytes.
package struct EntryAttribute: Hashable, Sendable {
    /// 1…255 bytes of UTF-8 without control characters, not beginning with `prefetch.`.
    package let name: String
    /// At most 64 KiB.
    package let value: [UInt8]

    package static let maximumNameBytes = 255
    package static let maximumValueBytes = 64 << 10
    /// The prefix of the program's own attributes.
    package static let reservedPrefix = "prefetch."

    /// A reason to reject an attribute.
    package enum Problem: Error, CaseIterable, Sendable {
        case nameLength
        case nameControlCharacter
        case nameReserved
        case valueLength

        /// A one-line message that does not repeat the name or value.
        package var message: String {
            switch self {
            case .nameLength:
                "an attribute's name is not 1 to \(maximumNameBytes) bytes long"
            case .nameControlCharacter:
                "an attribute's name has a control character"
            case .nameReserved:
                "an attribute's name begins with '\(reservedPrefix)', which is reserved"
            case .valueLength:
                "an attribute's value is longer than \(maximumValueBytes) bytes"
            }
        }
    }

    /// Creates an attribute from user input.
    ///
    /// - Throws: The error of ``checkName(_:)``, or `valueLength`.
    package init(name: String, value: [UInt8]) throws(Problem) {
        try EntryAttribute.checkName(name)
        guard value.count <= EntryAttribute.maximumValueBytes else { throw .valueLength }
        self.name = name
        self.value = value
    }

    /// Creates an attribute read from the cache, including the program's own.
    package init(storedName: String, value: [UInt8]) {
        name = storedName
        self.value = value
    }

    /// Checks a name that a user gives.
    ///
    /// - Throws: `nameLength`; `nameControlCharacter` for U+0000…U+001F and U+007F…U+009F;
    ///   `nameReserved`.
    package static func checkName(_ name: String) throws(Problem) {
        let bytes = name.utf8
        guard (1...maximumNameBytes).contains(bytes.count) else { throw .nameLength }
        for scalar in name.unicodeScalars
        where scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value) {
            throw .nameControlCharacter
        }
        // Bytes, since `hasPrefix` does not match before a combining character.
        guard !bytes.starts(with: reservedPrefix.utf8) else { throw .nameReserved }
    }
}

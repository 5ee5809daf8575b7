/// An extended attribute that a user gives an image: data kept beside it in the cache.
///
/// Names are text and compare byte by byte, so that two ways of writing `é` are two names. Values
/// are any bytes.
package struct EntryAttribute: Hashable, Sendable {
    /// 1…255 bytes of UTF-8 without control characters that do not begin with `prefetch.`.
    package let name: String
    /// At most 64 KiB.
    package let value: [UInt8]

    package static let maximumNameBytes = 255
    package static let maximumValueBytes = 64 << 10
    /// What the names of the program's own attributes begin with.
    package static let reservedPrefix = "prefetch."

    /// Why something cannot be an attribute.
    package enum Problem: Error, CaseIterable, Sendable {
        case nameLength
        case nameControlCharacter
        case nameReserved
        case valueLength

        /// One line that does not repeat the name or value.
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

    /// - Throws: what ``checkName(_:)`` throws, or `valueLength`.
    package init(name: String, value: [UInt8]) throws(Problem) {
        try EntryAttribute.checkName(name)
        guard value.count <= EntryAttribute.maximumValueBytes else { throw .valueLength }
        self.name = name
        self.value = value
    }

    /// An attribute as the cache holds it, the program's own included.
    package init(storedName: String, value: [UInt8]) {
        name = storedName
        self.value = value
    }

    /// The check of every name that a user gives.
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
        // By bytes: `hasPrefix` would not see it before a combining character.
        guard !bytes.starts(with: reservedPrefix.utf8) else { throw .nameReserved }
    }
}

/// A user's extended attribute of an image, stored with it in the cache.
///
/// Names are compared byte by byte, so two normalisation forms of `é` are two names. Values are
/// arbitrary bytes.
package struct EntryAttribute: Hashable, Sendable {
    /// 1…255 bytes of UTF-8 without control characters, not beginning with `prefetch.`.
    package let name: String
    package let value: [UInt8]

    package static let maximumNameBytes = 255
    package static let maximumValueBytes = 64 << 10
    package static let reservedPrefix = "prefetch."

    /// - Throws: An error that repeats neither name nor value: for a name that
    ///   ``checkName(_:)`` refuses, or a long value.
    package init(name: String, value: [UInt8]) throws(UserError) {
        try EntryAttribute.checkName(name)
        guard value.count <= EntryAttribute.maximumValueBytes else {
            throw UserError(
                .usage,
                "an attribute's value is longer than \(EntryAttribute.maximumValueBytes) bytes")
        }
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
    /// - Throws: For another length than 1…255, a control character (U+0000…U+001F,
    ///   U+007F…U+009F), or the reserved prefix.
    package static func checkName(_ name: String) throws(UserError) {
        func mistake(_ text: String) -> UserError {
            UserError(.usage, "an attribute's name \(text)")
        }
        let bytes = name.utf8
        guard (1...maximumNameBytes).contains(bytes.count) else {
            throw mistake("is not 1 to \(maximumNameBytes) bytes long")
        }
        for scalar in name.unicodeScalars
        where scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value) {
            throw mistake("has a control character")
        }
        // Bytes, since `hasPrefix` does not match before a combining character.
        guard !bytes.starts(with: reservedPrefix.utf8) else {
            throw mistake("begins with '\(reservedPrefix)', which is reserved")
        }
    }
}

/// A preview to show before an image is loaded, with the EXIF orientation applied.
package struct Placeholder: Hashable, Sendable {
    /// 5…25 bytes, in the format of <https://evanw.github.io/thumbhash/>.
    package let thumbHash: [UInt8]
    /// The dominant colour; nil for a completely transparent picture.
    package let colour: RGBColor?

    package init(thumbHash: [UInt8], colour: RGBColor?) {
        self.thumbHash = thumbHash
        self.colour = colour
    }

    /// Base64 with padding (RFC 4648 §4), the form that ThumbHash viewers expect.
    package var thumbHashText: String { String(decoding: thumbHash.base64, as: UTF8.self) }

    package static func thumbHash(base64 text: String) -> [UInt8]? {
        guard text.utf8.count <= 36,
            let hash = Array(text.utf8).withUnsafeBytes({ [UInt8](base64: $0) }),
            (5...25).contains(hash.count), hash.base64.elementsEqual(text.utf8)
        else { return nil }
        return hash
    }

    /// `#rrggbb`.
    package var colourText: String? { colour.map { "#\($0)" } }
}

extension Placeholder {
    package var attributes: [EntryAttribute] {
        let texts = [
            (EntryAttribute.Own.colour, colourText), (EntryAttribute.Own.thumbHash, thumbHashText),
        ]
        return texts.compactMap { name, text in
            text.map { EntryAttribute(storedName: name, value: Array($0.utf8)) }
        }
    }
}

extension [EntryAttribute] {
    /// Inserts a placeholder's attributes into users' attributes, ordered by name.
    package mutating func insert(_ placeholder: Placeholder) {
        // User names never have the reserved prefix.
        let place = firstIndex {
            !$0.name.utf8.lexicographicallyPrecedes(EntryAttribute.reservedPrefix.utf8)
        }
        insert(contentsOf: placeholder.attributes, at: place ?? endIndex)
    }
}

extension EntryAttribute {
    /// The program's own attributes, with names that users cannot set.
    package enum Own {
        package static let thumbHash = reservedPrefix + "thumbhash"
        package static let colour = reservedPrefix + "color"
    }
}

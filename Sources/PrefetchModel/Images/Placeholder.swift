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
    package var thumbHashText: String {
        let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var text: [UInt8] = []
        for start in stride(from: 0, to: thumbHash.count, by: 3) {
            let group = thumbHash[start..<min(start + 3, thumbHash.count)]
            let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
            for place in 0..<4 {
                text.append(
                    place <= group.count
                        ? digits[bits >> (18 - 6 * place) & 63] : UInt8(ascii: "="))
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// `#rrggbb`.
    package var colourText: String? { colour.map { "#\($0)" } }
}

extension Placeholder {
    /// The placeholder's attributes, ordered by name.
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
    /// The program's own attributes, whose names users cannot set.
    package enum Own {
        /// ``Placeholder/thumbHashText``.
        package static let thumbHash = reservedPrefix + "thumbhash"
        /// ``Placeholder/colourText``.
        package static let colour = reservedPrefix + "color"
    }
}

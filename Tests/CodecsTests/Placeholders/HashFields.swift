/// The fields of a ThumbHash, as described by its format.
struct HashFields: CustomStringConvertible {
    struct Field {
        let name: String
        let value: Int
        /// False for fields of a channel with zero scale, which are meaningless.
        var isShown = true
    }

    private(set) var fields: [Field] = []
    let bytes: [UInt8]
    /// Lightness, 0…63.
    var lightness: Int { fields[0].value }
    var hasAlpha: Bool { bytes[2] & 0x80 != 0 }
    var isLandscape: Bool { bytes[4] & 0x80 != 0 }
    /// The number of cosine terms of the shorter side.
    var shorterTerms: Int { Int(bytes[3] & 7) }

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        let head = Int(bytes[0]) | Int(bytes[1]) << 8 | Int(bytes[2]) << 16
        let tail = Int(bytes[3]) | Int(bytes[4]) << 8
        let scales = [head >> 18 & 31, tail >> 3 & 63, tail >> 9 & 63]
        fields = [("L", head & 63), ("P", head >> 6 & 63), ("Q", head >> 12 & 63)].map {
            Field(name: $0.0, value: $0.1)
        }
        fields += zip(["L scale", "P scale", "Q scale"], scales).map {
            Field(name: $0.0, value: $0.1)
        }
        var alphaScale = 0
        if hasAlpha {
            alphaScale = Int(bytes[5] >> 4)
            fields.append(Field(name: "A", value: Int(bytes[5] & 15)))
            fields.append(Field(name: "A scale", value: alphaScale))
        }
        let longer = hasAlpha ? 5 : 7
        let (nx, ny) =
            isLandscape
            ? (longer, max(3, shorterTerms)) : (max(3, shorterTerms), longer)
        var place = hasAlpha ? 12 : 10
        func add(_ name: String, _ nx: Int, _ ny: Int, isShown: Bool) {
            for cy in 0..<ny {
                for cx in 0..<nx where cx + cy > 0 && cx * ny < nx * (ny - cy) {
                    let value = Int(bytes[place / 2] >> (place % 2 == 0 ? 0 : 4) & 15)
                    fields.append(
                        Field(name: "\(name) \(cx) \(cy)", value: value, isShown: isShown))
                    place += 1
                }
            }
        }
        add("L", nx, ny, isShown: scales[0] > 0)
        add("P", 3, 3, isShown: scales[1] > 0)
        add("Q", 3, 3, isShown: scales[2] > 0)
        if hasAlpha { add("A", 5, 5, isShown: alphaScale > 0) }
    }

    var description: String { bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }

    /// The largest difference of a shown field; nil if the kinds or proportions differ.
    func distance(to other: HashFields) -> Int? {
        guard bytes.count == other.bytes.count, hasAlpha == other.hasAlpha,
            isLandscape == other.isLandscape, shorterTerms == other.shorterTerms
        else { return nil }
        return zip(fields, other.fields).map { left, right in
            left.isShown && right.isShown ? abs(left.value - right.value) : 0
        }.max()
    }
}

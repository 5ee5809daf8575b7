/// The associations of items with properties by the boxes `ipma` of a box `iprp` (ISO/IEC 23008-12,
/// 9.3.1).
///
/// No item may be in two entries. If one is, its first entry counts.
struct ItemAssociations {
    struct Entry {
        let item: Int
        /// The version and flags of its box.
        let kind: Int
        let bytes: Range<Int>
    }

    private(set) var entries: [Entry] = []
    /// The versions and flags of the boxes, in the order of the file.
    private(set) var kinds: [Int] = []
    /// Whether no box is cut, and no item left out: more than are recorded elsewhere.
    private(set) var isComplete = true
    private let source: UnsafeRawBufferPointer

    init(of properties: Box, in source: UnsafeRawBufferPointer) {
        self.source = source
        var items: Set<Int> = []
        var walk = BoxWalk(source, in: properties.payload)
        while let part = try? walk.box() {
            guard part.isA("ipma") else { continue }
            let isWhole = read(part, &items)
            isComplete = isComplete && isWhole
        }
    }

    /// Returns false for a box that is cut, or has too many items.
    private mutating func read(_ box: Box, _ items: inout Set<Int>) -> Bool {
        var fields = FieldReader(source, box.payload)
        guard let kind = fields.next(4), let count = fields.next(4) else { return false }
        kinds.append(kind)
        for _ in 0..<count {
            let start = fields.offset
            guard let item = fields.next(kind >> 24 == 0 ? 2 : 4),
                let associations = fields.next(1),
                fields.skip(associations * ItemAssociations.bytes(kind)),
                entries.count <= CodecLimits.maximumPieces
            else { return false }
            guard items.insert(item).inserted else { continue }
            entries.append(Entry(item: item, kind: kind, bytes: start..<fields.offset))
        }
        return true
    }

    /// The bytes of an association.
    private static func bytes(_ kind: Int) -> Int { kind & 1 == 0 ? 1 : 2 }

    /// Returns the index, from 0, of each property of an entry. The highest bit at `place` says
    /// whether it is essential.
    func properties(of entry: Entry) -> [(index: Int, place: Int)] {
        let bytes = ItemAssociations.bytes(entry.kind)
        let start = entry.bytes.lowerBound + (entry.kind >> 24 == 0 ? 3 : 5)
        return stride(from: start, to: entry.bytes.upperBound, by: bytes).compactMap { place in
            source.number(at: place, bytes: bytes).map {
                ($0 & (bytes == 1 ? 0x7F : 0x7FFF) - 1, place)
            }
        }
    }
}

/// Reads big-endian numbers one after the other.
struct FieldReader {
    private let source: UnsafeRawBufferPointer
    private var rest: Range<Int>

    init(_ source: UnsafeRawBufferPointer, _ range: Range<Int>) {
        self.source = source
        rest = range
    }

    /// Returns false beyond the end.
    mutating func skip(_ bytes: Int) -> Bool {
        guard bytes <= rest.count else { return false }
        rest = rest.dropFirst(bytes)
        return true
    }

    /// Returns the next number of 0…8 bytes; nil beyond the end.
    mutating func next(_ bytes: Int) -> Int? {
        guard bytes <= rest.count else { return nil }
        guard let value = source.number(at: rest.lowerBound, bytes: bytes) else { return nil }
        rest = rest.dropFirst(bytes)
        return value
    }
}

// MARK: - Items

extension FieldReader {
    /// Returns the main item by the box `pitm` (ISO/IEC 14496-12, 8.11.4).
    static func mainItem(in box: Box, of source: UnsafeRawBufferPointer) -> Int? {
        var fields = FieldReader(source, box.payload)
        let version = fields.next(4).map { $0 >> 24 } ?? 0
        return fields.next(version == 0 ? 2 : 4)
    }

    /// Returns the items of a box `ipma` with the bytes of each; nil if it is cut.
    static func associations(
        in box: Box, of source: UnsafeRawBufferPointer
    ) -> [(item: Int, bytes: Range<Int>)]? {
        var fields = FieldReader(source, box.payload)
        guard let flags = fields.next(4), let count = fields.next(4) else { return nil }
        let (itemBytes, bytes) = (flags >> 24 == 0 ? 2 : 4, flags & 1 == 0 ? 1 : 2)
        var entries: [(item: Int, bytes: Range<Int>)] = []
        for _ in 0..<count {
            let start = fields.rest.lowerBound
            guard let item = fields.next(itemBytes), let associations = fields.next(1),
                fields.skip(associations * bytes)
            else { return nil }
            entries.append((item, start..<fields.rest.lowerBound))
        }
        return entries
    }

    /// Calls `body` with each item and the index, from 0, of each of its properties by a box `ipma`
    /// (ISO/IEC 23008-12, 9.3.1). The highest bit at `place` says whether it is essential.
    static func forEachAssociation<Failure: Error>(
        in box: Box, of source: UnsafeRawBufferPointer,
        _ body: (_ item: Int, _ property: Int, _ place: Int) throws(Failure) -> Void
    ) throws(Failure) {
        var fields = FieldReader(source, box.payload)
        guard let flags = fields.next(4), let count = fields.next(4) else { return }
        let bytes = flags & 1 == 0 ? 1 : 2
        for _ in 0..<count {
            guard let item = fields.next(flags >> 24 == 0 ? 2 : 4),
                let associations = fields.next(1)
            else { return }
            for _ in 0..<associations {
                let place = fields.rest.lowerBound
                guard let value = fields.next(bytes) else { return }
                try body(item, value & (bytes == 1 ? 0x7F : 0x7FFF) - 1, place)
            }
        }
    }
}

/// Reads big-endian numbers one after the other.
struct FieldReader {
    private let source: UnsafeRawBufferPointer
    private var rest: Range<Int>

    init(_ source: UnsafeRawBufferPointer, _ range: Range<Int>) {
        self.source = source
        rest = range
    }

    /// The place of the next number.
    var offset: Int { rest.lowerBound }

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

    /// Returns the brightest light of the content in cd/m² by the box `clli` (ISO/IEC 14496-12,
    /// 12.1.6); 0 for unknown.
    static func peak(in box: Box, of source: UnsafeRawBufferPointer) -> Int? {
        var fields = FieldReader(source, box.payload)
        return fields.next(2)
    }
}

internal import Glibc

/// The bytes of an encoded image, allocated by C and freed with the last reference.
///
/// `@unchecked Sendable` holds because the bytes are not written after their creator has handed
/// them over, and only `deinit` frees them.
package final class ImageBytes: @unchecked Sendable {
    private let start: UnsafeMutableRawPointer
    package let count: Int

    /// Takes ownership of memory that `free` releases.
    init(owning start: UnsafeMutableRawPointer, count: Int) {
        self.start = start
        self.count = count
    }

    /// Concatenates copies of the pieces; nil if memory runs out.
    init?(joining pieces: [ImagePiece], of source: UnsafeRawBufferPointer) {
        let total = pieces.reduce(0) { $0 + $1.count }
        guard let start = malloc(max(total, 1)) else { return nil }
        var offset = 0
        for piece in pieces {
            let target = UnsafeMutableRawBufferPointer(start: start + offset, count: piece.count)
            switch piece {
            case .source(let range): target.copyMemory(from: .init(rebasing: source[range]))
            case .made(let bytes): target.copyBytes(from: bytes)
            }
            offset += piece.count
        }
        self.start = start
        count = total
    }

    /// Allocates memory for ``fill(_:)``; nil if memory runs out.
    init?(uninitialised count: Int) {
        guard let start = malloc(max(count, 1)) else { return nil }
        self.start = start
        self.count = count
    }

    deinit { free(start) }

    /// - Precondition: called once, by the creator, before the object is shared.
    func fill(_ body: (UnsafeMutableRawBufferPointer) -> Void) {
        body(UnsafeMutableRawBufferPointer(start: start, count: count))
    }

    /// - Precondition: the pointer is not used after `body` returns.
    package func withUnsafeBytes<Result: ~Copyable, Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(UnsafeRawBufferPointer(start: start, count: count))
    }
}

/// A piece of a file that is assembled from its source.
enum ImagePiece {
    case source(Range<Int>)
    case made([UInt8])

    var count: Int {
        switch self {
        case .source(let range): range.count
        case .made(let bytes): bytes.count
        }
    }
}

extension [ImagePiece] {
    /// Appends a range, merged with the last piece where the two are adjacent.
    mutating func append(source range: Range<Int>) {
        if case .source(let last)? = self.last, last.upperBound == range.lowerBound {
            self[count - 1] = .source(last.lowerBound..<range.upperBound)
        } else if !range.isEmpty {
            append(.source(range))
        }
    }

    var byteCount: Int { reduce(0) { $0 + $1.count } }

    func bytes(of source: UnsafeRawBufferPointer) -> [UInt8] {
        flatMap { piece -> [UInt8] in
            switch piece {
            case .source(let range): [UInt8](source[range])
            case .made(let bytes): bytes
            }
        }
    }

    /// Whether the pieces are the whole source, unchanged.
    func isWhole(_ source: UnsafeRawBufferPointer) -> Bool {
        if count == 1, case .source(let range) = self[0] { return range == 0..<source.count }
        return false
    }
}

extension UnsafeRawBufferPointer {
    func bigEndian16(at offset: Int) -> Int { Int(self[offset]) << 8 | Int(self[offset + 1]) }

    func bigEndian32(at offset: Int) -> Int {
        bigEndian16(at: offset) << 16 | bigEndian16(at: offset + 2)
    }

    /// Whether the bytes at `offset` equal the text; false if they would extend beyond the end.
    func holds(_ text: StaticString, at offset: Int) -> Bool {
        guard offset >= 0, count - offset >= text.utf8CodeUnitCount else { return false }
        for index in 0..<text.utf8CodeUnitCount
        where self[offset + index] != text.utf8Start[index] {
            return false
        }
        return true
    }
}

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

    /// Copies bytes; nil if memory is short.
    package init?(copying bytes: UnsafeRawBufferPointer) {
        guard let start = malloc(max(bytes.count, 1)) else { return nil }
        if let base = bytes.baseAddress { memcpy(start, base, bytes.count) }
        self.start = start
        count = bytes.count
    }

    /// Concatenates copies of the pieces. `purpose` continues the error `no memory for`.
    init(
        joining pieces: [ImagePiece], of source: UnsafeRawBufferPointer,
        for purpose: String = "the output"
    ) throws(CodecError) {
        let total = pieces.byteCount
        guard let start = malloc(max(total, 1)) else {
            throw .outOfMemory("no memory for \(purpose)")
        }
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

    deinit { free(start) }

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

extension [ImagePiece] {
    /// A range of the source without these parts, which are in order and do not overlap. Each is
    /// replaced by bytes, if there are any.
    init(
        source range: Range<Int>, without parts: [Range<Int>],
        _ replacement: (Int) -> [UInt8] = { _ in [] }
    ) {
        self = []
        var offset = range.lowerBound
        for (index, part) in parts.enumerated() {
            append(source: offset..<part.lowerBound)
            let bytes = replacement(index)
            if !bytes.isEmpty { append(.made(bytes)) }
            offset = part.upperBound
        }
        append(source: offset..<range.upperBound)
    }
}

extension FixedWidthInteger {
    var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian) { [UInt8]($0) } }

    var littleEndianBytes: [UInt8] { withUnsafeBytes(of: littleEndian) { [UInt8]($0) } }
}

/// Calls a C function that writes a message of at most this many bytes.
func withMessage<Status>(
    _ bytes: Int32, _ body: (UnsafeMutablePointer<CChar>) -> Status
) -> (status: Status, text: String) {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(bytes)) { message in
        message.initialize(repeating: 0)
        guard let start = message.baseAddress else { preconditionFailure("no message") }
        let status = body(start)
        return (status, String(cString: start))
    }
}

extension UnsafeRawBufferPointer {
    /// The bytes as C functions take them.
    ///
    /// - Throws: `notAnImage` for none.
    var start: UnsafePointer<UInt8> {
        get throws(CodecError) {
            guard let start = baseAddress?.assumingMemoryBound(to: UInt8.self) else {
                throw .notAnImage("no bytes")
            }
            return start
        }
    }

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

import CZlib
import PrefetchModel

/// How the content codings of a response are undone (RFC 9110 §8.4).
enum ContentCodings: Hashable {
    /// The body stays as it arrives: it has no coding, or only unknown ones. Uploaders store text
    /// such as `UTF-8` and `aws-chunked` as the coding of their objects.
    case none
    /// One coding that zlib undoes, here: libcurl refuses the bytes that servers add to it.
    case zlib
    /// The same beside unknown ones: a body that does not begin like it stays as it is.
    case perhapsZlib
    /// Others, that libcurl undoes if it is built with them.
    case byLibcurl

    private static let known: Set = ["gzip", "x-gzip", "deflate", "br", "zstd"]
    private static let ofZlib: Set = ["gzip", "x-gzip", "deflate"]
    /// Names for the absence of a coding.
    private static let empty: Set = ["", "identity", "none"]

    /// Takes the values of all fields `Content-Encoding`, and leaves out unknown names.
    init(_ values: [String]) {
        let names = values.flatMap { $0.lowercased().split(separator: ",") }
            .map { String($0.filter { !$0.isWhitespace }) }
            .filter { !ContentCodings.empty.contains($0) }
        let known = names.filter(ContentCodings.known.contains)
        if known.count == 1, ContentCodings.ofZlib.contains(known[0]) {
            self = names.count == 1 ? .zlib : .perhapsZlib
        } else {
            // libcurl fails for a name that it does not know.
            self = known.isEmpty || known.count < names.count ? .none : .byLibcurl
        }
    }
}

/// Undoes the codings `gzip` and `deflate` of a body, piece by piece, through zlib's `inflate`.
///
/// - Members of gzip that follow one another are joined, as gzip(1) does, and zero bytes behind the
///   last one are ignored. Other bytes there are an error.
/// - `deflate` may lack the head of zlib's format (RFC 9110 §8.4.1.2).
/// - The format is recognised by the first byte: some servers confuse the two names.
///
/// Not thread-safe.
final class ContentDecoder {
    private enum Position {
        case start, inside
        /// Behind a member, or a whole body.
        case between
        /// In zero bytes behind the last member.
        case padding
        /// In a body that has no coding.
        case plain
    }

    /// On the heap, since zlib's state points back to the stream.
    private let stream: UnsafeMutablePointer<z_stream>
    private let output: UnsafeMutableRawBufferPointer
    private var position = Position.start
    private var isGzip = false
    /// Decoded bytes that are not taken yet.
    private var pending = 0
    /// Whether zlib may have more output for the bytes that it took.
    private var hasMore = false
    /// The bytes of the present piece that were decoded. After a pause libcurl offers them again.
    private var consumed = 0

    private static let outputBytes = 64 << 10
    /// zlib's largest window; 16 selects gzip's framing, a negative number none (`inflateInit2`).
    private static let windowBits: Int32 = 15

    /// Whether a body with another beginning is damaged, and not plain.
    private let isCertain: Bool

    init(isCertain: Bool = true) {
        self.isCertain = isCertain
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        output = .allocate(byteCount: ContentDecoder.outputBytes, alignment: 16)
    }

    deinit {
        // Harmless before the first byte.
        inflateEnd(stream)
        stream.deallocate()
        output.deallocate()
    }

    /// Whether the body may end here.
    var isAtEnd: Bool { position != .inside }

    /// Decodes a piece, and gives its parts to `take` until that refuses one, which returns false.
    /// The same part is given again, when the piece is offered again.
    ///
    /// - Returns: whether the whole piece was taken.
    /// - Throws: the reason why it cannot be decoded.
    func decode(
        _ piece: UnsafeRawBufferPointer, take: (UnsafeRawBufferPointer) -> Bool
    ) throws(Failure) -> Bool {
        if position == .start, !isCertain, let first = piece.first,
            first != 0x1F, !ContentDecoder.beginsZlib(first)
        {
            position = .plain
        }
        guard position != .plain else { return take(piece) }
        while true {
            if pending > 0 {
                guard take(UnsafeRawBufferPointer(rebasing: output[..<pending])) else {
                    return false
                }
                pending = 0
            }
            // A paused piece may be offered again in several.
            guard consumed < piece.count || hasMore else { break }
            try inflate(UnsafeRawBufferPointer(rebasing: piece.dropFirst(consumed)))
        }
        consumed -= piece.count
        return true
    }

    /// The head of zlib's format: the method 8, and a window of at most 32 KiB.
    private static func beginsZlib(_ first: UInt8) -> Bool { first & 0x0F == 8 && first >> 4 <= 7 }

    /// Decodes with one call of zlib.
    private func inflate(_ input: UnsafeRawBufferPointer) throws(Failure) {
        if try skip(input) { return }
        stream.pointee.next_in = UnsafeMutablePointer(
            mutating: input.baseAddress?.assumingMemoryBound(to: UInt8.self))
        stream.pointee.avail_in = UInt32(input.count)
        stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_out = UInt32(output.count)
        let status = CZlib.inflate(stream, Z_NO_FLUSH)
        consumed += input.count - Int(stream.pointee.avail_in)
        pending = output.count - Int(stream.pointee.avail_out)
        hasMore = pending == output.count
        switch status {
        case Z_OK, Z_BUF_ERROR: break
        case Z_STREAM_END: (position, hasMore) = (.between, false)
        default: throw Failure(.interrupted, "the compressed body is damaged")
        }
    }

    /// Prepares zlib for the next byte, or passes the bytes behind the end.
    ///
    /// - Returns: whether the bytes were passed.
    private func skip(_ input: UnsafeRawBufferPointer) throws(Failure) -> Bool {
        guard position != .inside, let first = input.first else { return false }
        switch position {
        case .start:
            isGzip = first == 0x1F
            let hasHead = ContentDecoder.beginsZlib(first)
            let bits = ContentDecoder.windowBits
            let status = inflateInit2_(
                stream, isGzip ? bits + 16 : hasHead ? bits : -bits, ZLIB_VERSION,
                Int32(MemoryLayout<z_stream>.size))
            guard status == Z_OK else { throw Failure(.internal, "zlib cannot start") }
            position = .inside
            return false
        case .between where isGzip && first == 0x1F:
            guard inflateReset(stream) == Z_OK else {
                throw Failure(.internal, "zlib cannot start again")
            }
            position = .inside
            return false
        default:
            guard input.allSatisfy({ $0 == 0 }) else {
                throw Failure(
                    .interrupted, "there is data after the end of the compressed body")
            }
            position = .padding
            consumed += input.count
            return true
        }
    }
}

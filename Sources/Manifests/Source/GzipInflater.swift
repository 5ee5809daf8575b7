import CZlib

/// Decompresses gzip (RFC 1952) with any number of members, and zeros behind them, through
/// zlib's `inflate`.
///
/// Not thread-safe.
final class GzipInflater {
    /// The name of the source, for errors.
    private let name: String
    /// On the heap, since zlib's state points back to the stream and refuses one that has moved.
    private let stream: UnsafeMutablePointer<z_stream>
    private var membersEnded = 0
    /// Whether the last byte read ended a member, so the data may end here.
    private(set) var isBetweenMembers = false
    /// Whether another call may produce output or throw without more input: the last call filled
    /// its destination, or found damage after good bytes.
    private(set) var hasMore = false

    /// A failure after good bytes, thrown by the next call.
    private var pendingFailure: ManifestError?

    /// 15 is zlib's largest window, 16 selects gzip's framing (zlib manual, `inflateInit2`).
    private static let gzipWindowBits: Int32 = 15 + 16

    init(name: String) throws(ManifestError) {
        self.name = name
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        let status = inflateInit2_(
            stream, GzipInflater.gzipWindowBits, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
        guard status == Z_OK else { throw failure(status, "zlib cannot start") }
    }

    deinit {
        // Harmless after a failed initialiser.
        inflateEnd(stream)
        stream.deallocate()
    }

    /// Decompresses with one call of zlib.
    ///
    /// - Returns: the counts of bytes taken from `input` and written to `destination`; both are
    ///   zero if more input is needed.
    /// - Throws: ``ManifestError`` if the data is damaged, or other data follows the first member.
    func inflate(
        _ input: UnsafeMutableRawBufferPointer, into destination: UnsafeMutableRawBufferPointer
    ) throws(ManifestError) -> (consumed: Int, produced: Int) {
        if let pendingFailure { throw pendingFailure }
        if isBetweenMembers {
            // Tapes and some tools fill blocks up; gzip(1) ignores that, too.
            let padding = input.prefix { $0 == 0 }.count
            guard padding == 0, !input.isEmpty else { return (padding, 0) }
            guard inflateReset(stream) == Z_OK else {
                throw failure(Z_STREAM_ERROR, "zlib cannot start again")
            }
            isBetweenMembers = false
        }
        let offered = min(input.count, Int(UInt32.max))
        let room = min(destination.count, Int(UInt32.max))
        stream.pointee.next_in = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_in = UInt32(offered)
        stream.pointee.next_out = destination.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_out = UInt32(room)
        let status = CZlib.inflate(stream, Z_NO_FLUSH)
        let consumed = offered - Int(stream.pointee.avail_in)
        let produced = room - Int(stream.pointee.avail_out)
        hasMore = produced == room
        switch status {
        case Z_OK, Z_BUF_ERROR:
            break
        case Z_STREAM_END:
            isBetweenMembers = true
            hasMore = false
            membersEnded += 1
        default:
            let damage = damage(status)
            guard produced > 0 else { throw damage }
            pendingFailure = damage
            hasMore = true
        }
        return (consumed, produced)
    }

    /// The failure if the data ends here; nil if it may.
    var failureAtEnd: ManifestError? {
        guard !isBetweenMembers else { return nil }
        return isAtTrailingBytes
            ? trailingBytes : failure(Z_BUF_ERROR, "the gzip data ends too early")
    }

    private func damage(_ status: Int32) -> ManifestError {
        if isAtTrailingBytes { return trailingBytes }
        let detail = stream.pointee.msg.map { " (\(String(cString: $0)))" } ?? ""
        return failure(status, "the gzip data is damaged\(detail)")
    }

    private func failure(_ status: Int32, _ message: String) -> ManifestError {
        ManifestError(path: name, operation: .inflate, code: status, message: message)
    }

    /// Whether other data than a gzip member follows a complete member: its two-byte signature is
    /// missing.
    private var isAtTrailingBytes: Bool {
        membersEnded > 0 && stream.pointee.total_in <= 2 && stream.pointee.total_out == 0
    }

    private var trailingBytes: ManifestError {
        failure(Z_DATA_ERROR, "data that is not gzip follows the gzip data")
    }
}

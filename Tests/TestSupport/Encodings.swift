import CZlib

/// Content codings (RFC 9110 §8.4.1) of bytes that a test's origin sends.
package enum Encodings {
    package enum Format: Int32, Sendable {
        /// zlib's number for its own format, which HTTP calls `deflate`.
        case deflate = 15
        /// 16 more for gzip's.
        case gzip = 31
        /// Negative for neither's frame, as some servers send under the name `deflate`.
        case rawDeflate = -15
    }

    package static func encoded(_ bytes: [UInt8], _ format: Format) -> [UInt8] {
        var stream = z_stream()
        let status = deflateInit2_(
            &stream, Z_BEST_COMPRESSION, Z_DEFLATED, format.rawValue, 9, Z_DEFAULT_STRATEGY,
            ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
        precondition(status == Z_OK, "zlib refused to begin")
        defer { deflateEnd(&stream) }
        var input = bytes
        var output = [UInt8](
            repeating: 0, count: Int(deflateBound(&stream, uLong(bytes.count))) + 64)
        let count = input.withUnsafeMutableBufferPointer { input in
            output.withUnsafeMutableBufferPointer { output in
                stream.next_in = input.baseAddress
                stream.avail_in = uInt(input.count)
                stream.next_out = output.baseAddress
                stream.avail_out = uInt(output.count)
                let status = deflate(&stream, Z_FINISH)
                precondition(status == Z_STREAM_END, "zlib refused to finish")
                return Int(stream.total_out)
            }
        }
        return Array(output.prefix(count))
    }

    /// What begins like a picture, so that no client stops at its beginning: 50 MB of nothing.
    private static let emptiness: [UInt8] =
        Fixtures.pngDeclaring(width: 100, height: 100).prefix(33)
        + [UInt8](repeating: 0, count: 50_000_000)

    /// The 50 MB in about 48 kB.
    package static let bomb = encoded(emptiness, .gzip)
    /// The same under the other name.
    package static let deflateBomb = encoded(emptiness, .deflate)
    /// The same encoded once more, in less than a kilobyte.
    package static let stackedBomb = encoded(bomb, .gzip)

    /// Makes what takes a second or so to make, which an origin's event loop must not wait for.
    static func prepare() {
        _ = (bomb, deflateBomb, stackedBomb)
    }
}

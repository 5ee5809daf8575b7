import CZlib

/// Content codings (RFC 9110 §8.4.1) for responses of test origins.
package enum Encodings {
    package enum Format: Int32, Sendable {
        /// zlib's value for its own format, which HTTP calls `deflate`.
        case deflate = 15
        /// zlib adds 16 for gzip.
        case gzip = 31
        /// A negative value for raw data, which some servers send as `deflate`.
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

    /// 50 MB of zeros after a valid image header, since a client may stop at the signature.
    private static let emptiness: [UInt8] =
        Fixtures.pngDeclaring(width: 100, height: 100).prefix(33)
        + [UInt8](repeating: 0, count: 50_000_000)

    /// The 50 MB compressed to about 48 kB.
    package static let bomb = encoded(emptiness, .gzip)
    /// The 50 MB in `deflate` coding.
    package static let deflateBomb = encoded(emptiness, .deflate)
    /// The 50 MB encoded twice, in less than a kilobyte.
    package static let stackedBomb = encoded(bomb, .gzip)

    /// Initialises the bombs, which takes about a second and must not happen on an origin's event
    /// loop.
    static func prepare() {
        _ = (bomb, deflateBomb, stackedBomb)
    }
}

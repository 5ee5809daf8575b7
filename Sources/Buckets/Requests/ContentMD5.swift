import Glibc
import Hashing
import PrefetchModel
import Transfers

/// The field `Content-MD5` (RFC 1864), which buckets with Object Lock require.
enum ContentMD5 {
    /// The value for a body; nil if its file cannot be read.
    static func base64(of content: ServiceExchange.SentContent) -> String? {
        var stream = MD5Stream()
        switch content {
        case .bytes(let bytes): bytes.withUnsafeBytes { stream.update($0) }
        case .file(let file, let offset, let count):
            var buffer = [UInt8](repeating: 0, count: 256 << 10)
            var done = 0
            while done < count {
                let number = buffer.withUnsafeMutableBytes {
                    pread(file, $0.baseAddress, min($0.count, count - done), offset + done)
                }
                guard number > 0 else { return nil }
                buffer.withUnsafeBytes {
                    stream.update(UnsafeRawBufferPointer(rebasing: $0[..<number]))
                }
                done += number
            }
        }
        return String(decoding: stream.finish().base64, as: UTF8.self)
    }
}

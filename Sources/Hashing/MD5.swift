internal import CCrypto
import Glibc

/// MD5 (RFC 1321) of bytes that are sent, by which a service notices damage. Not for security.
package struct MD5Stream {
    private var context = MD5_CTX()

    package init() {
        guard MD5_Init(&context) == 1 else { preconditionFailure("libcrypto offers no MD5") }
    }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        guard MD5_Update(&context, bytes.baseAddress, bytes.count) == 1 else {
            preconditionFailure("libcrypto offers no MD5")
        }
    }

    /// The digest of all bytes. Called once.
    package mutating func finish() -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 16)
        guard MD5_Final(&digest, &context) == 1 else {
            preconditionFailure("libcrypto offers no MD5")
        }
        return digest
    }
}

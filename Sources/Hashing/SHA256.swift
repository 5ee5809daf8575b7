internal import CCrypto
import Glibc
package import PrefetchModel

/// SHA-256 (FIPS 180-4) by libcrypto, which uses the processor's SHA instructions.
///
/// Calls the algorithm's own functions. The first digest through `EVP_MD_fetch` initialises all of
/// libcrypto, which takes a millisecond (OpenSSL 3.0), a sixth of `prefetch get`.
package struct SHA256Hasher: ~Copyable {
    package init() {}

    package func digest(of bytes: UnsafeRawBufferPointer) -> ContentDigest {
        var stream = SHA256Stream()
        stream.update(bytes)
        return stream.finish()
    }

    package func digest(of text: String) -> ContentDigest {
        var text = text
        return text.withUTF8 { digest(of: UnsafeRawBufferPointer($0)) }
    }

    /// The digest of a part of an open file; nil if it cannot be read, or ends before `count`.
    package func digest(
        ofFile file: Int32, from offset: Int = 0, count: Int? = nil
    ) -> ContentDigest? {
        var stream = SHA256Stream()
        var buffer = [UInt8](repeating: 0, count: 256 << 10)
        var done = 0
        while done < count ?? .max {
            let number = buffer.withUnsafeMutableBytes {
                pread(file, $0.baseAddress, min($0.count, (count ?? .max) - done), offset + done)
            }
            if number == 0, count == nil { break }
            guard number > 0 else { return nil }
            buffer.withUnsafeBytes {
                stream.update(UnsafeRawBufferPointer(rebasing: $0[..<number]))
            }
            done += number
        }
        return stream.finish()
    }
}

/// SHA-256 of bytes that arrive piece by piece.
private struct SHA256Stream {
    private var context = SHA256_CTX()

    init() {
        guard SHA256_Init(&context) == 1 else { preconditionFailure("libcrypto offers no SHA-256") }
    }

    mutating func update(_ bytes: UnsafeRawBufferPointer) {
        guard SHA256_Update(&context, bytes.baseAddress, bytes.count) == 1 else {
            preconditionFailure("libcrypto offers no SHA-256")
        }
    }

    /// The digest of all bytes. Called once.
    mutating func finish() -> ContentDigest {
        withUnsafeTemporaryAllocation(byteCount: ContentDigest.byteCount, alignment: 8) { result in
            guard
                SHA256_Final(
                    result.baseAddress?.assumingMemoryBound(to: UInt8.self), &context) == 1,
                let digest = ContentDigest(bytes: UnsafeRawBufferPointer(result))
            else { preconditionFailure("libcrypto offers no SHA-256") }
            return digest
        }
    }
}

/// The first 128 bits of a cache key's SHA-256, which represent the key during a run.
///
/// Collisions cannot be constructed, so keys need no comparison.
package struct KeyFingerprint: Hashable, Sendable {
    package let high: UInt64
    package let low: UInt64

    package init(_ key: UnsafeRawBufferPointer, hasher: borrowing SHA256Hasher) {
        (high, low) = hasher.digest(of: key).leadingWords
    }

    package init(_ key: String, hasher: borrowing SHA256Hasher) {
        (high, low) = hasher.digest(of: key).leadingWords
    }

    package func hash(into hasher: inout Hasher) {
        // The bits are already evenly distributed.
        hasher.combine(high)
    }
}

import Hashing
import PrefetchModel

/// The hash that distributes domains and URLs over shards: the first eight bytes of the SHA-256, in
/// big-endian order, modulo the number of places.
///
/// The same on every machine and in every version, and easy to repeat in SQL or Python.
enum ShardHash {
    static func place(
        of bytes: UnsafeRawBufferPointer, among count: Int, hasher: borrowing SHA256Hasher
    ) -> Int {
        Int(hasher.digest(of: bytes).leadingWords.0 % UInt64(count))
    }
}

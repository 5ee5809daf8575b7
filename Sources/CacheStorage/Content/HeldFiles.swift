package import Hashing
package import PrefetchModel
import Threading

/// Content files kept open, for reading after a run has removed them. Thread-safe.
package final class HeldFiles: Sendable {
    private let directory: CacheDirectory
    private let files = Monitor([ContentDigest: FileDescriptor]())

    package init(of directory: CacheDirectory) {
        self.directory = directory
    }

    /// Opens the file of an image; does nothing if it is missing.
    package func hold(_ image: StoredImage) {
        guard let file = FileDescriptor.reading(image.relativePath, in: directory.handle) else {
            return
        }
        files.update { $0[image.digest] = file }
    }

    /// The bytes of a held file; nil if it is not held, or if its digest differs.
    package func bytes(of image: StoredImage, hasher: borrowing SHA256Hasher) -> [UInt8]? {
        guard let file = files.update({ $0[image.digest] }),
            image.size.bytes <= FileDescriptor.mostBytes
        else { return nil }
        let bytes = [UInt8](unsafeUninitializedCapacity: image.size.bytes) { buffer, count in
            count = FileDescriptor.fill(UnsafeMutableRawBufferPointer(buffer), from: file).count
        }
        let digest = bytes.withUnsafeBytes { hasher.digest(of: $0) }
        return digest == image.digest ? bytes : nil
    }
}

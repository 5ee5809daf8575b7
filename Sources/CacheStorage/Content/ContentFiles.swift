package import Hashing
package import PrefetchModel
internal import SQLite
import Threading

/// A content file that rows of a database name.
package struct ContentFile: Hashable, Sendable {
    package let digest: ContentDigest
    package let size: ByteCount
    package let format: ImageFormat

    /// No content file or database is larger: 1 TiB.
    package static let largestSize = 1 << 40

    /// Relative to the cache directory.
    package var relativePath: String { StoredImage.relativePath(of: digest, format) }
}

extension ContentFile {
    package init(of image: StoredImage) {
        self.init(digest: image.digest, size: image.size, format: image.format)
    }
}

/// The content files that a database names, by digest. Any thread may read them.
package final class ContentFiles: Sendable {
    private let connection: SerializedConnection
    private let path: String
    /// The number of files, by the database's own count.
    package let count: Int

    /// Reads the database of a cache that no process writes. It may be from anywhere.
    package convenience init(of directory: CacheDirectory) throws(StorageError) {
        let path = directory.path(of: CacheDirectory.databaseName)
        let connection = try StorageError.converting("reading", path) {
            try CacheDatabase.openForExamination(directory, path)
        }
        try self.init(connection, path: path)
    }

    init(_ connection: sending Connection, path: String) throws(StorageError) {
        self.path = path
        count = try StorageError.converting("reading", path) {
            try connection.first("SELECT files FROM usage") { try $0.count(0) } ?? 0
        }
        self.connection = SerializedConnection(connection)
    }

    /// The files after a digest, each once; fewer than the limit only at the end.
    package func next(
        after digest: ContentDigest?, limit: Int
    ) throws(StorageError) -> [ContentFile] {
        try StorageError.converting("reading", path) {
            try connection.access { connection in
                try connection.all(
                    """
                    SELECT sha256, max(bytes), max(format) FROM variant WHERE sha256 > ?1
                    GROUP BY sha256 ORDER BY sha256 LIMIT ?2
                    """, .blob(digest?.bytes ?? []), .integer(Int64(limit))
                ) { row in
                    let bytes = try row.count(1)
                    guard let format = ImageFormat(rawValue: try row.text(2)),
                        bytes <= ContentFile.largestSize
                    else { throw SQLiteError(code: .corrupt, message: "an impossible file") }
                    return ContentFile(
                        digest: try row.digest(0), size: ByteCount(bytes), format: format)
                }
            }
        }
    }
}

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

internal import CArchive
import CacheStorage
import Hashing
import PrefetchModel

/// Writes tar archives.
enum ArchiveWriter {
    /// Writes an archive to an open file.
    ///
    /// - Returns: false if a content file of the cache is damaged.
    /// - Throws: when a content file cannot be read, or the archive not be written.
    static func write(
        _ members: [ArchiveMember], to file: Int32, from cache: CacheDirectory, _ path: String
    ) throws(StorageError) -> Bool {
        guard let writer = carchive_writer_make(file) else { throw .archive(path, "no memory") }
        defer { carchive_writer_free(writer) }
        func failure() -> StorageError {
            .archive(
                path, String(cString: carchive_error_message(writer)),
                code: carchive_error_code(writer))
        }
        for member in members {
            let bytes: [UInt8]
            switch member.content {
            case .bytes(let known): bytes = known
            case .stored(let image):
                switch cache.bytes(of: image, hasher: SHA256Hasher()) {
                case .whole(let found): bytes = found
                case .damaged: return false
                case .unreadable(let error): throw error
                }
            }
            guard carchive_writer_add(writer, member.name, bytes, bytes.count) else {
                throw failure()
            }
        }
        guard carchive_writer_finish(writer) else { throw failure() }
        return true
    }
}

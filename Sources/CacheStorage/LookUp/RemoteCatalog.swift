package import PrefetchModel
internal import SQLite

/// A database on a server, read in blocks as look-ups need them.
package struct RemoteCatalog {
    package let catalog: CacheCatalog
    private let file: RemoteDatabase

    /// Opens the database. `path` names it in messages, `directory` is a cache of this user, and
    /// `read` reads a range of its bytes.
    ///
    /// - Throws: the error of `read`, or ``StorageError`` if it cannot be used.
    package init(
        path: String, size: ByteCount, for directory: CacheDirectory,
        _ read: @escaping (Range<Int>) throws -> [UInt8]
    ) throws {
        let file = RemoteDatabase(size: size.bytes, read)
        do {
            catalog = CacheCatalog(
                database: try CacheDatabase(remote: file, path: path, for: directory),
                directory: directory)
        } catch {
            // The cause of an error of the database.
            throw file.failure ?? error
        }
        self.file = file
    }

    /// The error of the server behind an error of the catalog; nil for none.
    package var failure: (any Error)? { file.failure }

    /// The copy of a resource with one image, by the canonical text of its recipe.
    package func copy(key: String, recipe: String) throws(StorageError) -> SeededCopy? {
        try catalog.copies(of: [(key, [recipe])])[0]
    }
}

import Glibc
package import PrefetchModel
internal import SQLite

/// Examines a cache's files and rows for `verify`, also during a run. Findings are checked a second
/// time, since files and rows may have changed. Any thread may use it.
package struct CacheInspection: Sendable {
    let database: CacheDatabase
    package let directory: CacheDirectory
    private let content: FileDescriptor?
    /// The mode of the cache's files; nil if none was chosen.
    package let fileMode: FileMode?

    package static let folders = UInt8.min...UInt8.max

    package init(_ catalog: CacheCatalog) throws(StorageError) {
        database = catalog.database
        directory = catalog.directory
        // A damaged database is reported by ``findDamage()``.
        fileMode = try? database.fileMode()
        content =
            directory.contains("content")
            ? try directory.handle.folder("content") : nil
    }

    /// Reads every row and page. Throws an error for which ``StorageError/isDamage`` holds; the
    /// next run checks again and replaces the database.
    package func findDamage() throws(StorageError) {
        do {
            try database.confirmDamage(.thorough)
        } catch {
            if error.isDamage { directory.suspectDatabase() }
            throw error
        }
    }

    /// The images in a folder according to the rows, one for each distinct description.
    package func images(inFolder number: UInt8) throws(StorageError) -> [StoredImage] {
        try database.read("reading digests") { database in
            try database.prepare(
                """
                SELECT DISTINCT sha256, format, width, height, bytes, decoded, orientation
                FROM variant
                WHERE sha256 BETWEEN ?1 AND ?2 ORDER BY sha256
                """
            ).all(.digests(ofFolder: number)) { try $0.storedImage(from: 0, details: 5) }
                .compactMap(\.self)
        }
    }

    /// The keys of the images that share a content file, by rows that describe it as `image` does.
    package func keys(of image: StoredImage) throws(StorageError) -> [String] {
        try database.read("looking up") { database in
            try database.all(
                """
                SELECT DISTINCT key FROM variant JOIN resource ON id = resource_id
                WHERE sha256 = ? AND format = ? AND bytes = ? ORDER BY key
                """, .digest(image.digest), .text(image.format.rawValue), .init(image.size.bytes)
            ) { try $0.text(0) }
        }
    }

    package func isNamed(_ digest: ContentDigest) throws(StorageError) -> Bool {
        try database.read("looking up") { try MetadataStatements.isNamed(digest, in: $0) }
    }

    /// Whether another process changes the cache now: files may be waiting for their rows.
    package var isHeld: Bool { CacheLock.holder(in: directory) != nil }

    /// The names in a content folder; none if the folder is missing.
    package func names(inFolder number: UInt8) throws(StorageError) -> [String] {
        let name = ContentStore.name(ofFolder: number)
        guard let content, faccessat(content.number, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 else {
            return []
        }
        let folder = try content.folder(name)
        return try folder.names()
    }

    /// Names in `content` other than content folders.
    package func strangeNames() throws(StorageError) -> [String] {
        guard let content else { return [] }
        let known = Set(CacheInspection.folders.map(ContentStore.name))
        return try content.names()
            .filter { !known.contains($0) }.sorted()
    }

    /// `content/ab`
    package static func path(ofFolder number: UInt8) -> String {
        "content/\(ContentStore.name(ofFolder: number))"
    }

    package enum FileState: Sendable {
        /// A file of the row's size. The time is its last change of bytes, name or attributes.
        /// `otherMode` is its mode like `0600` if the cache has another one.
        case whole(changedAt: Timestamp, otherMode: String?)
        case missing
        case otherSize(Int)
        /// A FIFO, a symbolic link, …
        case noFile
        case folder
    }

    package func state(of image: StoredImage) throws(StorageError) -> FileState {
        guard let status = directory.handle.status(of: image.relativePath) else {
            guard errno == ENOENT || errno == ENOTDIR else {
                throw .system("stat", directory.path(of: image))
            }
            return .missing
        }
        guard status.isFile else { return status.isFolder ? .folder : .noFile }
        return status.size == image.size.bytes
            ? .whole(
                changedAt: status.changeTime,
                otherMode: FileMode.difference(of: status.st_mode, from: fileMode))
            : .otherSize(status.size)
    }

    /// The size of a file that may be removed as a whole; 0 if it is missing.
    package func size(ofFile path: String) -> Int {
        directory.handle.status(of: path)?.size ?? 0
    }

    /// Whether an image is within the largest size that is ever read.
    package static func canBeRead(_ image: StoredImage) -> Bool {
        image.size.bytes <= FileDescriptor.mostBytes
    }

    /// Reads a content file into a buffer of the row's size; false if it is missing or has another.
    package func read(
        _ image: StoredImage, into buffer: UnsafeMutableRawBufferPointer
    ) throws(StorageError) -> Bool {
        let reading = FileDescriptor.fill(buffer, from: image.relativePath, in: directory.handle)
        switch reading {
        case .whole: return true
        case .damaged: return false
        case .unreadable(let error): throw error
        }
    }

    package func unnamedTemporaries() throws(StorageError) -> [String] {
        guard directory.contains("tmp") else { return [] }
        let folder = try directory.handle.folder("tmp")
        let named = try PartialStore.fileNames(in: database)
        return try folder.names().filter { !named.contains($0) }.sorted()
    }

    /// Whether a name is still in `tmp` and has no row.
    package func isUnnamedTemporary(_ name: String) throws(StorageError) -> Bool {
        guard directory.contains("tmp/\(name)") else { return false }
        return try !PartialStore.fileNames(in: database).contains(name)
    }

    package func damagedPartials() throws(StorageError) -> [String] {
        try PartialStore.damagedKeys(in: database, directory)
    }
}

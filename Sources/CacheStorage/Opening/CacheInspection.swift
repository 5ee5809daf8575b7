import Glibc
import Hashing
package import PrefetchModel
internal import SQLite

/// Looks at a cache's files and rows for `verify`, beside a run if need be: what one look finds wrong is
/// looked at again, since files and rows come and go. Any thread may use it.
package struct CacheInspection: Sendable {
    let database: CacheDatabase
    let directory: CacheDirectory
    private let content: FileDescriptor?

    /// The folders of content files are numbered so.
    package static let folders = UInt8.min...UInt8.max

    package init(_ catalog: CacheCatalog) throws(StorageError) {
        try self.init(catalog.database, catalog.directory)
    }

    package init(_ cache: OpenCache) throws(StorageError) {
        try self.init(cache.database, cache.directory)
    }

    private init(_ database: CacheDatabase, _ directory: CacheDirectory) throws(StorageError) {
        self.database = database
        self.directory = directory
        content =
            directory.contains("content")
            ? try FileDescriptor.directory(
                "content", in: directory.handle, path: directory.path(of: "content"),
                isCreated: false) : nil
    }

    // MARK: Rows

    /// Reads every row, and every page of the database with its indexes.
    ///
    /// - Throws: an error that says ``StorageError/isDamage`` where there is any; the next run looks, too, and sets
    ///   the database aside.
    package func findDamage() throws(StorageError) {
        do throws(StorageError) {
            try database.findDamage(.complete)
        } catch {
            if error.isDamage { directory.suspectDatabase() }
            throw error
        }
    }

    /// The images that rows say are in a folder, each once for each way in which rows describe it.
    package func images(inFolder number: UInt8) throws(StorageError) -> [StoredImage] {
        try database.read("reading digests") { database in
            let rows = try Statement(
                database,
                sql: """
                    SELECT DISTINCT sha256, format, width, height, bytes, decoded FROM variant
                    WHERE sha256 BETWEEN ?1 AND ?2 ORDER BY sha256
                    """)
            try rows.bind(folder: number)
            var images: [StoredImage] = []
            while try rows.step() {
                if let image = try rows.storedImage(from: 0, decoded: 5) { images.append(image) }
            }
            return images
        }
    }

    /// The keys of the images that have a content file; none once no row names it as `image` says.
    package func keys(of image: StoredImage) throws(StorageError) -> [String] {
        try database.read("looking up") { database in
            try Statement(
                database,
                sql: """
                    SELECT DISTINCT key FROM variant JOIN resource ON id = resource_id
                    WHERE sha256 = ? AND format = ? AND bytes = ? ORDER BY key
                    """
            ).all(
                .digest(image.digest), .text(image.format.rawValue), .init(image.size.bytes)
            ) { try $0.text(0) }
        }
    }

    package func isNamed(_ digest: ContentDigest) throws(StorageError) -> Bool {
        try database.read("looking up") { try MetadataStatements.isNamed(digest, in: $0) }
    }

    /// Whether somebody else changes the cache now: files may be on their way to their rows.
    package var isHeld: Bool { CacheLock.holder(in: directory) != nil }

    // MARK: Files

    /// The names in a folder of content files; none where the folder is missing.
    ///
    /// - Throws: when it cannot be read, or something else has its place.
    package func names(inFolder number: UInt8) throws(StorageError) -> [String] {
        let name = ContentStore.name(ofFolder: number)
        guard let content, faccessat(content.number, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0 else {
            return []
        }
        let path = directory.path(of: "content/\(name)")
        let folder = try FileDescriptor.directory(
            name, in: content, path: path, isCreated: false)
        return try directory.names(in: folder, path: path)
    }

    /// Names in `content` that are no folders of content files.
    package func strangeNames() throws(StorageError) -> [String] {
        guard let content else { return [] }
        let known = Set(CacheInspection.folders.map(ContentStore.name))
        return try directory.names(in: content, path: directory.path(of: "content"))
            .filter { !known.contains($0) }.sorted()
    }

    /// `content/ab`
    package static func path(ofFolder number: UInt8) -> String {
        "content/\(ContentStore.name(ofFolder: number))"
    }

    /// What is found where a content file should be.
    package enum FileState: Sendable {
        /// As large as its row says, and last changed at that time: in its bytes, its name or its attributes.
        case whole(changedAt: Timestamp)
        case missing
        case otherSize(Int)
        /// A FIFO, a symbolic link, …
        case noFile
        case folder
    }

    package func state(of image: StoredImage) throws(StorageError) -> FileState {
        var status = stat()
        guard
            fstatat(directory.handle.number, image.relativePath, &status, AT_SYMLINK_NOFOLLOW)
                == 0
        else {
            guard errno == ENOENT || errno == ENOTDIR else {
                throw .system("stat", directory.path(of: image))
            }
            return .missing
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            return status.st_mode & S_IFMT == S_IFDIR ? .folder : .noFile
        }
        let size = Int(status.st_size)
        return size == image.size.bytes
            ? .whole(changedAt: status.changeTime) : .otherSize(size)
    }

    /// Bytes of a file that is to go or stay as a whole; 0 when it is not there.
    package func size(ofFile path: String) -> Int {
        var status = stat()
        return fstatat(directory.handle.number, path, &status, AT_SYMLINK_NOFOLLOW) == 0
            ? Int(status.st_size) : 0
    }

    /// Whether a file is not larger than any that is ever read, whatever its row says.
    package static func canBeRead(_ image: StoredImage) -> Bool {
        image.size.bytes <= FileDescriptor.mostBytes
    }

    /// Reads a content file into memory as large as its row says.
    ///
    /// - Returns: false when it is no longer there in its whole size.
    package func read(
        _ image: StoredImage, into buffer: UnsafeMutableRawBufferPointer
    ) throws(StorageError) -> Bool {
        let reading = FileDescriptor.fill(
            buffer, from: image.relativePath, in: directory.handle,
            path: directory.path(of: image))
        switch reading {
        case .whole: return true
        case .missing: return false
        case .unreadable(let error): throw error
        }
    }

    // MARK: Beside the content

    /// Names in `tmp` that are no bodies of rows which broke off.
    package func unnamedTemporaries() throws(StorageError) -> [String] {
        guard directory.contains("tmp") else { return [] }
        let path = directory.path(of: "tmp")
        let folder = try FileDescriptor.directory(
            "tmp", in: directory.handle, path: path, isCreated: false)
        let named = try PartialStore.fileNames(in: database)
        return try directory.names(in: folder, path: path).filter { !named.contains($0) }.sorted()
    }

    /// Whether a name is still in `tmp` and no row's.
    package func isUnnamedTemporary(_ name: String) throws(StorageError) -> Bool {
        guard directory.contains("tmp/\(name)") else { return false }
        return try !PartialStore.fileNames(in: database).contains(name)
    }

    /// Lines in the list of images that ended a run that are none.
    ///
    /// - Throws: when it cannot be read, or something else has its place.
    package func strangeCrashLines() throws(StorageError) -> Int {
        try CrashLog.countStrangeLines(in: directory)
    }

    /// The keys of bodies that broke off and whose files are gone or hold other bytes.
    package func damagedPartials() throws(StorageError) -> [String] {
        try PartialStore.damagedKeys(in: database, directory)
    }
}

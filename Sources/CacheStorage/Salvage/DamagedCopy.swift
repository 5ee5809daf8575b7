import Glibc
internal import SQLite

/// A copy of a damaged database, for its readable rows. The log is moved into it as far as it is
/// intact and belongs to it; unreadable blocks of the disk are zeros.
final class DamagedCopy {
    /// The cache with the copy among its temporary files.
    private let directory: CacheDirectory
    private let pageSize: Int
    private static let name = "tmp/salvage.sqlite"
    private static let frameName = "tmp/salvage-page.sqlite"
    /// The page size of SQLite's new databases, including this program's.
    private static let usualPageSize = 4096

    /// Copies the database of `source` into another cache's folder of temporary files, or its own.
    init(of source: CacheDirectory, in directory: CacheDirectory) throws {
        self.directory = directory
        try DamagedCopy.remove(from: directory)
        try DamagedCopy.copy("", of: source, in: directory)
        try DamagedCopy.copy("-wal", of: source, in: directory)
        pageSize = DamagedCopy.pageSize(in: directory)
        try DamagedCopy.dropPartialPage(ofSize: pageSize, in: directory)
        if try DamagedCopy.moveLog(in: directory) { return }
        // The log may belong to another database.
        try directory.remove(DamagedCopy.name + "-wal")
        try DamagedCopy.copy("", of: source, in: directory)
        try DamagedCopy.dropPartialPage(ofSize: pageSize, in: directory)
        if try DamagedCopy.moveLog(in: directory) { return }
        // The first page is damaged. With another one, the log can be moved; it may hold this one.
        try DamagedCopy.copy("-wal", of: source, in: directory)
        try replaceFirstPage()
        if try !DamagedCopy.moveLog(in: directory) {
            try directory.remove(DamagedCopy.name + "-wal")
        }
    }

    deinit {
        // The next run removes the rest with the other temporary files.
        try? DamagedCopy.remove(from: directory)
    }

    private static func remove(from directory: CacheDirectory) throws(StorageError) {
        try directory.removeDatabase(name)
        try directory.removeDatabase(frameName)
    }

    // MARK: The whole of it

    /// Opens the copy as a database, in a transaction that keeps its first page while
    /// ``forEachPage(ofKinds:as:_:)`` replaces it. Nil without a schema of this program.
    ///
    /// - Throws: also if it has another version of the schema; `path` names it.
    func openWhole(_ path: String) throws -> Connection? {
        do {
            let connection = try Connection(
                path: directory.path(of: DamagedCopy.name), access: .immutable)
            try connection.execute("BEGIN")
            try DamagedCopy.readSchemaInParts(of: connection)
            guard try connection.pragma("application_id") == Schema.applicationID else {
                return nil
            }
            let version = try connection.pragma("user_version")
            guard
                try version == Schema.schemaVersion
                    || version == 0 && SchemaPart.areOurs(SchemaPart.all(in: connection))
            else { throw CacheDatabase.otherVersion(version, path) }
            return connection
        } catch let error as SQLiteError where error.isUnreadable {
            return nil
        }
    }

    /// Makes SQLite accept a schema's intact parts: a flipped bit in one does not concern others.
    private static func readSchemaInParts(of connection: Connection) throws(SQLiteError) {
        try connection.permitUnsafeChanges()
        try connection.execute("PRAGMA writable_schema = ON")
        do {
            // With this flag the first statement fails, and the following ones see the parts that
            // were parsed (`prepare.c` on `SQLITE_NoSchemaError`).
            try connection.readSchema()
        } catch  where error.isUnreadable && error.code != .tooBig {
        }
    }

    // MARK: Page by page

    /// The kind of a page, its first byte (SQLite's file format, section 1.6).
    enum PageKind: UInt8 {
        /// Holds rows of tables with rowids.
        case tableLeaf = 13
        /// Hold rows of tables without rowids, and entries of indexes.
        case indexLeaf = 10
        case indexInterior = 2
    }

    /// Calls `body` for each page of some kinds, with a connection in which that page is a whole
    /// table named `page` with the columns of a layout. An interior page includes the pages below
    /// it. To do so it replaces the first page by one with such a schema. SQLite then reads the
    /// page as usual, including overflow pages.
    func forEachPage(
        ofKinds kinds: [PageKind], as layout: TableLayout,
        _ body: (Connection, Int) throws -> Void
    ) throws {
        try replaceFirstPage()
        let connection = try Connection(
            path: directory.path(of: DamagedCopy.name), access: .readWrite)
        try connection.permitUnsafeChanges()
        try connection.execute(
            "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
        let creation = layout.bareCreation(of: "page")
        let bytes = kinds.map(\.rawValue)
        let file = try DamagedCopy.open(DamagedCopy.name, O_RDONLY, in: directory)
        var number = 2
        var kind: UInt8 = 0
        while pread(file.number, &kind, 1, off_t((number - 1) * pageSize)) == 1 {
            defer { number += 1 }
            guard bytes.contains(kind) else { continue }
            try connection.execute("PRAGMA writable_schema = ON")
            try connection.run(
                "UPDATE sqlite_schema SET sql = ?, rootpage = ?", .text(creation), .init(number))
            // Makes SQLite read the schema again.
            try connection.execute("PRAGMA writable_schema = RESET")
            try body(connection, number)
        }
        try connection.close()
    }

    /// Replaces the first page by that of a database with one table.
    private func replaceFirstPage() throws {
        let path = directory.path(of: DamagedCopy.frameName)
        try directory.remove(DamagedCopy.frameName)
        try directory.makeFile(DamagedCopy.frameName)
        let connection = try Connection(path: path, access: .readWrite)
        try connection.permitUnsafeChanges()
        try connection.execute(
            """
            PRAGMA page_size = \(pageSize); PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
            CREATE TABLE page (a);
            """)
        try connection.close()
        var page = [UInt8](repeating: 0, count: pageSize)
        let frame = try DamagedCopy.open(DamagedCopy.frameName, O_RDONLY, in: directory)
        guard pread(frame.number, &page, pageSize, 0) == pageSize else {
            throw StorageError.system("read", path)
        }
        // The number of pages; 0 means by the file's size (file format, section 1.3.8).
        page.replaceSubrange(28..<32, with: [0, 0, 0, 0])
        let file = try DamagedCopy.open(DamagedCopy.name, O_WRONLY, in: directory)
        guard pwrite(file.number, page, pageSize, 0) == pageSize else {
            throw StorageError.system("write", directory.path(of: DamagedCopy.name))
        }
    }

    private static func open(
        _ name: String, _ flags: Int32, in directory: CacheDirectory
    ) throws(StorageError) -> FileDescriptor {
        let number = openat(directory.handle.number, name, flags | O_NOFOLLOW | O_CLOEXEC)
        guard number >= 0 else { throw .system("open", directory.path(of: name)) }
        return FileDescriptor(number)
    }

    /// Copies the database, or one of its companions if it exists.
    private static func copy(
        _ suffix: String, of other: CacheDirectory, in directory: CacheDirectory
    ) throws(StorageError) {
        let name = CacheDirectory.databaseName + suffix
        let path = other.path(of: name)
        guard let source = FileDescriptor.reading(name, in: other.handle) else {
            if !suffix.isEmpty, errno == ENOENT { return }
            throw .system("open", path)
        }
        let copyName = self.name + suffix
        try directory.remove(copyName)
        try directory.makeFile(copyName)
        let copy = try open(copyName, O_WRONLY, in: directory)
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        var offset = 0
        var size = buffer.count
        while true {
            let count = buffer.withUnsafeMutableBytes {
                pread(source.number, $0.baseAddress, size, off_t(offset))
            }
            if count == 0 { return }
            if count < 0 {
                if errno == EINTR { continue }
                guard errno == EIO else { throw .system("read", path) }
                // A bad block: skip it and copy the rest around it.
                if size > usualPageSize {
                    size = usualPageSize
                } else {
                    offset += size
                }
                continue
            }
            let written = pwrite(copy.number, buffer, count, off_t(offset))
            guard written == count else {
                if written >= 0 { errno = ENOSPC }
                throw .system("write", directory.path(of: copyName))
            }
            offset += count
            if offset % buffer.count == 0 { size = buffer.count }
        }
    }

    /// Moves the log into the copy. Returns false if that is not a database of this program.
    private static func moveLog(in directory: CacheDirectory) throws -> Bool {
        do {
            let connection = try Connection(
                path: directory.path(of: name), access: .readWrite, busyTimeout: .seconds(1))
            // Needs no shared memory.
            try connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            guard try connection.pragma("application_id") == Schema.applicationID else {
                return false
            }
            try connection.readSchema()
            _ = try connection.checkpoint(.truncate)
            try connection.execute("PRAGMA journal_mode = DELETE")
            try connection.close()
            return true
        } catch  where error.isUnreadable {
            return false
        }
    }

    /// Cuts off an incomplete last page, which SQLite would take for one with zeros at its end.
    private static func dropPartialPage(
        ofSize size: Int, in directory: CacheDirectory
    ) throws(StorageError) {
        let path = directory.path(of: name)
        let file = try open(name, O_RDWR, in: directory)
        guard let status = file.status else { throw .system("stat", path) }
        let rest = status.size % size
        guard rest == 0 || ftruncate(file.number, off_t(status.size - rest)) == 0 else {
            throw .system("truncate", path)
        }
    }

    private static func pageSize(in directory: CacheDirectory) -> Int {
        var size: UInt16 = 0
        guard let file = FileDescriptor.reading(name, in: directory.handle),
            pread(file.number, &size, 2, 16) == 2
        else { return usualPageSize }
        let found = Int(UInt16(bigEndian: size))
        // 512 to 32,768. The value 1 stands for 65,536, which is never a default.
        return found >= 512 && found <= 32_768 && found & (found - 1) == 0 ? found : usualPageSize
    }
}

extension SQLiteError {
    /// Whether damage explains the error: data is missing, invalid, or unreadable on the disk.
    var isUnreadable: Bool {
        // SQLITE_IOERR, TOOBIG and MISMATCH; SQLITE_ERROR if the schema lacks a table. If the index
        // of a log cannot grow, the disk is full.
        code != .sharedMemorySize
            && ([.corrupt, .notADatabase, .error, .cannotOpen].contains(code.primary)
                || [10, 18, 20].contains(code.primary.rawValue))
    }
}

extension Connection {
    /// Whether a statement's tables and columns exist in a readable schema.
    func canPrepare(_ sql: String) throws -> Bool {
        do {
            _ = try self.prepare(sql)
            return true
        } catch  where error.isUnreadable {
            return false
        }
    }
}

extension Statement {
    /// Steps to the next row; false at the end, nil at damage.
    func stepIfReadable() throws -> Bool? {
        do {
            return try step()
        } catch  where error.isUnreadable {
            return nil
        }
    }
}

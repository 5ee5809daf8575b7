internal import CLinux
import Glibc
import Hashing
package import PrefetchModel
internal import SQLite
import Threading

/// Bodies that broke off, for the attempts and the runs after: the table `partial` and its files
/// `tmp/<SHA-256 of the key>.partial`.
///
/// They are a few, so what there is of them is known in memory: to ask for one costs no query and
/// waits for nobody. Any thread may use it; changes are made one after another. Only for the
/// holder of the cache's lock.
package final class PartialStore: Sendable {
    /// What is known of a body that came in part.
    package struct Part: Hashable, Sendable {
        package let size: ByteCount
        /// What to send in `If-Range` for the rest.
        package let validator: PartialValidator
        /// Bytes of the whole body; nil when the response did not say.
        package let total: Int?
    }

    /// Smaller bodies are not worth a file: they come again in the time that it takes to ask.
    package static let smallestBody = ByteCount.mebibytes(1)
    /// After that time the body has likely changed.
    package static let longestAge = Duration.seconds(7 * 86400)

    private let directory: CacheDirectory
    private let temporary: FileDescriptor
    private let database: CacheDatabase
    private let capacity: ByteCount
    /// Held through a change, which waits for the disk.
    private let changes = Monitor(())
    /// By key, as the last change left them; nil until the table has been read.
    private let entries = Monitor([String: Entry]?.none)

    /// Opens the folder of the files. The oldest bodies go when all together exceed `capacity`.
    ///
    /// - Throws: when the folder cannot be made or is none.
    package init(
        directory: CacheDirectory, database: CacheDatabase,
        capacity: ByteCount = .mebibytes(256)
    ) throws(StorageError) {
        self.directory = directory
        self.database = database
        self.capacity = capacity
        temporary = try FileDescriptor.directory(
            "tmp", in: directory.handle, path: directory.path(of: "tmp"), isCreated: true)
    }

    /// Keeps a body that broke off, in the place of any other of that key.
    ///
    /// Removes what is older than ``longestAge``, and then the oldest until there is room.
    ///
    /// - Parameters:
    ///   - key: of the resource.
    ///   - url: that sent it, at the end of all redirects, without user information.
    ///   - validator: of the response that broke off.
    ///   - total: bytes of the whole body, if the response told.
    ///   - bytes: that came, from the first on.
    ///   - now: by the wall clock.
    /// - Returns: false when it is not worth keeping: not larger than ``smallestBody``, larger than
    ///   the capacity, or nothing is missing of it.
    /// - Throws: when it cannot be written; nothing of it is left then.
    @discardableResult
    package func store(
        key: String, url: String, validator: PartialValidator, total: Int?,
        bytes: UnsafeRawBufferPointer, at now: Timestamp
    ) throws(StorageError) -> Bool {
        let size = ByteCount(bytes.count)
        guard size > PartialStore.smallestBody, size <= capacity, bytes.count < total ?? .max else {
            return false
        }
        let entry = Entry(
            url: url, validator: validator, size: size,
            digest: SHA256Hasher().digest(of: bytes), total: total, createdAt: now)
        try change { (known) throws(StorageError) in
            if known[key] != nil { try remove([key], from: &known) }
            let obsolete = PartialStore.obsolete(
                in: known, forAnother: size, capacity: capacity, at: now)
            try remove(obsolete, from: &known)
            try place(bytes, name: PartialStore.fileName(of: key))
            do throws(StorageError) {
                try database.write("noting a partial body") { try entry.insert(key: key, in: $0) }
            } catch {
                removeFile(of: key)
                throw error
            }
            known[key] = entry
        }
        return true
    }

    /// Moves a body that the same URL sent for that key into memory, and forgets it.
    ///
    /// A body from another URL stays: the redirects may lead there yet.
    ///
    /// - Parameters:
    ///   - key: of the resource.
    ///   - url: that it would come from.
    ///   - buffer: as large as ``part(key:)`` says.
    /// - Returns: false without such a body, or when its file is damaged; the buffer may have been
    ///   written to.
    /// - Throws: when the database cannot be written; the body is still there then.
    package func take(
        key: String, url: String, into buffer: UnsafeMutableRawBufferPointer
    ) throws(StorageError) -> Bool {
        try change { (known) throws(StorageError) in
            guard let entry = known[key], entry.url == url else { return false }
            let name = PartialStore.fileName(of: key)
            let isRead = FileDescriptor.read(
                name, in: temporary, into: buffer, path: directory.path(of: "tmp/\(name)"))
            try remove([key], from: &known)
            // What cannot be read is fetched again.
            return isRead
                && SHA256Hasher().digest(of: UnsafeRawBufferPointer(buffer)) == entry.digest
        }
    }

    /// The body that there is of a key, and the URL that it came from; nil without one.
    package func part(key: String) throws(StorageError) -> (url: String, part: Part)? {
        let known = try current()
        // Mostly there is none, and a look into an empty dictionary hashes the key all the same.
        guard !known.isEmpty else { return nil }
        return known[key].map {
            ($0.url, Part(size: $0.size, validator: $0.validator, total: $0.total))
        }
    }

    /// Forgets what there is of a key, whose whole body has come.
    package func discard(key: String) throws(StorageError) {
        guard try current()[key] != nil else { return }
        try change { (known) throws(StorageError) in
            try remove([key], from: &known)
        }
    }

    /// Removes all bodies of at least that age, and those from the future by more than
    /// ``PrefetchModel/Timestamp/toleratedClockStep``; `now` is by the wall clock.
    package func removeAll(olderThan age: Duration, at now: Timestamp) throws(StorageError) {
        try change { (known) throws(StorageError) in
            let old = known.filter { $0.value.isOlder(than: age, at: now) }
            try remove(Set(old.keys), from: &known)
        }
    }

    /// Removes the rows that cannot be read or whose file is not there in its whole size, which a
    /// kill or a power cut may leave.
    ///
    /// - Returns: the names of the files that the other rows name.
    func reconcile() throws(StorageError) -> Set<String> {
        try change(startingFrom: [:]) { (known) throws(StorageError) in
            let rows = try Entry.fetchAll(in: database)
            var damaged: Set<String> = []
            for (key, entry) in rows {
                if let entry, hasWholeFile(key, entry) {
                    known[key] = entry
                } else {
                    damaged.insert(key)
                }
            }
            try remove(damaged, from: &known)
            return Set(known.keys.map(PartialStore.fileName))
        }
    }

    /// Reads every row.
    static func countRows(in database: CacheDatabase) throws(StorageError) -> Int {
        try Entry.fetchAll(in: database).count
    }

    /// The names of the files that rows name, those of rows that cannot be read included.
    static func fileNames(in database: CacheDatabase) throws(StorageError) -> Set<String> {
        Set(try Entry.fetchAll(in: database).keys.map(fileName))
    }

    /// The keys of rows that cannot be read, or whose file is gone or holds other bytes.
    static func damagedKeys(
        in database: CacheDatabase, _ directory: CacheDirectory
    ) throws(StorageError) -> [String] {
        let hasher = SHA256Hasher()
        return try Entry.fetchAll(in: database).filter { key, entry in
            guard let entry else { return true }
            let name = "tmp/\(fileName(of: key))"
            let contents = FileDescriptor.contents(
                of: name, in: directory.handle, size: entry.size.bytes,
                path: directory.path(of: name))
            guard case .bytes(let bytes) = contents else { return true }
            return bytes.withUnsafeBytes { hasher.digest(of: $0) } != entry.digest
        }.map(\.key).sorted()
    }

    private func current() throws(StorageError) -> [String: Entry] {
        if let known = entries.withLock({ $0 }) { return known }
        return try change { $0 }
    }

    /// Carries a change out while no other is made; what it throws after a part of its work leaves
    /// that part noted.
    private func change<Result>(
        startingFrom start: [String: Entry]? = nil,
        _ work: (inout [String: Entry]) throws(StorageError) -> Result
    ) throws(StorageError) -> Result {
        try changes.withLock { (_) throws(StorageError) in
            var known: [String: Entry]
            if let start = start ?? entries.withLock({ $0 }) {
                known = start
            } else {
                known = try Entry.fetchAll(in: database).compactMapValues { $0 }
            }
            defer { entries.withLock { $0 = known } }
            return try work(&known)
        }
    }

    // MARK: Inside a change

    /// What goes when another body of that size comes.
    private static func obsolete(
        in entries: [String: Entry], forAnother size: ByteCount, capacity: ByteCount,
        at now: Timestamp
    ) -> Set<String> {
        var obsolete: Set<String> = []
        var bytes = size.bytes + entries.values.reduce(0) { $0 + $1.size.bytes }
        let oldestFirst = entries.sorted {
            ($0.value.createdAt, $0.key) < ($1.value.createdAt, $1.key)
        }
        for (key, entry) in oldestFirst
        where bytes > capacity.bytes || entry.isOlder(than: longestAge, at: now) {
            obsolete.insert(key)
            bytes -= entry.size.bytes
        }
        return obsolete
    }

    /// Removes rows, and after their commit the files.
    private func remove(
        _ keys: Set<String>, from entries: inout [String: Entry]
    ) throws(StorageError) {
        guard !keys.isEmpty else { return }
        try database.write("removing partial bodies") { database in
            let removal = try Statement(database, sql: "DELETE FROM partial WHERE key = ?")
            for key in keys { try removal.execute(.text(key)) }
        }
        for key in keys {
            entries[key] = nil
            removeFile(of: key)
        }
    }

    private func removeFile(of key: String) {
        // Cannot be helped when it fails; the next run collects files without a row.
        unlinkat(temporary.number, PartialStore.fileName(of: key), 0)
    }

    /// Writes a file that was not there, beside its place at first.
    private func place(_ bytes: UnsafeRawBufferPointer, name: String) throws(StorageError) {
        let path = directory.path(of: "tmp/\(name)")
        let temporaryName = "\(name).new"
        let number = openat(
            temporary.number, temporaryName,
            O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, directory.creationMode)
        guard number >= 0 else { throw .system("open", "\(path).new") }
        do throws(StorageError) {
            do throws(StorageError) {
                try directory.giveMode(toNewFile: number, path: "\(path).new")
                try FileDescriptor.write(bytes, to: number, path: "\(path).new")
            } catch {
                close(number)
                throw error
            }
            guard close(number) == 0 else { throw StorageError.system("close", "\(path).new") }
            guard renameat(temporary.number, temporaryName, temporary.number, name) == 0 else {
                throw StorageError.system("rename", path)
            }
        } catch {
            // As in ``ContentStore``: the next run collects it otherwise.
            unlinkat(temporary.number, temporaryName, 0)
            throw error
        }
    }

    private func hasWholeFile(_ key: String, _ entry: Entry) -> Bool {
        var status = stat()
        let name = PartialStore.fileName(of: key)
        return fstatat(temporary.number, name, &status, AT_SYMLINK_NOFOLLOW) == 0
            && status.st_mode & S_IFMT == S_IFREG && Int(status.st_size) == entry.size.bytes
    }

    private static func fileName(of key: String) -> String {
        "\(SHA256Hasher().digest(of: key)).partial"
    }
}

/// A row of the table `partial`, less its key.
private struct Entry: Sendable {
    let url: String
    let validator: PartialValidator
    let size: ByteCount
    /// Of the file's bytes.
    let digest: ContentDigest
    let total: Int?
    let createdAt: Timestamp

    init(
        url: String, validator: PartialValidator, size: ByteCount, digest: ContentDigest,
        total: Int?, createdAt: Timestamp
    ) {
        self.url = url
        self.validator = validator
        self.size = size
        self.digest = digest
        self.total = total
        self.createdAt = createdAt
    }

    func isOlder(than age: Duration, at now: Timestamp) -> Bool {
        createdAt <= now.advanced(by: .zero - age)
            || createdAt > now.advanced(by: Timestamp.toleratedClockStep)
    }

    private static let columns = "key, url, etag, last_modified, bytes, sha256, total, created_at"

    /// Reads the columns of ``columns``; nil when a value is not one that we write.
    private init?(_ row: borrowing Statement) throws {
        let size = try row.count(4)
        guard size > PartialStore.smallestBody.bytes else { return nil }
        let validator: PartialValidator
        switch (try row.optionalText(2), try row.optionalText(3)) {
        case (let tag?, nil): validator = .entityTag(tag)
        case (nil, let date?): validator = .lastModified(date)
        default: return nil
        }
        let total = try row.isNull(6) ? nil : row.count(6)
        guard size < total ?? .max else { return nil }
        self.init(
            url: try row.text(1), validator: validator, size: ByteCount(size),
            digest: try row.digest(5), total: total, createdAt: try row.time(7))
    }

    /// By key; nil for rows that cannot be read.
    static func fetchAll(in database: CacheDatabase) throws(StorageError) -> [String: Entry?] {
        try database.read("reading partial bodies") { database in
            let rows = try Statement(database, sql: "SELECT \(columns) FROM partial")
            var entries: [String: Entry?] = [:]
            while try rows.step() { entries.updateValue(try Entry(rows), forKey: try rows.text(0)) }
            return entries
        }
    }

    func insert(key: String, in database: Connection) throws {
        var tag: String?
        var date: String?
        switch validator {
        case .entityTag(let text): tag = text
        case .lastModified(let text): date = text
        }
        try Statement(
            database,
            sql: "INSERT OR REPLACE INTO partial (\(Entry.columns)) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        ).execute(
            .text(key), .text(url), .init(tag), .init(date), .init(size.bytes), .digest(digest),
            .init(total.map(Int64.init)), .init(createdAt))
    }
}

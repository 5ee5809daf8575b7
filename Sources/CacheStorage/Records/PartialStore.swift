import Glibc
import Hashing
package import PrefetchModel
internal import SQLite
import Threading

/// Interrupted downloads that later attempts and runs resume: the table `partial` and its files
/// `tmp/<SHA-256 of the key>.partial`. There are few, so all rows are held in memory, for look-ups
/// without a query. Any thread of the lock's holder may use it; changes run one after another.
package final class PartialStore: Sendable {
    /// Smaller bodies are not worth a file: their download takes about a round trip.
    package static let smallestBody = ByteCount.mebibytes(1)
    /// After this time the body has probably changed.
    package static let longestAge = Duration.seconds(7 * 86400)

    private let directory: CacheDirectory
    private let temporary: FileDescriptor
    private let database: CacheDatabase
    private let capacity: ByteCount
    /// Held during a change, which waits for the disk.
    private let changes = Monitor(())
    /// The rows by key after the last change; nil until the table has been read.
    private let entries = Monitor([String: StoredPart]?.none)

    /// The oldest files are removed when the total exceeds `capacity`.
    package init(
        directory: CacheDirectory, database: CacheDatabase,
        capacity: ByteCount = .mebibytes(256)
    ) throws(StorageError) {
        self.directory = directory
        self.database = database
        self.capacity = capacity
        temporary = try directory.handle.folder("tmp", isCreated: true)
    }

    /// Stores a partial download in place of any earlier one of its key. Removes downloads older
    /// than ``longestAge``, and then the oldest ones until there is space.
    /// Returns false if the download is not worth storing: not larger than ``smallestBody``, larger
    /// than the capacity, or complete.
    ///
    /// - Throws: when it cannot be written; nothing of it remains then.
    @discardableResult
    package func store(
        _ part: PartialBody, key: String, bytes: UnsafeRawBufferPointer, at now: Timestamp
    ) throws(StorageError) -> Bool {
        let size = ByteCount(bytes.count)
        guard size > PartialStore.smallestBody, size <= capacity, bytes.count < part.total ?? .max
        else { return false }
        let entry = StoredPart(
            part: part, digest: SHA256Hasher().digest(of: bytes), createdAt: now)
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

    /// Moves the partial download of a key from the same URL into memory. A download from another
    /// URL is kept: redirects may still lead there. The buffer has the size that ``part(key:)``
    /// returns. Returns false if there is no download, or its file is damaged; the buffer may have
    /// been written to.
    ///
    /// - Throws: when the database cannot be written; the download is kept then.
    package func take(
        key: String, url: String, into buffer: UnsafeMutableRawBufferPointer
    ) throws(StorageError) -> Bool {
        try change { (known) throws(StorageError) in
            guard let entry = known[key], entry.part.url == url else { return false }
            let name = PartialStore.fileName(of: key)
            let reading = FileDescriptor.fill(buffer, from: name, in: temporary)
            try remove([key], from: &known)
            // An unreadable one is downloaded again.
            return reading.whole != nil
                && SHA256Hasher().digest(of: UnsafeRawBufferPointer(buffer)) == entry.digest
        }
    }

    package func part(key: String) throws(StorageError) -> PartialBody? {
        let known = try current()
        // Usually the table is empty, and even a look-up in an empty dictionary hashes the key.
        guard !known.isEmpty else { return nil }
        return known[key]?.part
    }

    /// Removes the partial download of a key, after its whole body has arrived.
    package func discard(key: String) throws(StorageError) {
        guard try current()[key] != nil else { return }
        try change { (known) throws(StorageError) in
            try remove([key], from: &known)
        }
    }

    /// Removes partial downloads of at least that age, and those from the future by more than
    /// ``PrefetchModel/Timestamp/toleratedClockStep``; `now` is the wall clock.
    package func removeAll(olderThan age: Duration, at now: Timestamp) throws(StorageError) {
        try change { (known) throws(StorageError) in
            let old = known.filter { $0.value.isOlder(than: age, at: now) }
            try remove(Set(old.keys), from: &known)
        }
    }

    /// Removes rows that cannot be read or have an incomplete file, as after a kill or a power cut.
    /// Returns the names of the files of the remaining rows.
    func reconcile() throws(StorageError) -> Set<String> {
        try change(startingFrom: [:]) { (known) throws(StorageError) in
            let rows = try StoredPart.fetchAll(in: database)
            var damaged: Set<String> = []
            for (key, entry) in rows {
                let name = PartialStore.fileName(of: key)
                if let entry, temporary.hasFile(name, size: entry.size.bytes) {
                    known[key] = entry
                } else {
                    damaged.insert(key)
                }
            }
            try remove(damaged, from: &known)
            return Set(known.keys.map(PartialStore.fileName))
        }
    }

    /// The names of all rows' files, including unreadable rows.
    static func fileNames(in database: CacheDatabase) throws(StorageError) -> Set<String> {
        Set(try StoredPart.fetchAll(in: database).keys.map(fileName))
    }

    /// The keys of rows that cannot be read, or with a missing or damaged file.
    static func damagedKeys(
        in database: CacheDatabase, _ directory: CacheDirectory
    ) throws(StorageError) -> [String] {
        let hasher = SHA256Hasher()
        return try StoredPart.fetchAll(in: database).filter { key, entry in
            guard let entry else { return true }
            let name = "tmp/\(fileName(of: key))"
            let contents = FileDescriptor.contents(
                of: name, in: directory.handle, size: entry.size.bytes)
            guard let bytes = contents.whole else { return true }
            return bytes.withUnsafeBytes { hasher.digest(of: $0) } != entry.digest
        }.map(\.key).sorted()
    }

    private func current() throws(StorageError) -> [String: StoredPart] {
        if let known = entries.withLock({ $0 }) { return known }
        return try change { $0 }
    }

    /// Runs one change at a time. After an error, its completed part is kept in memory.
    private func change<Result>(
        startingFrom start: [String: StoredPart]? = nil,
        _ work: (inout [String: StoredPart]) throws(StorageError) -> Result
    ) throws(StorageError) -> Result {
        try changes.withLock { (_) throws(StorageError) in
            var known: [String: StoredPart]
            if let start = start ?? entries.withLock({ $0 }) {
                known = start
            } else {
                known = try StoredPart.fetchAll(in: database).compactMapValues { $0 }
            }
            defer { entries.withLock { $0 = known } }
            return try work(&known)
        }
    }

    // MARK: Inside a change

    /// The keys to remove for another body of that size.
    private static func obsolete(
        in entries: [String: StoredPart], forAnother size: ByteCount, capacity: ByteCount,
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

    private func remove(
        _ keys: Set<String>, from entries: inout [String: StoredPart]
    ) throws(StorageError) {
        guard !keys.isEmpty else { return }
        try database.write("removing partial bodies") { database in
            let removal = try database.prepare("DELETE FROM partial WHERE key = ?")
            for key in keys { try removal.execute(.text(key)) }
        }
        for key in keys {
            entries[key] = nil
            removeFile(of: key)
        }
    }

    private func removeFile(of key: String) {
        // A failure is harmless: the next run collects files without a row.
        unlinkat(temporary.number, PartialStore.fileName(of: key), 0)
    }

    private func place(_ bytes: UnsafeRawBufferPointer, name: String) throws(StorageError) {
        let (path, new) = (temporary.path(of: name), "\(name).new")
        _ = try directory.writeNewFile(new, in: temporary) {
            (number) throws(StorageError) in
            try FileDescriptor.write(bytes, to: number, path: "\(path).new")
            return true
        }
        guard renameat(temporary.number, new, temporary.number, name) == 0 else {
            let error = StorageError.system("rename", path)
            unlinkat(temporary.number, new, 0)
            throw error
        }
    }

    private static func fileName(of key: String) -> String {
        "\(SHA256Hasher().digest(of: key)).partial"
    }
}

/// A row of the table `partial`, without its key.
private struct StoredPart: Sendable {
    let part: PartialBody
    let digest: ContentDigest
    let createdAt: Timestamp

    var size: ByteCount { ByteCount(part.count) }

    func isOlder(than age: Duration, at now: Timestamp) -> Bool {
        createdAt <= now.advanced(by: .zero - age)
            || createdAt > now.advanced(by: Timestamp.toleratedClockStep)
    }

    private static let columns = "key, url, etag, last_modified, bytes, sha256, total, created_at"

    static func fetchAll(in database: CacheDatabase) throws(StorageError) -> [String: StoredPart?] {
        try database.read("reading partial bodies") { database in
            var entries: [String: StoredPart?] = [:]
            try database.forEach("SELECT \(columns) FROM partial") { row in
                entries.updateValue(try StoredPart(row), forKey: try row.text(0))
            }
            return entries
        }
    }

    func insert(key: String, in database: Connection) throws {
        var tag: String?
        var date: String?
        switch part.validator {
        case .entityTag(let text): tag = text
        case .lastModified(let text): date = text
        }
        try database.run(
            "INSERT OR REPLACE INTO partial (\(StoredPart.columns)) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            .text(key), .text(part.url), .init(tag), .init(date), .init(part.count),
            .digest(digest), .init(part.total.map(Int64.init)), .init(createdAt))
    }
}

extension StoredPart {
    fileprivate init?(_ row: borrowing Statement) throws {
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
            part: PartialBody(
                url: try row.text(1), count: size, validator: validator, total: total),
            digest: try row.digest(5), createdAt: try row.time(7))
    }
}

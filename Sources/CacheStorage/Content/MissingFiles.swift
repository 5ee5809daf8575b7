import Glibc
import PrefetchModel
internal import SQLite

/// Finds rows with missing content files and removes them. The run fetches their images again. The
/// times of the 256 content folders change whenever a file is added or removed. The table `folder`
/// holds the times of folders in which nothing was missing; while they are equal, no file was
/// removed. They are recorded at the start of a run: at its end they would hide files that another
/// program has removed since. So a run lists a folder once that the last one has changed.
struct MissingFiles {
    let database: CacheDatabase
    let content: ContentStore

    /// Checks the files and removes the rows of missing ones. The caller must hold the lock, before
    /// anything is read or stored; `now` is the wall clock. Returns the number of files that are
    /// missing or, with ``FileCheck/always``, have another size.
    func remove(_ check: FileCheck, at now: Timestamp) throws(StorageError) -> Int {
        guard check != .never else { return 0 }
        let known = try knownTimes()
        var missing: [StoredImage] = []
        var seen: [(folder: UInt8, times: FolderTimes)] = []
        for folder in UInt8.min...UInt8.max {
            do {
                // Read before the files: later changes are found next time.
                let times = try content.times(ofFolder: folder)
                if check == .auto, let times, times == known[folder] { continue }
                let lost =
                    try times == nil
                    ? images(in: folder) { _ in true }
                    : check == .always
                        ? images(in: folder, where: content.directory.lacksWholeFile)
                        : missingFiles(in: folder)
                missing += lost
                if lost.isEmpty, let times, times.areSettled(at: now) {
                    seen.append((folder, times))
                }
            } catch {
                // An unreadable folder is tolerated only if it holds no images.
                guard try images(in: folder, where: { _ in true }).isEmpty else { throw error }
                try content.bear(error)
            }
        }
        if !missing.isEmpty { try removeRows(of: missing, at: now) }
        try note(seen.filter { known[$0.folder] != $0.times })
        return missing.count
    }

    private func knownTimes() throws(StorageError) -> [UInt8: FolderTimes] {
        try database.read("reading the folders' times") { database in
            var times: [UInt8: FolderTimes] = [:]
            try database.forEach("SELECT number, modified_at, changed_at FROM folder") { row in
                guard let number = UInt8(exactly: try row.integer(0)) else { return }
                times[number] = FolderTimes(
                    modifiedAt: try row.integer(1), changedAt: try row.integer(2))
            }
            return times
        }
    }

    private func note(_ folders: [(folder: UInt8, times: FolderTimes)]) throws(StorageError) {
        guard !folders.isEmpty else { return }
        do {
            try database.write("noting the folders' times") { database in
                let insertion = try database.prepare(
                    """
                    INSERT OR REPLACE INTO folder (number, modified_at, changed_at)
                    VALUES (?, ?, ?)
                    """)
                for (folder, times) in folders {
                    try insertion.execute(
                        .init(Int(folder)), .integer(times.modifiedAt), .integer(times.changedAt))
                }
            }
        } catch {
            // The times only save the next run some work.
            guard error.isDiskFull else { throw error }
        }
    }

    /// The images in a folder that rows name but the folder lacks.
    private func missingFiles(in folder: UInt8) throws(StorageError) -> [StoredImage] {
        let present = try content.digests(inFolder: folder)
        let suspects = try database.read("comparing files with rows") { database in
            // Reads the index alone.
            try database.prepare(
                "SELECT DISTINCT sha256 FROM variant WHERE sha256 BETWEEN ?1 AND ?2"
            ).all(.digests(ofFolder: folder)) { try $0.digest(0) }.filter { !present.contains($0) }
        }
        guard !suspects.isEmpty else { return [] }
        return try database.read("comparing files with rows") { database in
            let rows = try database.prepare(
                """
                SELECT sha256, format, width, height, bytes FROM variant WHERE sha256 = ?
                GROUP BY format
                """)
            return try suspects.flatMap { suspect in
                try rows.all([.digest(suspect)]) { try $0.storedImage(from: 0) }
                    .compactMap(\.self).filter { try content.directory.lacksWholeFile($0) }
            }
        }
    }

    private func images(
        in folder: UInt8, where isWanted: (StoredImage) throws(StorageError) -> Bool
    ) throws(StorageError) -> [StoredImage] {
        try database.read("comparing files with rows") { database in
            try database.prepare(
                """
                SELECT sha256, format, width, height, bytes FROM variant
                WHERE sha256 BETWEEN ?1 AND ?2 GROUP BY sha256, format
                """
            ).all(.digests(ofFolder: folder)) { try $0.storedImage(from: 0) }
                .compactMap(\.self).filter { try isWanted($0) }
        }
    }

    /// Removes the rows of these files, and their remains; `now` is the wall clock. A property
    /// marks the operation. After a kill, the next run looks for files without a row.
    func removeRows(of images: [StoredImage], at now: Timestamp) throws(StorageError) {
        // One transaction removes all rows, in random order.
        try database.holdMorePages()
        let ownsNote = try database.write("removing rows of missing files") { database in
            var statements = MetadataStatements(run: 0)
            for image in images { _ = try statements.apply(.lost(image), in: database) }
            return try Schema.Property.noteUnfinishedRemoval(at: now, in: database)
        }
        // The rows first, and on the disk: a power cut must not restore them without their files.
        try content.synchronize()
        for image in images { try content.remove(image.digest, format: image.format) }
        guard ownsNote else { return }
        do {
            try database.endRemoval(in: content)
        } catch {
            // The note only costs the next run some work.
            guard error.isDiskFull else { throw error }
        }
    }
}

/// The extent to which a run checks that the files of the cache's rows exist.
package enum FileCheck: String, CaseIterable, Sendable {
    /// Lists folders that have changed since all their files were seen, usually none.
    case auto
    /// Every file must exist with its full size.
    case always
    /// Rows are trusted.
    case never
}

/// The last change of a folder of content files, in nanoseconds since 1970. Both times change with
/// every file that is added or removed. Programs cannot set the second, so a copy has another.
struct FolderTimes: Hashable {
    let modifiedAt: Int64
    let changedAt: Int64

    /// Two changes within it may get equal stamps: clocks tick every few ms, FAT's every 2 s.
    private static let granularity = Duration.seconds(3)

    /// Whether any change from `now` on is certain to give other times.
    func areSettled(at now: Timestamp) -> Bool {
        let limit = now.advanced(by: .zero - FolderTimes.granularity)
        return max(modifiedAt, changedAt) / 1_000_000 < limit.milliseconds
    }
}

extension ContentStore {
    /// The times of a content folder; nil without one, also for a symbolic link in its place.
    func times(ofFolder number: UInt8) throws(StorageError) -> FolderTimes? {
        let status = try content.existingStatus(of: ContentStore.name(ofFolder: number))
        guard let status, status.isFolder else { return nil }
        func nanoseconds(_ time: timespec) -> Int64 {
            Int64(time.tv_sec).multipliedReportingOverflow(by: 1_000_000_000).partialValue
                &+ Int64(time.tv_nsec)
        }
        return FolderTimes(
            modifiedAt: nanoseconds(status.st_mtim), changedAt: nanoseconds(status.st_ctim))
    }

    /// The digests of the content files in a folder; empty if it is missing.
    func digests(inFolder number: UInt8) throws(StorageError) -> Set<ContentDigest> {
        var digests: Set<ContentDigest> = []
        // Anything else in the folder's place holds no content files.
        try content.existingFolder(ContentStore.name(ofFolder: number))?.forEachEntry { entry in
            if let digest = ContentStore.digest(of: entry) { digests.insert(digest) }
        }
        return digests
    }

    private static func digest(of entry: UnsafeMutablePointer<dirent>) -> ContentDigest? {
        // Some file systems do not report the type.
        guard entry.pointee.d_type == DT_REG || entry.pointee.d_type == DT_UNKNOWN else {
            return nil
        }
        return withUnsafeBytes(of: &entry.pointee.d_name) { name in
            let digits = 2 * ContentDigest.byteCount
            guard let end = name.firstIndex(of: 0), end > digits,
                let digest = ContentDigest(
                    lowercaseHexadecimal: UnsafeRawBufferPointer(rebasing: name[..<digits])),
                name[digits] == UInt8(ascii: ".")
            else { return nil }
            let fileExtension = name[(digits + 1)..<end]
            return extensions.contains { $0.elementsEqual(fileExtension) } ? digest : nil
        }
    }

    private static let extensions = ImageFormat.allCases.map { Array($0.fileExtension.utf8) }

    static func name(ofFolder number: UInt8) -> String {
        (number < 16 ? "0" : "") + String(number, radix: 16)
    }
}

package import CacheStorage
package import PrefetchModel

extension Diagnosis {
    package static func owner(_ ownership: CacheDirectory.Ownership) -> Diagnosis {
        ownership.isOwn
            ? .ok(.owner, "it is yours (uid \(ownership.owner))")
            : .ok(.owner, "it belongs to uid \(ownership.owner): you can read it but not change it")
    }

    /// Returns the line about permissions. `remembered` is the mode stored in the cache, if known;
    /// `others` are names of files with another mode, or without a stored mode, that others may
    /// write. `content` is a content file with another mode than new ones, with its mode, and
    /// `withoutAccess` names files that the owner may not read and write.
    package static func modes(
        _ ownership: CacheDirectory.Ownership, remembered: FileMode?, others: [String],
        content: String? = nil, withoutAccess: [String] = []
    ) -> Diagnosis {
        guard withoutAccess.isEmpty else {
            let names = withoutAccess.map { $0.prefix { $0 != " " } }.joined(separator: " ")
            return .wrong(
                .modes,
                "a run may not read and write: \(withoutAccess.joined(separator: ", "))",
                remedy: "`chmod u+rwX \(names)` in the directory")
        }
        if ownership.groupWrites {
            return .wrong(
                .modes, "the group may write the folder (\(ownership.bits))",
                remedy: "chmod g-w on the folder, or `prefetch chmod 0640`")
        }
        guard let remembered else {
            guard others.isEmpty else {
                return .wrong(
                    .modes, "others may write to: \(others.joined(separator: ", "))",
                    remedy: "`prefetch chmod 0600` by the owner")
            }
            if let content { return differing(content, from: .ownersAlone) }
            return .ok(.modes, "the folder has \(ownership.bits)")
        }
        guard others.isEmpty else {
            return .wrong(
                .modes,
                "these do not have the remembered mode \(remembered): \(others.joined(separator: ", "))",
                remedy: "`prefetch chmod \(remembered)` by the owner")
        }
        if let content { return differing(content, from: remembered) }
        return .ok(
            .modes,
            remembered.isShared
                ? "files have \(remembered): others may read them"
                : "files have \(remembered): only the owner may read them")
    }

    private static func differing(_ content: String, from mode: FileMode) -> Diagnosis {
        .wrong(
            .modes, "content files have another mode than \(mode), like \(content)",
            remedy: "`prefetch chmod \(mode)` by the owner")
    }

    /// Returns the line about the file system; `elsewhere` names folders that are on others.
    package static func fileSystem(
        _ fileSystem: FileSystem, isReadOnly: Bool, elsewhere: [String]
    ) -> Diagnosis {
        if let name = elsewhere.first {
            return .wrong(
                .fileSystem, "\(name) is on another file system, so files cannot be moved there",
                remedy: "mount the whole cache, and make content and tmp plain folders")
        }
        if isReadOnly {
            return .wrong(
                .fileSystem, "\(fileSystem.name), mounted read-only: nothing can be stored",
                remedy: "mount it read-write, or name another directory with --cache-dir")
        }
        return .ok(
            .fileSystem,
            fileSystem.isNetwork
                ? "\(fileSystem.name), a network file system: the database has no log"
                : fileSystem.name)
    }

    private static let growthPeriod = Duration.seconds(28 * 86400)

    /// Returns the bytes stored a day, by the start and the stored bytes of runs; runs before the
    /// period do not count. `now` is by the wall clock. Bytes that replaced other images count too,
    /// so this is an upper limit. The growth of a cache younger than a day is taken as one day's.
    package static func growth(
        _ runs: [(startedAt: Timestamp, stored: ByteCount)], at now: Timestamp
    ) -> Double {
        let start = now.advanced(by: .zero - growthPeriod)
        let recent = runs.filter { $0.startedAt >= start && $0.startedAt <= now }
        let bytes = recent.reduce(0.0) { $0 + Double($1.stored.bytes) }
        let earliest = recent.map(\.startedAt).min() ?? now
        return bytes / max(1, now.timeSince(earliest) / .seconds(86400))
    }

    /// The minimum of days that the free space should last.
    private static let minimumDays = 7.0
    /// The size of one commit, which a run needs to make progress.
    private static let minimumRoom = MetadataWriter.WriterConfiguration().groupBytes
    /// The same size in files of 16 KiB.
    private static let minimumFiles = 4096

    package static func space(_ room: CacheDirectory.Room?, _ bytesADay: Double) -> Diagnosis {
        guard let room else { return .unknown(.space, "the system does not say") }
        let remedy = "make room, or name a directory elsewhere with --cache-dir"
        if room.free < minimumRoom {
            return .wrong(.space, "only \(room.free) of \(room.total) free", remedy: remedy)
        }
        if let files = room.freeFiles, files < minimumFiles {
            return .wrong(
                .space, "only \(counted(files, "file")) can be added (inodes)", remedy: remedy)
        }
        guard bytesADay >= 1 else {
            return .ok(.space, "\(room.free) of \(room.total) free")
        }
        let pace = "runs store \(ByteCount(Int(min(bytesADay, 1e18)))) a day on average"
        let days = Double(room.free.bytes) / bytesADay
        if days < minimumDays {
            return .wrong(
                .space, "\(room.free) free, for \(counted(Int(days), "day")) at this pace: \(pace)",
                remedy: remedy)
        }
        let text = days > 3650 ? "years" : "\(Int(days)) days"
        return .ok(.space, "\(room.free) of \(room.total) free, for \(text): \(pace)")
    }
}

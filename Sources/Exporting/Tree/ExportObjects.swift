package import CacheStorage
import Glibc
import Hashing
import PrefetchModel
import Threading

/// A store of objects by name, like a bucket below a prefix. Any thread may call it.
package protocol ObjectStoring: Sendable {
    /// The bytes of an object; nil if it is missing.
    func bytes(of name: String) throws -> [UInt8]?
    func put(_ name: String, _ bytes: [UInt8], mediaType: String) throws
    /// Stores an object from parts; the last one is empty.
    func put(_ name: String, mediaType: String, parts: () throws -> [UInt8]) throws
    func remove(_ name: String) throws
    /// Returns the first of these names, in order, for which there is an object; nil without one.
    func first(of names: [String]) throws -> String?
}

/// An export into a store of objects: shards are sent while they are made.
///
/// The objects have the names of an exported folder's files, ``ExportState`` among them. It is
/// written first, with the new objects as unfinished, and last, so that an export after a kill
/// knows all objects of the earlier one. Objects that no export wrote are never replaced.
package struct ExportObjects: Sendable {
    package private(set) var changes = ExportTree.Changes()
    /// The members of shards that lack them, since the cache's files are damaged.
    package private(set) var problems: [(path: String, problem: ExportTree.Problem)] = []

    private var incomplete: [String] = []

    /// Requests that are under way at the same time, and the size of a part.
    private static let workers = 8
    static let partSize = 16 << 20

    /// Sends the files of a settled plan that the store lacks, and removes obsolete ones as in a
    /// folder. The functions are called on any of the threads.
    ///
    /// - Throws: ``UserError``, and the errors of the store.
    package init(
        _ plan: ExportPlan, to store: some ObjectStoring, _ place: String,
        _ options: ExportTree.Options, from cache: CacheDirectory, workers: Int,
        isCancelled: @escaping @Sendable () -> Bool,
        progress: @escaping @Sendable (_ done: Int, _ all: Int) -> Void
    ) throws {
        let files = plan.files()
        if plan.layout == .webdataset { try ArchiveLibrary.load() }
        let old = try store.bytes(of: ExportState.name).flatMap(ExportState.init)
        try ExportObjects.check(files, of: plan, old, options, place)
        let deletes = options.gap == nil && (options.deletes || !options.updates)
        let written = files.filter { old?[$0.path]?.identity != $0.identity }
        let names = Set(files.map(\.path))
        let obsolete = old?.records.filter { !names.contains($0.path) } ?? []
        if let foreign = try store.first(of: written.map(\.path).filter { old?[$0] == nil }) {
            throw UserError(
                .failed, place, "has objects that no export wrote, like \(foreign)",
                hint: "name another prefix")
        }
        changes.kept = files.count - written.count
        guard !written.isEmpty || deletes && !obsolete.isEmpty || old == nil else { return }
        var state = ExportState(layout: plan.layout)
        for file in files { state.append(ExportObjects.entry(of: file), for: file.path) }
        let final = state
        state.merge(obsolete)
        state.suspend(written.map(\.path))
        try store.put(ExportState.name, state.bytes, mediaType: ExportObjects.stateType)
        let sender = Sender(
            store: store, cache: cache, workers: max(1, workers / ExportObjects.workers),
            isCancelled: isCancelled)
        try send(written, by: sender, progress)
        state = final
        // The next export sends an incomplete archive again.
        state.suspend(incomplete)
        if deletes {
            for record in obsolete { try store.remove(record.path) }
            changes.removed = obsolete.count
        } else {
            state.merge(obsolete)
        }
        try store.put(ExportState.name, state.bytes, mediaType: ExportObjects.stateType)
    }

    /// - Throws: ``UserError`` for an export that would remove objects by an incomplete list, or
    ///   show signatures.
    private static func check(
        _ files: [PlannedFile], of plan: ExportPlan, _ old: ExportState?,
        _ options: ExportTree.Options, _ place: String
    ) throws(UserError) {
        if let gap = options.gap, old != nil, plan.hasSharedFiles {
            throw UserError(
                .failed, place, "unchanged: \(redacted(gap.description))", hint: ListGap.hint)
        }
        if let secret = files.first(where: \.isPrivate) {
            throw UserError(
                .failed, place,
                "\(secret.path) has signatures of URLs, which readers of the bucket would see",
                hint: "export to a folder")
        }
    }

    private mutating func send(
        _ files: [PlannedFile], by sender: Sender,
        _ progress: @escaping @Sendable (_ done: Int, _ all: Int) -> Void
    ) throws {
        let done = Monitor(0)
        let results = files.parallelMap(workers: ExportObjects.workers, name: "send") { file in
            let result = Result { try sender.send(file) }
            let count = done.withLock {
                $0 += 1
                return $0
            }
            progress(count, files.count)
            return result
        }
        for (file, result) in zip(files, results) {
            let sent = try result.get()
            problems += sent.missing.map { ("\(file.path)\($0)", .damaged) }
            if !sent.missing.isEmpty { incomplete.append(file.path) }
            changes.written += sent.size > 0 ? 1 : 0
            changes.writtenSize = ByteCount(changes.writtenSize.bytes + sent.size)
        }
    }

    private static let stateType = "application/octet-stream"

    private static func entry(of file: PlannedFile) -> ExportState.Entry {
        ExportState.Entry(identity: file.identity, time: "-", size: 0, modifiedAt: 0)
    }

    private struct Sender: Sendable {
        struct Sent: Sendable {
            var size = 0
            /// The ends of the names of damaged files, behind the path.
            var missing: [String] = []
        }

        let store: any ObjectStoring
        let cache: CacheDirectory
        let workers: Int
        let isCancelled: @Sendable () -> Bool

        func send(_ file: PlannedFile) throws -> Sent {
            if isCancelled() { throw UserError.cancelled }
            switch file.content {
            case .bytes(let bytes):
                try store.put(file.path, bytes, mediaType: "application/json")
                return Sent(size: bytes.count)
            case .stored(let image):
                switch cache.bytes(of: image, hasher: SHA256Hasher()) {
                case .whole(let bytes):
                    try store.put(file.path, bytes, mediaType: image.format.mediaType)
                    return Sent(size: bytes.count)
                case .damaged: return Sent(missing: [""])
                case .unreadable(let error): throw UserError(ofExport: error)
                }
            case .archive(let members): return try send(members, as: file.path)
            }
        }

        /// Sends an archive while another thread writes it into a pipe.
        private func send(_ members: [ArchiveMember], as path: String) throws -> Sent {
            var ends: [Int32] = [-1, -1]
            guard pipe(&ends) == 0 else { throw UserError.system("pipe", path) }
            for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
            let (reading, writing) = (ends[0], ends[1])
            let outcome = Monitor<Result<[String], UserError>?>(nil)
            let (cache, workers, isCancelled) = (cache, workers, isCancelled)
            defer { close(reading) }
            let thread: OwnedThread
            do {
                thread = try OwnedThread(name: "archive") {
                    let result = Result { () throws(UserError) in
                        try ArchiveWriter.write(
                            members, to: writing, from: cache, workers: workers,
                            isCancelled: isCancelled, path)
                    }
                    outcome.withLock { $0 = result }
                    close(writing)
                }
            } catch {
                close(writing)
                throw error
            }
            var size = 0
            do {
                try store.put(path, mediaType: "application/x-tar") {
                    let part = try ExportObjects.part(of: reading, path)
                    size += part.count
                    // The end of a failed archive is not stored.
                    if part.isEmpty, case .failure(let error)? = outcome.withLock({ $0 }) {
                        throw error
                    }
                    return part
                }
            } catch {
                // The writer ends, too, which waits for room.
                while try !ExportObjects.part(of: reading, path).isEmpty {}
                thread.join()
                throw error
            }
            thread.join()
            let missing = try outcome.withLock { $0 }?.get() ?? []
            return Sent(size: size, missing: missing.map { "/\($0)" })
        }
    }

    /// The next bytes of a pipe, fewer than ``partSize`` only at its end.
    private static func part(of pipe: Int32, _ path: String) throws(UserError) -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < partSize {
            let (start, wanted) = (bytes.count, min(1 << 20, partSize - bytes.count))
            bytes.append(contentsOf: repeatElement(0, count: wanted))
            let count = bytes.withUnsafeMutableBytes {
                $0.baseAddress.map { read(pipe, $0 + start, wanted) } ?? 0
            }
            bytes.removeLast(wanted - max(0, count))
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .system("read", path) }
            if count == 0 { break }
        }
        return bytes
    }
}

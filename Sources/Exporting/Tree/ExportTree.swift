internal import CLinux
package import CacheStorage
import Glibc
package import PrefetchModel
import Reporting
import Threading

/// The folder that an export writes.
///
/// New files are written into a folder beside it, `.NAME.prefetch-new`, or in it with
/// ``Options/updates``. ``finish()`` synchronises them and puts them in place: the new folder takes
/// the place of the old one in one step, or each file that of an older one. Until then the old
/// folder is as it was, and after a kill the next export removes the new one.
///
/// Nothing else in the folder's parent is touched, symbolic links in the folder are not followed,
/// and files that no export wrote are neither replaced nor removed.
package final class ExportTree {
    package struct Options: Sendable {
        package var updates = false
        /// Whether files of earlier exports that are not among the new ones are removed. Always so
        /// for a folder that is replaced.
        package var deletes = false
        /// The reason that all files of an earlier export stay; nil if they may be removed. The
        /// folder is changed in place then, unless its layout has files about several images.
        package var gap: ListGap?
        /// Whether files are links to the cache's where possible.
        package var links = false
        /// The mode of new files; nil for 0666 less the umask.
        package var mode: FileMode?

        package init() {}
    }

    package struct Changes: Sendable {
        package internal(set) var written = 0
        /// The part of ``written`` that shares the cache's blocks: links and reflinks.
        package fileprivate(set) var shared = 0
        package internal(set) var writtenSize = ByteCount(0)
        package internal(set) var kept = 0
        package internal(set) var removed = 0
        /// Whether the file system did not let modes or times be set.
        package internal(set) var lacksModes = false
        package internal(set) var lacksTimes = false
        /// Whether some files are links that only the owner of the cache may read.
        package fileprivate(set) var hasPrivateLinks = false
        /// The files that only their owner may read: ``PlannedFile/isPrivate``.
        package internal(set) var privateFiles: [String] = []
    }

    package enum Problem: Sendable {
        case damaged
        /// A file that no export wrote has its path.
        case foreign
    }

    private let plan: ExportPlan
    private let options: Options
    private let now: Timestamp
    private let old: ExportFolder
    private let stage: ExportStage
    private let cache: CacheDirectory
    private var state: ExportState
    /// The paths of the files in the stage, and of the files that stay.
    private var written: [String] = []
    private var kept: [String] = []
    private var isFinished = false
    /// The files that ``finish()`` did not put in place, since others were put there meanwhile.
    package private(set) var foreign: [String] = []
    package private(set) var changes = Changes()

    /// Opens or creates the folders for a plan that is settled; `path` need not exist. Only one
    /// process at a time can hold a folder.
    ///
    /// - Throws: ``UserError`` for a folder that cannot be written, that another export holds, or
    ///   it would replace and that has files of others.
    package init(
        _ path: String, for plan: ExportPlan, _ options: Options, from cache: CacheDirectory,
        at now: Timestamp
    ) throws(UserError) {
        var options = options
        self.plan = plan
        self.now = now
        old = try ExportFolder(path)
        try old.lock()
        if !options.updates, old.holdsCurrentFolder {
            // A shell in the old folder would not see the new one.
            (options.updates, options.deletes) = (true, true)
        }
        if !options.updates, let foreign = try old.foreignFile() {
            throw UserError.foreign(path, foreign)
        }
        if let gap = options.gap, let state = old.state {
            guard !plan.hasSharedFiles, state.layout == plan.layout.rawValue else {
                throw UserError(
                    .failed, path, "unchanged: \(redacted(gap.description))", hint: ListGap.hint)
            }
            (options.updates, options.deletes) = (true, false)
        }
        self.options = options
        if options.updates, let folder = old.folder {
            stage = try ExportStage(ExportState.name + "-new", in: folder, mode: options.mode)
        } else {
            stage = try ExportStage(
                ".\(old.name).prefetch-new", in: old.parent, mode: options.mode)
        }
        self.cache = cache
        state = ExportState(layout: plan.layout)
    }

    deinit {
        // Nothing depends on it: the next export removes it, too.
        if !isFinished { try? stage.remove() }
    }

    // MARK: Files

    private enum FileResult: Sendable {
        case written(ExportState.Entry, ContentWriter.WrittenFile)
        case kept(ExportState.Entry)
        case lost(Problem)
    }

    private static let chunkSize = 256

    /// Files for one thread at a time. Neighbouring chunks are far apart in the order of paths,
    /// since threads that change one folder wait for each other.
    private static func chunks(
        of files: [PlannedFile], workers: Int
    ) -> [ArraySlice<PlannedFile>] {
        // Few files may be large archives.
        let size = min(chunkSize, max(1, files.count / (4 * workers)))
        let chunks = stride(from: 0, to: files.count, by: size).map {
            files[$0..<min($0 + size, files.count)]
        }
        let rows = (chunks.count + workers - 1) / workers
        return (0..<rows).flatMap { row in
            stride(from: row, to: chunks.count, by: rows).map { chunks[$0] }
        }
    }

    /// Writes the files of the plan into the stage, unless the folder has them already;
    /// ``finish()`` puts them in place.
    ///
    /// The functions are called on any of the threads: `isCancelled` before each file.
    ///
    /// - Returns: the files that were not written.
    /// - Throws: ``UserError``; the folder is as it was then.
    package func write(
        workers: Int, isCancelled: @escaping @Sendable () -> Bool,
        progress: @escaping @Sendable (_ done: Int, _ all: Int) -> Void
    ) throws(UserError) -> [(path: String, problem: Problem)] {
        let files = plan.files()
        let archives = files.count { if case .archive = $0.content { true } else { false } }
        if archives > 0 { try ArchiveLibrary.load() }
        if options.mode == nil { changes.privateFiles = files.filter(\.isPrivate).map(\.path) }
        let chunks = ExportTree.chunks(of: files, workers: workers)
        let writer = ContentWriter(
            cache: cache, links: options.links, mode: options.mode,
            workers: max(1, workers / max(1, min(archives, workers))), isCancelled: isCancelled)
        let step = Step(options: options, now: now, old: old, stage: stage.folder, writer: writer)
        let done = Monitor(0)
        let results = chunks.parallelMap(workers: workers, name: "export") { chunk in
            let result = step.write(chunk)
            let count = done.withLock {
                $0 += chunk.count
                return $0
            }
            progress(count, files.count)
            return result
        }
        var problems: [(path: String, problem: Problem)] = []
        state.reserveCapacity(files.count)
        let inOrder = zip(chunks, results).sorted { $0.0.startIndex < $1.0.startIndex }
        for (chunk, result) in inOrder {
            for (file, result) in zip(chunk, try result.get()) {
                switch result {
                case .lost(let problem): problems.append((file.path, problem))
                case .kept(let entry):
                    state.append(entry, for: file.path)
                    kept.append(file.path)
                case .written(let entry, let result):
                    problems += result.missing.map { ("\(file.path)/\($0)", .damaged) }
                    state.append(entry, for: file.path)
                    written.append(file.path)
                    changes.written += 1
                    changes.shared += result.isShared ? 1 : 0
                    changes.hasPrivateLinks = changes.hasPrivateLinks || result.isPrivateLink
                    changes.lacksModes = changes.lacksModes || result.lacksMode
                    changes.lacksTimes = changes.lacksTimes || result.lacksTime
                    changes.writtenSize = ByteCount(changes.writtenSize.bytes + entry.size)
                }
            }
        }
        return problems
    }

    private struct Step: Sendable {
        let options: Options
        let now: Timestamp
        let old: ExportFolder
        let stage: Folder
        let writer: ContentWriter

        func write(_ files: ArraySlice<PlannedFile>) -> Result<[FileResult], UserError> {
            Result { () throws(UserError) in
                var cursor = FolderCursor(root: stage, mode: options.mode)
                var present = FolderCursor(root: old.folder ?? stage)
                var writer = writer
                var results: [FileResult] = []
                results.reserveCapacity(files.count)
                for file in files {
                    if writer.isCancelled() { throw .cancelled }
                    results.append(try write(file, &cursor, &present, &writer))
                }
                return results
            }
        }

        private func write(
            _ file: PlannedFile, _ cursor: inout FolderCursor, _ present: inout FolderCursor,
            _ writer: inout ContentWriter
        ) throws(UserError) -> FileResult {
            let known = old.state?[file.path]
            if old.folder != nil, known != nil || options.updates {
                let status = try present.status(of: file.path)
                if let known, let status, isCurrent(file, known, status) { return .kept(known) }
                // A folder may be one of earlier exports.
                if options.updates, known == nil, let status, !status.isFolder {
                    return .lost(.foreign)
                }
            }
            let (folder, name) = try cursor.enter(file.path)
            guard let written = try writer.write(file, as: name, in: folder) else {
                return .lost(.damaged)
            }
            let entry = ExportState.Entry(
                // The next export writes an incomplete archive again.
                identity: written.missing.isEmpty ? file.identity : .unfinished,
                time: file.modified.text, size: Int(written.status.st_size),
                modifiedAt: written.status.modifiedAt)
            return .written(entry, written)
        }

        /// Whether the folder's file is the one that the earlier export wrote, and is as this one.
        private func isCurrent(
            _ file: PlannedFile, _ known: ExportState.Entry, _ status: stat
        ) -> Bool {
            guard known.identity == file.identity, known.time == file.modified.text,
                status.isFile,
                Int(status.st_size) == known.size, status.modifiedAt == known.modifiedAt
            else { return false }
            if let mode = options.mode, status.permissions != mode.ofFiles { return false }
            if file.isPrivate, options.mode == nil, status.permissions & 0o077 != 0 { return false }
            guard file.modified == .present else { return true }
            let age = now.milliseconds - Int64(known.modifiedAt / 1_000_000)
            return age < ExportTree.renewal.wholeMilliseconds
        }
    }

    /// The age after which the time of a file is renewed, see ``PlannedFile/ModificationTime``.
    private static let renewal = Duration.seconds(86_400)

    // MARK: End

    /// Puts the new files in place.
    ///
    /// - Returns: whether anything has changed.
    package func finish() throws(UserError) -> Bool {
        changes.kept = kept.count
        let obsolete = old.state?.records.filter { state[$0.path] == nil } ?? []
        let keepsObsolete = options.updates && !options.deletes
        if let folder = old.folder {
            if written.isEmpty, old.state?.layout == state.layout, obsolete.isEmpty || keepsObsolete
            {
                isFinished = true
                try stage.remove()
                return false
            }
            if options.updates {
                try update(folder, obsolete: obsolete)
            } else {
                try takeOver(from: folder)
                try replace(folder)
                changes.removed = obsolete.count
            }
        } else {
            try place()
        }
        isFinished = true
        return true
    }

    /// Gives the unchanged files of the old folder a second name in the stage.
    private func takeOver(from folder: Folder) throws(UserError) {
        var cursor = FolderCursor(root: folder)
        var tables: Set<String> = []
        for path in kept {
            guard let (source, name) = try cursor.find(path) else {
                throw .system("open", folder.path(of: path))
            }
            try source.hand(name, to: try stage.enter(path))
            if let table = state.table(of: path) { tables.insert(table) }
        }
        tables.subtract(written.compactMap(state.table))
        for table in tables where folder.status(of: table) != nil {
            try folder.hand(table, to: (stage.folder, table))
        }
        if options.mode == nil, let status = folder.status {
            fchmod(stage.folder.number, status.st_mode & 0o7777)
        }
    }

    private func place() throws(UserError) {
        try stage.write(state)
        try stage.synchronize()
        let parent = old.parent
        guard try parent.move(stage.name, to: (parent, old.name), replaces: false) else {
            throw moveError()
        }
        try parent.synchronize()
    }

    /// Puts the stage in the place of the old folder, and removes that.
    private func replace(_ folder: Folder) throws(UserError) {
        try stage.write(state)
        try stage.synchronize()
        let parent = old.parent
        func exchange() -> Bool {
            renameat2(parent.number, stage.name, parent.number, old.name, clinux_rename_exchange)
                == 0
        }
        if exchange() {
            // Files that were added meanwhile.
            if let foreign = try old.foreignFile() {
                guard exchange() else { throw moveError() }
                throw UserError.foreign(folder.path, foreign)
            }
            try parent.synchronize()
            return try stage.remove()
        }
        guard clinux_is_refusal(errno) != 0 else { throw moveError() }
        let oldName = ExportFolder.oldName(of: old.name)
        guard renameat(parent.number, old.name, parent.number, oldName) == 0 else {
            throw moveError()
        }
        guard renameat(parent.number, stage.name, parent.number, old.name) == 0 else {
            let error = moveError()
            renameat(parent.number, oldName, parent.number, old.name)
            throw error
        }
        try parent.synchronize()
        try parent.remove(folder: oldName)
    }

    private func moveError() -> UserError {
        let isMountPoint = errno == EBUSY
        let isRefused = [EPERM, EINVAL, ENOSYS, EOPNOTSUPP, EXDEV, EMFILE].contains(errno)
        var error = UserError.system("rename", old.parent.path(of: old.name))
        if isMountPoint { error.hint = "it is a mount point; --update changes it in place" }
        // FUSE file systems of buckets: gcsfuse, for example, reports EMFILE.
        if isRefused {
            error.hint =
                "where folders cannot be renamed, make the folder and use --update, or export to a "
                + "local disk and copy it"
        }
        return error
    }

    /// The files of earlier exports in the way of new ones: a file has the name of a folder, or a
    /// folder that of a file.
    ///
    /// - Throws: ``UserError`` if another file is in the way.
    private func blockingFiles(
        in folder: Folder, among obsolete: [ExportState.KnownFile]
    ) throws(UserError) -> Set<ExportState.KnownFile> {
        let files = Set(written.map(PathBytes.init))
        var folders: Set<PathBytes> = []
        for path in written {
            for parent in path.parents where !folders.insert(PathBytes(path: parent)).inserted {
                break
            }
        }
        let blocking = obsolete.filter { record in
            folders.contains(PathBytes(path: record.path))
                || record.path.parents.contains { files.contains(PathBytes(path: $0)) }
        }
        let known = Set(blocking.map { PathBytes(path: $0.path) })
        var cursor = FolderCursor(root: folder)
        for path in folders.map(\.path) {
            guard let status = try cursor.status(of: path), !status.isFolder,
                !known.contains(PathBytes(path: path))
            else { continue }
            throw UserError.foreign(folder.path, path)
        }
        for path in written {
            guard let (parent, name) = try cursor.find(path), let status = parent.status(of: name),
                status.isFolder, let blocked = try parent.present(name)
            else { continue }
            var foreign: String?
            _ = try blocked.forEachFile(below: path + "/") { file in
                if !known.contains(PathBytes(path: file)) { foreign = file }
                return foreign == nil
            }
            if let foreign { throw UserError.foreign(folder.path, foreign) }
        }
        return Set(blocking)
    }

    /// Puts each new file in its place, and removes obsolete ones.
    private func update(_ folder: Folder, obsolete: [ExportState.KnownFile]) throws(UserError) {
        let blocking = try blockingFiles(in: folder, among: obsolete)
        let others = obsolete.filter { !blocking.contains($0) }
        var final = state
        final.merge(options.deletes ? [] : others)
        // The state first: after a kill, the next export knows the files of this one, and writes
        // them again.
        state.suspend(written)
        state.merge(obsolete)
        try stage.write(state)
        try stage.synchronize()
        try stage.moveState(to: folder)
        func remove(_ records: some Collection<ExportState.KnownFile>) throws(UserError) {
            for record in records {
                if let table = old.state?.table(of: record.path) {
                    try folder.remove(file: table)
                }
                try folder.remove(file: record.path)
            }
            changes.removed += records.count
        }
        try remove(blocking)
        if let mode = options.mode { fchmod(folder.number, mode.ofFolders) }
        var target = FolderCursor(root: folder, mode: options.mode)
        for path in written {
            if old.state?[path] != nil, let table = old.state?.table(of: path) {
                try folder.remove(file: table)
            }
            let (source, name) = try stage.enter(path)
            let isNew = old.state?[path] == nil
            if try !source.move(name, to: try target.enter(path), replaces: !isNew) {
                foreign.append(path)
            }
        }
        final.remove(foreign)
        changes.written -= foreign.count
        if options.deletes { try remove(others) }
        guard clinux_synchronize(folder.number) == 0 else { throw .system("sync", folder.path) }
        state = final
        try stage.write(state)
        try stage.moveState(to: folder)
        try stage.remove()
        guard clinux_synchronize(folder.number) == 0 else { throw .system("sync", folder.path) }
    }
}

@available(*, unavailable)
extension ExportTree: Sendable {}

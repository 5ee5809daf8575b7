internal import CLinux
import Glibc
package import Hashing
package import PrefetchModel
import Synchronization
import Threading

extension ContentStore {
    /// The way in which a store has got a file of another cache.
    enum Adoption {
        case linked, cloned, copied
        /// The file was there.
        case present
        /// The other cache has no such file, or it is damaged.
        case lost
    }

    /// Stores a content file that `write` writes into an open file, returning the digest, or nil
    /// after a failure. Returns false, with nothing stored, if the digest or the size differs.
    package func receive(
        _ file: ContentFile, _ write: (Int32) -> ContentDigest?
    ) throws(StorageError) -> Bool {
        let (folder, name) = try location(of: file.digest, file.format)
        return try placeNewFile(name, in: folder) { (number, _) throws(StorageError) in
            write(number) == file.digest && lseek(number, 0, SEEK_END) == file.size.bytes
        }
    }

    /// Writes a temporary file by `fill`, which takes the open file and its path for messages, and
    /// renames it into the content folder. Returns false if `fill` did: the file is dropped.
    ///
    /// - Throws: when a system call or `fill` fails; no file has the name then.
    func placeNewFile(
        _ name: String, in folder: FileDescriptor,
        _ fill: (Int32, String) throws(StorageError) -> Bool
    ) throws(StorageError) -> Bool {
        guard let temporaryName = try makeTemporary(fill) else { return false }
        try place(temporaryName, as: name, in: folder)
        return true
    }

    /// Renames a temporary file into its content folder; a failure removes it.
    func place(
        _ temporaryName: String, as name: String, in folder: FileDescriptor
    ) throws(StorageError) {
        guard renameat(temporary.number, temporaryName, folder.number, name) == 0 else {
            let error = StorageError.system("rename", folder.path(of: name))
            // A temporary file that cannot be removed is collected by the next run.
            unlinkat(temporary.number, temporaryName, 0)
            throw error
        }
    }

    /// Makes a temporary file that `fill` writes. Returns its name in `tmp`; nil if `fill` returned
    /// false.
    ///
    /// - Throws: when a system call or `fill` fails; nothing is left then.
    func makeTemporary(
        _ fill: (Int32, String) throws(StorageError) -> Bool
    ) throws(StorageError) -> String? {
        let name = String(temporaryNames.add(1, ordering: .relaxed).newValue, radix: 36)
        let path = temporary.path(of: name)
        let isKept = try directory.writeNewFile(name, in: temporary) {
            (number) throws(StorageError) in try fill(number, path)
        }
        return isKept ? name : nil
    }

    /// Links or copies a content file of a seed cache, and pins it until ``unpin(_:)``. Returns
    /// false, with nothing pinned, if the seed's file is missing or damaged.
    package func take(
        _ image: StoredImage, from seed: SeedCache, hasher: borrowing SHA256Hasher
    ) throws(StorageError) -> Bool {
        pin(image.digest)
        do {
            let adoption = try adopt(
                image, from: seed.source.directory, isDoubtful: seed.mayHaveTornFiles,
                hasher: hasher)
            if case .lost = adoption {
                unpin(image.digest)
                return false
            }
            return true
        } catch {
            unpin(image.digest)
            throw error
        }
    }

    /// Takes over the content file of another cache, which keeps it: by a hard link, else by shared
    /// blocks, else by a copy after a comparison with its digest. A doubtful file is always
    /// compared, and so is one that is there already, unless it is the other cache's own: a killed
    /// merge may have left it, and a power cut may have torn it.
    func adopt(
        _ image: StoredImage, from other: CacheDirectory, isDoubtful: Bool,
        hasher: borrowing SHA256Hasher
    ) throws(StorageError) -> Adoption {
        let path = image.relativePath
        let (folder, name) = try location(of: image.digest, image.format)
        var isLost = false
        if isDoubtful, case .damaged = other.bytes(of: image, hasher: hasher) { isLost = true }
        if !isLost {
            switch try link(path, of: other, as: name, in: folder, size: image.size.bytes) {
            case .done: return .linked
            case .damaged: isLost = true
            case .taken:
                if isSameFile(name, in: folder, as: path, of: other) { return .present }
            case .impossible: break
            }
        }
        if directory.bytes(of: image, hasher: hasher).whole != nil { return .present }
        return isLost ? .lost : try copy(image, of: other, as: name, in: folder, hasher: hasher)
    }

    private enum Link {
        case done, damaged, taken, impossible
    }

    /// Both names share owner, group and mode: a file of another user, who could change it, or of
    /// another mode or group than new files have is copied.
    private func link(
        _ path: String, of other: CacheDirectory, as name: String, in folder: FileDescriptor,
        size: Int
    ) throws(StorageError) -> Link {
        guard let status = try other.handle.existingStatus(of: path), status.isFile,
            status.size == size
        else { return .damaged }
        guard hasModeOfNewFiles(status) else { return .impossible }
        guard linkat(other.handle.number, path, folder.number, name, 0) == 0 else {
            switch errno {
            case EEXIST: return .taken
            case ENOENT, ENOTDIR, ELOOP: return .damaged
            // Another device, no links, or too many of them.
            case EXDEV, EMLINK: return .impossible
            case let code where clinux_is_refusal(code) != 0: return .impossible
            default: throw .system("link", directory.path(of: path))
            }
        }
        return .done
    }

    /// Whether a file has the owner, the mode and, if its group may read it, the group of new ones.
    private func hasModeOfNewFiles(_ status: stat) -> Bool {
        guard status.st_uid == geteuid(), status.st_mode & 0o777 == directory.creationMode else {
            return false
        }
        guard status.st_mode & 0o040 != 0, let folder = temporary.status else { return true }
        return status.st_gid == (folder.st_mode & S_ISGID != 0 ? folder.st_gid : getegid())
    }

    private func isSameFile(
        _ name: String, in folder: FileDescriptor, as path: String, of other: CacheDirectory
    ) -> Bool {
        guard let own = FileIdentity(name, in: folder) else { return false }
        return own == FileIdentity(path, in: other.handle)
    }

    private func copy(
        _ image: StoredImage, of other: CacheDirectory, as name: String,
        in folder: FileDescriptor, hasher: borrowing SHA256Hasher
    ) throws(StorageError) -> Adoption {
        var adoption = Adoption.lost
        _ = try placeNewFile(name, in: folder) { (number, path) throws(StorageError) in
            switch other.clone(image, to: number) {
            case .done: adoption = .cloned
            case .damaged: return false
            case .impossible:
                let handover = try other.copy(image, to: number, hasher: hasher, path: path)
                guard case .done = handover else { return false }
                adoption = .copied
            }
            return true
        }
        return adoption
    }
}

/// Takes over content files on threads of its own, while the rows are merged.
final class FileAdoption: Sendable {
    struct Job {
        let image: StoredImage
        /// The cache with the row that names the image.
        let source: Int
        /// Whether the bytes are compared with the digest, also of a linked file.
        let isDoubtful: Bool
    }

    private struct AdoptionQueue {
        var batches: [[Job]] = []
        var isEnded = false
        var counts = AdoptionCounts()
        var lost: [StoredImage] = []
        var failure: StorageError?
    }

    static let batchSize = 512
    /// Batches that wait at most; beyond them the merging thread takes part.
    private static let mostBatches = 64

    private let state = Monitor(AdoptionQueue())
    private let content: ContentStore
    /// All caches, the destination first.
    private let directories: [CacheDirectory]
    private let threads: Monitor<[OwnedThread]> = Monitor([])

    /// Starts `workers` threads at most; without any, the merging thread does the work.
    init(into content: ContentStore, from directories: [CacheDirectory], workers: Int) {
        self.content = content
        self.directories = directories
        for number in 0..<workers {
            // Fewer threads suffice: the merging thread takes part.
            guard
                let thread = try? OwnedThread(
                    name: "adopt-\(number)", { [self] in while takeBatch(waits: true) {} })
            else { break }
            threads.withLock { $0.append(thread) }
        }
    }

    func add(_ jobs: [Job]) throws(StorageError) {
        guard !jobs.isEmpty else { return }
        let (count, failure) = state.update { state in
            if state.failure == nil { state.batches.append(jobs) }
            return (state.batches.count, state.failure)
        }
        if let failure { throw failure }
        if count > FileAdoption.mostBatches { _ = takeBatch(waits: false) }
    }

    /// Waits for all jobs and ends the threads. Also call after a failure elsewhere. Returns the
    /// counts, and the images without a file in any cache.
    func finish(
        isAbandoned: Bool = false
    ) throws(StorageError) -> (counts: AdoptionCounts, lost: [StoredImage]) {
        state.update { state in
            if isAbandoned { state.batches = [] }
            state.isEnded = true
        }
        while takeBatch(waits: false) {}
        let started = threads.withLock { threads in
            defer { threads = [] }
            return threads
        }
        for thread in started { thread.join() }
        return try state.withLock { state throws(StorageError) in
            if let failure = state.failure { throw failure }
            return (state.counts, state.lost)
        }
    }

    /// Works on one batch. Returns false without a batch; if it `waits`, none will follow.
    private func takeBatch(waits: Bool) -> Bool {
        let batch: [Job]? = state.wait { state, _ in
            if let batch = state.batches.popLast() { return .ready(batch) }
            return waits && !state.isEnded ? .wait(until: nil) : .ready(nil)
        }
        guard let batch else { return false }
        var counts = AdoptionCounts()
        var lost: [StoredImage] = []
        var failure: StorageError?
        let hasher = SHA256Hasher()
        do {
            for job in batch { try adopt(job, &counts, &lost, hasher: hasher) }
        } catch {
            failure = error
        }
        state.update(wakes: { $0.failure != nil }) { state in
            state.counts = state.counts + counts
            state.lost += lost
            if let failure, state.failure == nil {
                state.failure = failure
                state.batches = []
                state.isEnded = true
            }
        }
        return true
    }

    /// Takes a file from the cache with its row, or else from any that has it.
    private func adopt(
        _ job: Job, _ counts: inout AdoptionCounts, _ lost: inout [StoredImage],
        hasher: borrowing SHA256Hasher
    ) throws(StorageError) {
        let image = job.image
        for index in [job.source] + directories.indices.dropFirst() {
            let adoption = try content.adopt(
                image, from: directories[index], isDoubtful: job.isDoubtful, hasher: hasher)
            switch adoption {
            case .linked: counts.linked += 1
            case .cloned: counts.cloned += 1
            case .copied: counts.copied += 1
            case .present:
                counts.present += 1
                return
            case .lost:
                continue
            }
            counts.bytes += image.size.bytes
            return
        }
        lost.append(image)
    }
}

import CacheStorage
import Glibc
import Hashing
import PrefetchModel

struct ContentWriter: Sendable {
    struct WrittenFile {
        var status = stat()
        /// Whether it shares the cache's blocks.
        var isShared = false
        /// Whether it is a link, with the cache's mode, that only its owner may read.
        var isPrivateLink = false
        /// Whether the file system did not let them be set.
        var lacksMode = false
        var lacksTime = false
        /// The members that an archive lacks because the cache's files are damaged.
        var missing: [String] = []
    }

    let cache: CacheDirectory
    let links: Bool
    /// The files' mode; nil for 0666 less the umask.
    let mode: FileMode?
    let workers: Int
    let isCancelled: @Sendable () -> Bool
    /// Whether the file system may be able to share blocks.
    var mayClone = true

    /// Creates a file; nil if the cache's is damaged. Nothing is left of it then, or if that fails.
    mutating func write(
        _ file: PlannedFile, as name: String, in folder: Folder
    ) throws(UserError) -> WrittenFile? {
        var link = WrittenFile(isShared: true)
        if links, case .stored(let image) = file.content {
            let result = try UserError.ofExport { () throws(StorageError) in
                try cache.link(
                    image, as: name, in: folder.number, &link.status, path: folder.path(of: name))
            }
            switch result {
            case .damaged: return nil
            case .impossible: break
            case .done:
                // A link has the mode of the cache's file.
                link.isPrivateLink = link.status.permissions & 0o044 == 0
                guard let mode, link.status.permissions != mode.ofFiles else { return link }
                unlinkat(folder.number, name, 0)
            }
        }
        let path = folder.path(of: name)
        let number = openat(
            folder.number, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
            mode?.ofFiles ?? (file.isPrivate ? 0o600 : 0o666))
        guard number >= 0 else { throw .system("create", path) }
        var isWritten = false
        defer {
            if !isWritten { unlinkat(folder.number, name, 0) }
        }
        var written: WrittenFile?
        var status = stat()
        do throws(UserError) {
            written = try fill(number, with: file.content, path)
            if let mode {
                written?.lacksMode = try !Folder.set("chmod", path, fchmod(number, mode.ofFiles))
            }
            if case .fixed(let time) = file.modified {
                var times = [timespec(time), timespec(time)]
                written?.lacksTime = try !Folder.set("utimens", path, futimens(number, &times))
            }
            guard fstat(number, &status) == 0 else { throw .system("stat", path) }
        } catch {
            close(number)
            throw error
        }
        // A network file system may report a full disk here.
        guard close(number) == 0 else { throw .system("close", path) }
        isWritten = written != nil
        if let mode, status.permissions == mode.ofFiles { written?.lacksMode = false }
        written?.status = status
        return written
    }

    private mutating func fill(
        _ file: Int32, with content: PlannedFile.Content, _ path: String
    ) throws(UserError) -> WrittenFile? {
        if mayClone, case .stored(let image) = content {
            switch cache.clone(image, to: file) {
            case .done: return WrittenFile(isShared: true)
            case .damaged: return nil
            case .impossible: mayClone = false
            }
        }
        switch content {
        case .stored(let image):
            let handover = try UserError.ofExport { () throws(StorageError) in
                try cache.copy(image, to: file, hasher: SHA256Hasher(), path: path)
            }
            return handover == .done ? WrittenFile() : nil
        case .bytes(let bytes):
            try UserError.ofExport { () throws(StorageError) in
                try CacheDirectory.writeAll(bytes, to: file, path: path)
            }
            return WrittenFile()
        case .archive(let members):
            return WrittenFile(
                missing: try ArchiveWriter.write(
                    members, to: file, from: cache, workers: workers, isCancelled: isCancelled,
                    path))
        }
    }
}

extension timespec {
    init(_ time: Timestamp) {
        let rest = (time.milliseconds % 1000 + 1000) % 1000
        self.init(
            tv_sec: Int((time.milliseconds - rest) / 1000), tv_nsec: Int(rest) * 1_000_000)
    }
}

internal import CArchive
internal import CLinux
import CacheStorage
import Glibc
import Hashing
import PrefetchModel
import Threading

struct ContentWriter: Sendable {
    struct WrittenFile {
        var status = stat()
        /// Whether it shares the cache's blocks.
        var isShared = false
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
                guard let mode, link.status.permissions != mode.ofFiles else { return link }
                unlinkat(folder.number, name, 0)
            }
        }
        let path = folder.path(of: name)
        let number = openat(
            folder.number, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
            mode?.ofFiles ?? 0o666)
        guard number >= 0 else { throw .system("create", path) }
        var isWritten = false
        defer {
            if !isWritten { unlinkat(folder.number, name, 0) }
        }
        var written: WrittenFile?
        var status = stat()
        do throws(UserError) {
            written = try fill(number, with: file.content, path)
            if let mode, fchmod(number, mode.ofFiles) != 0 { throw .system("chmod", path) }
            if case .fixed(let time) = file.modified {
                var times = [timespec(time), timespec(time)]
                guard futimens(number, &times) == 0 else { throw .system("utimens", path) }
            }
            guard fstat(number, &status) == 0 else { throw .system("stat", path) }
        } catch {
            close(number)
            throw error
        }
        // A network file system may report a full disk here.
        guard close(number) == 0 else { throw .system("close", path) }
        isWritten = written != nil
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
    fileprivate init(_ time: Timestamp) {
        let rest = (time.milliseconds % 1000 + 1000) % 1000
        self.init(
            tv_sec: Int((time.milliseconds - rest) / 1000), tv_nsec: Int(rest) * 1_000_000)
    }
}

enum ArchiveWriter {
    /// The most content files, and bytes unless one is larger, that are read ahead.
    private static let window = (files: 16, bytes: 16 << 20)

    /// Writes an archive to an open file. A sample with a damaged image is left out.
    ///
    /// - Returns: the names of the damaged images.
    /// - Throws: when a content file cannot be read, or the archive not be written.
    static func write(
        _ members: [ArchiveMember], to file: Int32, from cache: CacheDirectory, workers: Int,
        isCancelled: () -> Bool, _ path: String
    ) throws(UserError) -> [String] {
        guard let writer = carchive_writer_make(file) else {
            throw UserError(ofExport: .archive(path, "no memory"))
        }
        defer { carchive_writer_free(writer) }
        func failure() -> UserError {
            UserError(
                ofExport: .archive(
                    path, String(cString: carchive_error_message(writer)),
                    code: carchive_error_code(writer)))
        }
        var damaged: [String] = []
        var rest = members[...]
        while !rest.isEmpty {
            if isCancelled() { throw .cancelled }
            let next = Array(rest.prefix(windowCount(of: rest)))
            rest = rest.dropFirst(next.count)
            let contents = next.parallelMap(workers: workers, name: "read") { member in
                switch member.content {
                case .bytes(let bytes): FileReading.whole(bytes)
                case .stored(let image): cache.bytes(of: image, hasher: SHA256Hasher())
                }
            }
            for (member, content) in zip(next, contents) where member.sample != damaged.last?.sample
            {
                switch content {
                case .whole(let bytes):
                    guard carchive_writer_add(writer, member.name, bytes, bytes.count) else {
                        throw failure()
                    }
                case .damaged: damaged.append(member.name)
                case .unreadable(let error): throw UserError(ofExport: error)
                }
            }
            // The disk works while the next files are read.
            clinux_start_writing(file)
        }
        guard carchive_writer_finish(writer) else { throw failure() }
        return damaged
    }

    private static func windowCount(of members: ArraySlice<ArchiveMember>) -> Int {
        var (count, files, bytes) = (0, 0, 0)
        for member in members {
            if case .stored(let image) = member.content {
                files += 1
                bytes += image.size.bytes
                if count > 0, files > window.files || bytes > window.bytes { break }
            }
            count += 1
        }
        return count
    }
}

extension ArchiveMember {
    fileprivate var sample: Substring { name.sample }
}

extension String {
    /// The part of a member's name that the files of a sample share.
    fileprivate var sample: Substring { prefix { $0 != "." } }
}

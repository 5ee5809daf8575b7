internal import CArchive
internal import CLinux
import CacheStorage
import Hashing
import PrefetchModel
import Threading

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
                case .archive: preconditionFailure("an archive in an archive")
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

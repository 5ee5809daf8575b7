import Glibc
import PrefetchModel

/// The file `status` beside the lock: the progress of the run that holds the cache.
///
/// ```
/// PID HOST MILLISECONDS    the holder, as in the lock
/// {…}                      one JSON object
/// …                        the same for people, one or more lines
/// ```
///
/// It is replaced as a whole, and removed at the end of the run. A killed run leaves it, with a
/// holder that is gone.
package struct StatusFile: Sendable {
    private let directory: CacheDirectory
    private let holder = LockHolder.current()

    package static let name = "status"
    private static let temporaryName = "status.new"
    /// Longer than any file that a run writes.
    private static let maximumBytes = 1 << 20

    /// Takes the directory of a cache whose lock this process holds.
    package init(_ directory: CacheDirectory) {
        self.directory = directory
    }

    /// Replaces the content. For people and monitors only, so errors are ignored: they must not
    /// end the run.
    package func write(json: [UInt8], text: [String]) {
        let lines =
            holder.line + String(decoding: json, as: UTF8.self) + "\n"
            + text.joined(separator: "\n") + "\n"
        let number = openat(
            directory.handle.number, StatusFile.temporaryName,
            O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK,
            directory.creationMode)
        guard number >= 0 else { return }
        let file = FileDescriptor(number)
        // Readers of the cache may have another umask.
        guard (try? directory.giveMode(toNewFile: file.number, path: StatusFile.name)) != nil else {
            return
        }
        let bytes = Array(lines.utf8)
        let written = bytes.withUnsafeBytes { Glibc.write(file.number, $0.baseAddress, $0.count) }
        guard written == bytes.count else { return }
        renameat(
            directory.handle.number, StatusFile.temporaryName, directory.handle.number,
            StatusFile.name)
    }

    package func remove() {
        unlinkat(directory.handle.number, StatusFile.name, 0)
        unlinkat(directory.handle.number, StatusFile.temporaryName, 0)
    }

    /// The progress of a running run.
    package struct Content: Sendable {
        package let json: String
        package let text: [String]
    }

    /// Returns the process that holds a cache, and its progress once it has written any; nil if no
    /// process holds it.
    package static func read(
        in directory: CacheDirectory
    ) -> (holder: LockHolder, content: Content?)? {
        guard let holder = CacheLock.holder(in: directory) else { return nil }
        let number = openat(
            directory.handle.number, StatusFile.name,
            O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
        guard number >= 0 else { return (holder, nil) }
        let file = FileDescriptor(number)
        var bytes = [UInt8](repeating: 0, count: maximumBytes)
        let count = bytes.withUnsafeMutableBytes {
            Glibc.read(file.number, $0.baseAddress, $0.count)
        }
        let lines = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self).split(
            separator: "\n")
        // That of a killed run is older than the lock of the next holder, which may have its pid.
        guard lines.count > 2, let writer = LockHolder(line: lines[0].utf8),
            writer.process == holder.process, writer.host == holder.host,
            writer.since >= holder.since
        else { return (holder, nil) }
        return (
            holder, Content(json: String(lines[1]), text: lines.dropFirst(2).map { String($0) })
        )
    }
}

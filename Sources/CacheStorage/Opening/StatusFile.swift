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

    package init(_ directory: CacheDirectory) {
        self.directory = directory
    }

    /// Replaces the content. Errors are ignored: it is for people and monitors only.
    package func write(json: [UInt8], text: [String]) {
        let bytes =
            Array(holder.line.utf8) + json + Array("\n\(text.joined(separator: "\n"))\n".utf8)
        do {
            try directory.writeNewFile(StatusFile.temporaryName, bytes, replaces: true)
            try directory.rename(StatusFile.temporaryName, to: StatusFile.name)
        } catch {}
    }

    package func remove() {
        // A file that stays is harmless, as after a kill.
        for name in [StatusFile.name, StatusFile.temporaryName] { try? directory.remove(name) }
    }

    /// The process that holds a cache, and its progress so far; nil if no process holds it.
    package static func read(
        in directory: CacheDirectory
    ) -> (holder: LockHolder, content: (json: String, text: [String])?)? {
        guard let holder = CacheLock.holder(in: directory) else { return nil }
        guard
            let bytes = FileDescriptor.beginning(
                of: name, in: directory.handle, limit: maximumBytes)
        else { return (holder, nil) }
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        // A killed run's file is older than the lock of the next holder, which may have its pid.
        guard lines.count > 2, let writer = LockHolder(line: lines[0].utf8),
            writer.process == holder.process, writer.host == holder.host,
            writer.since >= holder.since
        else { return (holder, nil) }
        return (holder, (String(lines[1]), lines.dropFirst(2).map { String($0) }))
    }
}

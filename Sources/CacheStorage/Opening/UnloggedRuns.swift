import Glibc
package import PrefetchModel

/// The file `DIR/unlogged`: runs whose end a full disk kept out of the table `run`.
///
/// Its 4 KiB are reserved while there is space: a full disk lets a file's blocks be overwritten.
/// The next run that can write moves its lines into the table. A line has the times of start and
/// end in milliseconds, the exit status and the manifests' names, separated by spaces; the names
/// by U+001F. Line ends fill the rest. Errors are ignored, because the run ends with one anyway.
package struct UnloggedRuns: Sendable {
    private let directory: CacheDirectory

    static let fileName = "unlogged"
    private static let size = 4096
    /// Longer names would leave little room for other runs.
    private static let longestNames = 200

    package struct UnloggedRun: Hashable, Sendable {
        package var startedAt: Timestamp
        package var endedAt: Timestamp
        package var exitStatus: Int32
        /// The manifests' names, separated by newlines.
        package var manifest: String

        package init(
            startedAt: Timestamp, endedAt: Timestamp, exitStatus: Int32, manifest: String
        ) {
            self.startedAt = startedAt
            self.endedAt = endedAt
            self.exitStatus = exitStatus
            self.manifest = manifest
        }

        fileprivate init?(line: Substring) {
            let words = line.split(separator: " ", maxSplits: 3, omittingEmptySubsequences: false)
            guard words.count == 4, let start = Int64(words[0]), let end = Int64(words[1]),
                let status = Int32(words[2])
            else { return nil }
            let names = words[3].split(separator: "\u{1F}", omittingEmptySubsequences: false)
            self.init(
                startedAt: Timestamp(milliseconds: start), endedAt: Timestamp(milliseconds: end),
                exitStatus: status, manifest: names.joined(separator: "\n"))
        }

        fileprivate var line: String {
            let names = manifest.prefix(UnloggedRuns.longestNames).split(
                whereSeparator: \.isNewline)
            return "\(startedAt.milliseconds) \(endedAt.milliseconds) \(exitStatus) "
                + names.joined(separator: "\u{1F}") + "\n"
        }
    }

    package init(_ directory: CacheDirectory) {
        self.directory = directory
    }

    /// Notes a run that could not open its cache.
    package static func note(_ run: UnloggedRun, inCache path: String) {
        guard let directory = try? CacheDirectory(path: path, access: .existing) else { return }
        UnloggedRuns(directory).add(run)
    }

    /// The runs, in the order of their ends.
    var all: [UnloggedRun] {
        let bytes = FileDescriptor.beginning(
            of: UnloggedRuns.fileName, in: directory.handle, limit: UnloggedRuns.size)
        return String(decoding: bytes ?? [], as: UTF8.self).split(separator: "\n")
            .compactMap(UnloggedRun.init(line:))
    }

    /// Adds a run; the oldest ones make room.
    package func add(_ run: UnloggedRun) {
        var lines = (all.filter { $0.startedAt != run.startedAt } + [run]).map(\.line)
        while lines.reduce(0, { $0 + $1.utf8.count }) > UnloggedRuns.size { lines.removeFirst() }
        write(lines.joined())
    }

    /// Makes the file while there is space, and empties it.
    func reserve() {
        let status = directory.handle.status(of: UnloggedRuns.fileName)
        guard status.map({ Int($0.st_size) != UnloggedRuns.size }) ?? true || !all.isEmpty else {
            return
        }
        write("")
    }

    private func write(_ text: String) {
        var bytes = Array(text.utf8)
        bytes += repeatElement(UInt8(ascii: "\n"), count: UnloggedRuns.size - bytes.count)
        let name = UnloggedRuns.fileName
        let number = openat(
            directory.handle.number, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard number >= 0 else {
            try? directory.writeNewFile(name, bytes)
            return
        }
        let file = FileDescriptor(number)
        _ = bytes.withUnsafeBytes { pwrite(file.number, $0.baseAddress, $0.count, 0) }
    }
}

internal import CCrash
internal import CLinux
import Glibc
package import PrefetchModel
import Synchronization

/// The file `DIR/crashes`: images whose decoding ended a run by a fault of the program or of a
/// library, so that they cost one run and not each.
///
/// A line each, added by the handler of the fault (see `ccrash.h`): the SHA-256 of the bytes, in
/// hexadecimal digits, seconds since 1970 UTC, the number of the signal, with a space between them.
/// Lines that read otherwise, or are older than ``lifetime``, are ignored and dropped by the next run
/// that decodes something.
package final class CrashLog: Sendable {
    package struct Crash: Hashable, Sendable, CustomStringConvertible {
        package let time: Timestamp
        package let signal: Int32

        package var description: String {
            "decoding it ended the program at \(time) by signal \(signal); --retry-failed tries it again"
        }
    }

    /// How long an image is left alone.
    package static let lifetime = Duration.seconds(30 * 86400)

    package static let fileName = "crashes"

    /// Of ten thousand notes and more, of which one costs a run.
    private static let mostBytes = 1 << 20

    private struct State {
        var crashes: [ContentDigest: Crash] = [:]
        /// Whether the file has lines that are not wanted any more.
        var isChanged = false
    }

    private let state: Mutex<State>
    private let directory: CacheDirectory

    /// Reads the file; the wall clock is at `now`. Only for the holder of the lock.
    ///
    /// - Throws: when there is something that cannot be read, or is no regular file.
    package init(directory: CacheDirectory, at now: Timestamp) throws(StorageError) {
        self.directory = directory
        let earliest = now.advanced(by: .zero - CrashLog.lifetime)
        let latest = now.advanced(by: Timestamp.toleratedClockStep)
        var state = State()
        for line in try CrashLog.text(in: directory).split(separator: UInt8(ascii: "\n")) {
            guard let (digest, crash) = CrashLog.note(line), crash.time >= earliest,
                crash.time <= latest
            else {
                state.isChanged = true
                continue
            }
            state.crashes[digest] = crash
        }
        self.state = Mutex(state)
    }

    /// What a line says; nil of one that is no note.
    private static func note(_ line: ArraySlice<UInt8>) -> (ContentDigest, Crash)? {
        let fields = line.split(separator: UInt8(ascii: " ")).map {
            String(decoding: $0, as: UTF8.self)
        }
        guard fields.count == 3, let digest = ContentDigest(hexadecimal: fields[0]),
            let seconds = Int64(fields[1]), let signal = Int32(fields[2])
        else { return nil }
        return (digest, Crash(time: Timestamp(seconds: seconds), signal: signal))
    }

    /// Lines of the file that are no notes; what is merely old does not count.
    ///
    /// - Throws: when there is something that cannot be read, or is no regular file.
    static func countStrangeLines(in directory: CacheDirectory) throws(StorageError) -> Int {
        try text(in: directory).split(separator: UInt8(ascii: "\n")).count { note($0) == nil }
    }

    /// Empty when there is no file.
    private static func text(in directory: CacheDirectory) throws(StorageError) -> [UInt8] {
        let path = directory.path(of: fileName)
        var status = stat()
        guard fstatat(directory.handle.number, fileName, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
            guard errno == ENOENT else { throw .system("stat", path) }
            return []
        }
        guard status.st_size <= CrashLog.mostBytes else {
            throw .refused(path, "is larger than any that prefetch writes", hint: "move it away")
        }
        let contents = FileDescriptor.contents(
            of: fileName, in: directory.handle, size: Int(status.st_size), path: path)
        switch contents {
        case .bytes(let bytes): return bytes
        case .missing: throw .refused(path, "is not a regular file", hint: "move it away")
        case .unreadable(let error): throw error
        }
    }

    /// Whether decoding has not ended any run; once true, it stays so.
    package var isEmpty: Bool { state.withLock { $0.crashes.isEmpty } }

    /// The last time that decoding the bytes of this digest ended a run; nil when it did not.
    package func crash(of digest: ContentDigest) -> Crash? {
        state.withLock { $0.crashes[digest] }
    }

    /// Calls `body`, which decodes the bytes of this digest on the present thread. A fault in it is
    /// noted, when the program has installed the handlers; after its return an earlier one is
    /// forgotten.
    package func whileDecoding<Result>(_ digest: ContentDigest, _ body: () -> Result) -> Result {
        digest.withBytes { bytes in
            if let start = bytes.baseAddress {
                ccrash_enter(start.assumingMemoryBound(to: UInt8.self))
            }
        }
        let result = body()
        ccrash_leave()
        state.withLock { state in
            if !state.crashes.isEmpty, state.crashes.removeValue(forKey: digest) != nil {
                state.isChanged = true
            }
        }
        return result
    }

    /// Faults are noted in this file from now on, until ``end()``.
    package func begin() {
        ccrash_set_file(directory.handle.number, CrashLog.fileName)
    }

    /// Drops the lines that are not wanted any more.
    ///
    /// - Throws: when the file cannot be written; it stays as it was.
    package func end() throws(StorageError) {
        ccrash_set_file(-1, "")
        let state = state.withLock { $0 }
        guard state.isChanged else { return }
        let (folder, path) = (directory.handle.number, directory.path(of: CrashLog.fileName))
        guard !state.crashes.isEmpty else {
            guard unlinkat(folder, CrashLog.fileName, 0) == 0 || errno == ENOENT else {
                throw .system("unlink", path)
            }
            return
        }
        let text = state.crashes.map { digest, crash in
            "\(digest) \(crash.time.milliseconds / 1000) \(crash.signal)\n"
        }.joined()
        let new = "tmp/" + CrashLog.fileName
        let number = openat(
            folder, new, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
            directory.creationMode)
        guard number >= 0 else { throw .system("open", directory.path(of: new)) }
        let file = FileDescriptor(number)
        try directory.giveMode(toNewFile: number, path: directory.path(of: new))
        // The standard library's `withUnsafeBytes` rethrows without the error's type.
        let outcome = Array(text.utf8).withUnsafeBytes { bytes in
            Result { () throws(StorageError) in
                try FileDescriptor.write(bytes, to: file.number, path: directory.path(of: new))
            }
        }
        try outcome.get()
        guard renameat(folder, new, folder, CrashLog.fileName) == 0 else {
            throw .system("rename", path)
        }
    }
}

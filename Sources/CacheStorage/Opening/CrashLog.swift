import Glibc
package import PrefetchModel
import Synchronization

/// The file `DIR/crashes`: images that crashed a decoder, which later runs skip. One line each: the
/// SHA-256 of the bytes in hexadecimal digits, seconds since 1970 UTC and the number of the signal,
/// or 0, separated by spaces. The next run that decodes something removes malformed and expired
/// lines, see ``lifetime``.
package final class CrashLog: Sendable {
    package struct Crash: Hashable, Sendable, CustomStringConvertible {
        package let time: Timestamp
        package let signal: Int32

        package var description: String {
            "its decoder crashed at \(time)" + (signal > 0 ? " by signal \(signal)" : "")
                + "; --retry-failed tries it again"
        }
    }

    package static let lifetime = Duration.seconds(30 * 86400)

    package static let fileName = "crashes"

    /// Room for ``mostCrashes``, and as many malformed lines.
    private static let mostBytes = 2 << 20
    /// More are not noted: a list may have any number of hostile images.
    private static let mostCrashes = 10_000

    private struct KnownCrashes {
        var crashes: [ContentDigest: Crash] = [:]
        /// Whether the file has lines to remove.
        var isChanged = false
    }

    private let state: Mutex<KnownCrashes>
    private let directory: CacheDirectory

    /// Reads the file; the wall clock is at `now`. Only for the holder of the lock.
    package init(directory: CacheDirectory, at now: Timestamp) throws(StorageError) {
        self.directory = directory
        let earliest = now.advanced(by: .zero - CrashLog.lifetime)
        let latest = now.advanced(by: Timestamp.toleratedClockStep)
        var state = KnownCrashes()
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

    private static func note(_ line: ArraySlice<UInt8>) -> (ContentDigest, Crash)? {
        let fields = line.split(separator: UInt8(ascii: " ")).map {
            String(decoding: $0, as: UTF8.self)
        }
        guard fields.count == 3, let digest = ContentDigest(hexadecimal: fields[0]),
            let seconds = Int64(fields[1]), let signal = Int32(fields[2])
        else { return nil }
        return (digest, Crash(time: Timestamp(seconds: seconds), signal: signal))
    }

    /// The number of malformed lines, without expired ones.
    package static func countStrangeLines(
        in directory: CacheDirectory
    ) throws(StorageError) -> Int {
        try text(in: directory).split(separator: UInt8(ascii: "\n")).count { note($0) == nil }
    }

    private static func text(in directory: CacheDirectory) throws(StorageError) -> [UInt8] {
        let path = directory.path(of: fileName)
        guard let status = try directory.handle.existingStatus(of: fileName) else { return [] }
        guard status.size <= CrashLog.mostBytes else {
            throw .refused(path, "is larger than any that prefetch writes", hint: "move it away")
        }
        let contents = FileDescriptor.contents(
            of: fileName, in: directory.handle, size: status.size)
        switch contents {
        case .whole(let bytes): return bytes
        case .damaged: throw .refused(path, "is not a regular file", hint: "move it away")
        case .unreadable(let error): throw error
        }
    }

    /// Adds the crashes of another log. Of two of the same image, the later one is kept.
    func unite(with other: CrashLog) {
        let crashes = other.state.withLock { $0.crashes }
        state.withLock { state in
            for (digest, crash) in crashes {
                if let known = state.crashes[digest],
                    (known.time, known.signal) >= (crash.time, crash.signal)
                {
                    continue
                }
                state.crashes[digest] = crash
                state.isChanged = true
            }
        }
    }

    /// Whether no decoding has crashed a run; once true, it stays so.
    package var isEmpty: Bool { state.withLock { $0.crashes.isEmpty } }

    /// The last crash while decoding the bytes of this digest; nil without one.
    package func crash(of digest: ContentDigest) -> Crash? {
        state.withLock { $0.crashes[digest] }
    }

    /// Notes the outcome of decoding these bytes: a crash by a signal, or 0, written before it
    /// returns; nil removes earlier crashes.
    package func note(_ signal: Int32?, of digest: ContentDigest) throws(StorageError) {
        guard let signal else {
            return state.withLock { state in
                if !state.crashes.isEmpty, state.crashes.removeValue(forKey: digest) != nil {
                    state.isChanged = true
                }
            }
        }
        let crash = Crash(time: Timestamp(seconds: Int64(time(nil))), signal: signal)
        let isNoted = state.withLock { state in
            let isNoted = state.crashes.count < CrashLog.mostCrashes
            if isNoted { state.crashes[digest] = crash }
            return isNoted
        }
        guard isNoted else { return }
        try directory.append(
            "\(digest) \(crash.time.milliseconds / 1000) \(signal)\n", to: CrashLog.fileName)
    }

    /// Removes malformed and expired lines.
    package func end() throws(StorageError) {
        let state = state.withLock { $0 }
        guard state.isChanged else { return }
        guard !state.crashes.isEmpty else { return try directory.remove(CrashLog.fileName) }
        let text = state.crashes.map { digest, crash in
            "\(digest) \(crash.time.milliseconds / 1000) \(crash.signal)\n"
        }.joined()
        let new = "tmp/" + CrashLog.fileName
        try directory.writeNewFile(new, Array(text.utf8), replaces: true)
        try directory.rename(new, to: CrashLog.fileName)
    }
}

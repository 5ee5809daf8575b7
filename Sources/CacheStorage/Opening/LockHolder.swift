import Glibc
package import PrefetchModel

/// The holder of a cache's lock, as it has written itself into the lock file.
package struct LockHolder: Hashable, Sendable {
    package let process: Int32
    /// The host's name; the cache may be on a shared file system.
    package let host: String
    package let since: Timestamp

    /// This process, holding from now on.
    static func current() -> LockHolder {
        LockHolder(process: getpid(), host: localHost, since: Timestamp(seconds: Int64(time(nil))))
    }

    /// `PID HOST MILLISECONDS` and a line end.
    var line: String { "\(process) \(host) \(since.milliseconds)\n" }

    /// Whether it may hold the lock now. A process of this host that has ended does not; its
    /// successor has not written its line yet.
    var mayBeAlive: Bool {
        host != LockHolder.localHost || kill(process, 0) == 0 || errno == EPERM
    }

    private static var localHost: String {
        var name = utsname()
        guard uname(&name) == 0 else { return "-" }
        let text = withUnsafeBytes(of: &name.nodename) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        return text.isEmpty || text.contains(where: \.isWhitespace) ? "-" : text
    }
}

extension LockHolder {
    /// Parses the line of a lock file; nil for any other text, such as an empty file.
    init?(line: some Sequence<UInt8>) {
        let words = String(decoding: Array(line), as: UTF8.self).split(
            whereSeparator: \.isWhitespace)
        guard words.count == 3, let process = Int32(words[0]), process > 0,
            let milliseconds = Int64(words[2])
        else { return nil }
        self.init(
            process: process, host: String(words[1]),
            since: Timestamp(milliseconds: milliseconds))
    }
}

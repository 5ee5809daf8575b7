import Glibc

/// A file that an argument names; `-` is standard input.
struct InputFile {
    /// The system's message about a file that can't be read.
    struct Failure: Error {
        let message: String
    }

    private let path: String

    init(_ path: String) {
        self.path = path
    }

    /// The file's name in messages.
    var name: String { path == "-" ? "standard input" : path }

    /// Reads the file, or the first `limit` bytes of it.
    func read(limit: Int) throws(Failure) -> [UInt8] {
        let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw InputFile.failure() }
        defer { if descriptor != STDIN_FILENO { close(descriptor) } }
        var bytes: [UInt8] = []
        var room = InputFile.sizeHint(descriptor)
        while bytes.count < limit {
            // The buffer doubles, so that copying a pipe's data stays linear.
            let (start, wanted) = (bytes.count, min(room, limit - bytes.count))
            bytes.append(contentsOf: repeatElement(0, count: wanted))
            let result = bytes.withUnsafeMutableBytes {
                Glibc.read(descriptor, $0.baseAddress?.advanced(by: start), wanted)
            }
            let code = errno
            bytes.removeLast(wanted - max(0, result))
            if result < 0, code == EINTR { continue }
            errno = code
            guard result >= 0 else { throw InputFile.failure() }
            guard result > 0 else { break }
            room = max(64 << 10, bytes.count)
        }
        return bytes
    }

    /// One byte more than a regular file has, so that the first read finds its end.
    private static func sizeHint(_ descriptor: Int32) -> Int {
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            return 64 << 10
        }
        return max(0, Int(status.st_size)) + 1
    }

    private static func failure() -> Failure {
        Failure(message: "cannot read: \(String(cString: strerror(errno)))")
    }
}

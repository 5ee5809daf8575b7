import Glibc

/// A file that an argument names; `-` is standard input.
struct InputFile {
    /// Why a file can't be read.
    struct Failure: Error {
        /// The system's error; nil if it is not a regular file.
        let code: Int32?

        /// The cause alone.
        var cause: String {
            code.map { String(cString: strerror($0)) } ?? "not a regular file"
        }

        var message: String { code == nil ? cause : "cannot read: \(cause)" }
    }

    private let path: String

    init(_ path: String) {
        self.path = path
    }

    /// The file's name in messages.
    var name: String { path == "-" ? "standard input" : path }

    /// Reads the file, or the first `limit` bytes of it.
    func read(limit: Int) throws(Failure) -> [UInt8] {
        let descriptor = path == "-" ? STDIN_FILENO : try InputFile.open(path)
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
            guard result >= 0 else { throw Failure(code: errno) }
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

    /// Opens a file for reading. A named pipe without a writer is empty, instead of waiting for
    /// one.
    ///
    /// - Returns: the descriptor, for the caller to close.
    private static func open(_ path: String) throws(Failure) -> Int32 {
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw Failure(code: errno) }
        // Only opening must not wait.
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK)
        return descriptor
    }

    /// Opens a regular file for reading.
    ///
    /// - Returns: the descriptor, for the caller to close.
    static func openRegular(_ path: String) throws(Failure) -> Int32 {
        let descriptor = try open(path)
        var status = stat()
        let code = fstat(descriptor, &status) == 0 ? nil : errno
        guard code == nil, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw Failure(code: code)
        }
        return descriptor
    }
}

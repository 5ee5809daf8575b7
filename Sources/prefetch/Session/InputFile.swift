import CLinux
import Glibc
import PrefetchModel

enum InputFileError: ReportableError {
    case system(errno: Int32)
    case notRegular
    /// A named pipe that no process opened for writing in time.
    case unwrittenPipe
    /// A link leads out of the folder that the file must be in.
    case outside

    /// The cause alone.
    var cause: String {
        switch self {
        case .system(let code): String(cString: strerror(code))
        case .notRegular: "not a regular file"
        case .unwrittenPipe: "a named pipe that no process writes"
        case .outside: "a symbolic link leads out of the folder"
        }
    }

    var message: String {
        if case .system = self { return "cannot read: \(cause)" }
        return cause
    }

    var userError: UserError { UserError(message) }
}

/// A file that an argument names; `-` is standard input.
struct InputFile {
    /// The time in which a named pipe must get a writer, in milliseconds.
    private static let writerPatience: Int32 = 5_000

    private let path: String

    init(_ path: String) {
        self.path = path
    }

    /// The file's name in messages.
    var name: String { path == "-" ? "standard input" : path }

    /// Reads the file, or the first `limit` bytes of it.
    func read(limit: Int) throws(UserError) -> [UInt8] {
        try reading { try InputFile.read($0, limit: limit) }
    }

    /// Reads the file in pieces of at most 256 KiB.
    func readPieces(_ body: (UnsafeRawBufferPointer) -> Void) throws(UserError) {
        try reading { descriptor in
            // One buffer for all pieces: new memory costs more than the reading.
            var piece: [UInt8] = []
            let limit = 256 << 10
            repeat {
                piece.removeAll(keepingCapacity: true)
                try InputFile.read(descriptor, limit: limit, into: &piece)
                piece.withUnsafeBytes(body)
                // An incomplete piece is the last one.
            } while piece.count == limit
        }
    }

    private func reading<Value>(_ body: (Int32) throws -> Value) throws(UserError) -> Value {
        try reporting(as: { $0.subject = name }) {
            let descriptor = path == "-" ? STDIN_FILENO : try InputFile.open(path)
            defer { if descriptor != STDIN_FILENO { close(descriptor) } }
            return try body(descriptor)
        }
    }

    /// Reads an open file, or the first `limit` bytes of it.
    static func read(_ descriptor: Int32, limit: Int) throws(InputFileError) -> [UInt8] {
        var bytes: [UInt8] = []
        try read(descriptor, limit: limit, into: &bytes)
        return bytes
    }

    /// The same, appended to an empty buffer.
    private static func read(
        _ descriptor: Int32, limit: Int, into bytes: inout [UInt8]
    ) throws(InputFileError) {
        var room = InputFile.sizeHint(descriptor)
        var waitsForWriter = descriptor != STDIN_FILENO && InputFile.isPipe(descriptor)
        var isUnwritten = false
        while bytes.count < limit {
            // The buffer doubles: copying a pipe's data stays linear.
            let (start, wanted) = (bytes.count, min(room, limit - bytes.count))
            bytes.append(contentsOf: repeatElement(0, count: wanted))
            let result = bytes.withUnsafeMutableBytes {
                Glibc.read(descriptor, $0.baseAddress?.advanced(by: start), wanted)
            }
            let code = errno
            bytes.removeLast(wanted - max(0, result))
            if result == 0, bytes.isEmpty, waitsForWriter {
                // A read tells whether a writer without bytes has come.
                waitsForWriter = false
                isUnwritten = !InputFile.wait(
                    for: descriptor, milliseconds: InputFile.writerPatience)
                continue
            }
            if result == 0, bytes.isEmpty, isUnwritten { throw .unwrittenPipe }
            if result < 0, code == EAGAIN {
                // There is a writer.
                (waitsForWriter, isUnwritten) = (false, false)
                _ = InputFile.wait(for: descriptor, milliseconds: -1)
                continue
            }
            if result < 0, code == EINTR { continue }
            guard result >= 0 else { throw .system(errno: code) }
            guard result > 0 else { break }
            room = max(64 << 10, bytes.count)
        }
    }

    /// Waits for bytes, or for the end of a writer. Returns false when the time is over.
    private static func wait(for descriptor: Int32, milliseconds: Int32) -> Bool {
        let end = ContinuousClock.now + .milliseconds(Int(milliseconds))
        while true {
            let left = Int32((end - .now) / .milliseconds(1))
            var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let result = poll(&request, 1, milliseconds < 0 ? -1 : max(0, left))
            if result > 0 { return true }
            if result == 0 { return false }
            // A signal interrupted it.
            guard errno == EINTR else { return true }
        }
    }

    private static func isPipe(_ descriptor: Int32) -> Bool {
        var status = stat()
        return fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO
    }

    /// One byte more than a regular file has: the first read then finds its end.
    private static func sizeHint(_ descriptor: Int32) -> Int {
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            return 64 << 10
        }
        return max(0, Int(status.st_size)) + 1
    }

    /// Opens a file without waiting for the writer of a named pipe. The caller closes it.
    private static func open(_ path: String) throws(InputFileError) -> Int32 {
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw .system(errno: errno) }
        return descriptor
    }

    /// Reads a regular file, or the first `limit` bytes of it.
    static func readRegular(_ path: String, limit: Int) throws(InputFileError) -> [UInt8] {
        let descriptor = try openRegular(path)
        defer { close(descriptor) }
        return try read(descriptor, limit: limit)
    }

    /// Opens a regular file for reading. The caller closes it.
    static func openRegular(_ path: String) throws(InputFileError) -> Int32 {
        try checkRegular(try open(path))
    }

    /// Returns an open file if it is a regular one, and closes it otherwise.
    static func checkRegular(_ descriptor: Int32) throws(InputFileError) -> Int32 {
        var status = stat()
        let code = fstat(descriptor, &status) == 0 ? nil : errno
        guard code == nil, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw code.map(InputFileError.system) ?? .notRegular
        }
        return descriptor
    }

    static func names(in folder: String) throws(UserError) -> [String] {
        guard let listing = opendir(folder) else {
            throw UserError(folder, String(cString: strerror(errno)))
        }
        defer { closedir(listing) }
        var names: [String] = []
        while let entry = readdir(listing) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    private static let openFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK

    /// Opens a regular file of a folder for reading, as ``openRegular(_:)``.
    ///
    /// - Throws: ``InputFileError/outside`` for links and `..` out of the folder.
    static func openRegular(_ path: String, in folder: String) throws(InputFileError) -> Int32 {
        let parent = Glibc.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard parent >= 0 else { throw .system(errno: errno) }
        defer { close(parent) }
        let found = clinux_open_beneath(parent, path, openFlags)
        if found >= 0 { return try checkRegular(found) }
        switch errno {
        case EXDEV: throw .outside
        // Old kernels and some containers.
        case ENOSYS, EPERM: return try checkRegular(openWithoutLinks(path, in: parent))
        default: throw .system(errno: errno)
        }
    }

    /// Opens a file by one folder after the other, and follows no link.
    private static func openWithoutLinks(_ path: String, in folder: Int32) throws(InputFileError)
        -> Int32
    {
        let names = path.split(separator: "/").map(String.init)
        guard let file = names.last, !names.contains("..") else { throw .outside }
        func open(_ name: String, in folder: Int32, _ flags: Int32) throws(InputFileError) -> Int32
        {
            let found = openat(folder, name, openFlags | O_NOFOLLOW | flags)
            if found >= 0 { return found }
            var status = stat()
            let code = errno
            let isLink =
                fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0
                && status.st_mode & S_IFMT == S_IFLNK
            throw isLink ? .outside : .system(errno: code)
        }
        var current = folder
        defer { if current != folder { close(current) } }
        for name in names.dropLast() {
            let next = try open(name, in: current, O_DIRECTORY)
            if current != folder { close(current) }
            current = next
        }
        return try open(file, in: current, 0)
    }
}

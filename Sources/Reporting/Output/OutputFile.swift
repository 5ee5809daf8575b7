package import FileOutput
internal import Glibc
internal import PrefetchModel

/// An open descriptor for writing. A descriptor opened here is closed at the latest when the value
/// is destroyed.
///
/// The process must ignore `SIGPIPE`; otherwise a closed pipe kills it before `EPIPE` is reported.
package struct OutputFile: ~Copyable, Sendable {
    private var descriptor: Int32
    private let isOwned: Bool
    /// The name in messages: a path, or `standard output`.
    package let name: String

    deinit {
        // Only without `close()`: after an error that was thrown, or when the owner gave up.
        if isOwned, descriptor >= 0 { _ = Glibc.close(descriptor) }
    }
}

extension OutputFile {
    /// Takes a descriptor that the caller closes.
    package init(borrowing descriptor: Int32, name: String) {
        self.init(descriptor: descriptor, isOwned: false, name: name)
    }

    /// Creates or empties the file; `-` is standard output.
    ///
    /// The mode is 0666 less the umask.
    ///
    /// - Throws: ``OutputError`` if the file can't be opened, is behind a stranger's link (see
    ///   ``FilePlace``), or is a named pipe that gets no reader within five seconds: waiting longer
    ///   would keep the cache locked.
    package init(path: String) throws(OutputError) {
        guard path != "-" else {
            self.init(borrowing: STDOUT_FILENO, name: "standard output")
            return
        }
        let place = try FilePlace(path)
        let patience = ContinuousClock.now + .seconds(5)
        var opened: Int32
        var flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK
        while true {
            opened = place.open(flags, mode: 0o666)
            if opened >= 0 { break }
            let code = errno
            if code == EINTR { continue }
            guard code == ENXIO, OutputFile.isPipe(path) else {
                throw .system("open", path, code)
            }
            // A pipe that is removed meanwhile is not replaced by a file.
            flags &= ~O_CREAT
            guard ContinuousClock.now < patience else { throw .unreadPipe(subject: path) }
            // No event reports a new reader.
            usleep(20_000)
        }
        // Only opening must not wait.
        _ = fcntl(opened, F_SETFL, fcntl(opened, F_GETFL) & ~O_NONBLOCK)
        self.init(descriptor: opened, isOwned: true, name: path)
    }

    /// Opens an existing file for appending.
    ///
    /// - Throws: ``OutputError`` if the file can't be opened, or is a pipe without a reader.
    package init(appendingTo path: String) throws(OutputError) {
        let opened = try FilePlace(path).open(
            O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK, mode: 0)
        guard opened >= 0 else {
            throw .system("open", path, errno)
        }
        self.init(descriptor: opened, isOwned: true, name: path)
    }

    private static func isPipe(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO
    }

    package var isStandardOutput: Bool { descriptor == STDOUT_FILENO }

    borrowing func synchronize() throws(OutputError) {
        guard isOwned, descriptor >= 0 else { return }
        try OutputFolder.synchronize(descriptor, name)
    }

    /// Writes all bytes: continues after short writes and interruptions, and waits if the
    /// descriptor is non-blocking.
    ///
    /// - Throws: ``OutputError``; some of the bytes may have been written.
    package borrowing func write(_ bytes: [UInt8]) throws(OutputError) {
        try write(bytes[...])
    }

    /// Writes all bytes of a slice; see ``write(_:)-([UInt8])``.
    package borrowing func write(_ bytes: ArraySlice<UInt8>) throws(OutputError) {
        try bytes.span.withUnsafeBytes { buffer throws(OutputError) in try write(buffer) }
    }

    /// Writes all bytes of a buffer; see ``write(_:)-([UInt8])``. Text for a CI service's log
    /// holds no commands.
    borrowing func write(_ buffer: UnsafeRawBufferPointer) throws(OutputError) {
        guard WorkflowCommand.areObeyed, isPrinted else {
            return try FileBytes.write(buffer, to: descriptor, name)
        }
        let bytes = WorkflowCommand.defused(buffer)
        try FileBytes.write(bytes, to: descriptor, name)
    }

    /// Whether the bytes may become lines of a log: standard error, and data that no shell
    /// redirects to a file, also by another name such as `/dev/stdout`.
    private var isPrinted: Bool {
        if descriptor == STDERR_FILENO { return true }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return descriptor == STDOUT_FILENO }
        guard status.st_mode & S_IFMT != S_IFREG else { return false }
        return [STDOUT_FILENO, STDERR_FILENO].contains { log in
            var other = stat()
            return fstat(log, &other) == 0
                && (other.st_dev, other.st_ino) == (status.st_dev, status.st_ino)
        }
    }

    borrowing func write(commands: String) throws(OutputError) {
        try FileBytes.write(Array(commands.utf8), to: descriptor, name)
    }

    /// Closes an owned descriptor; a second call does nothing.
    ///
    /// - Throws: ``OutputError`` if the system reports a late write error.
    package mutating func close() throws(OutputError) {
        guard isOwned, descriptor >= 0 else { return }
        let closing = descriptor
        descriptor = -1
        // Linux closes the descriptor even if it returns EINTR (close(2), Notes).
        if Glibc.close(closing) != 0, errno != EINTR {
            throw .system("close", name, errno)
        }
    }
}

/// Buffered lines to an ``OutputFile``: the output of commands, as text or as JSON Lines.
package struct LineWriter: ~Copyable, Sendable {
    private var file: OutputFile
    private var buffer: [UInt8] = []

    package init(_ file: consuming OutputFile) {
        self.file = file
    }

    package mutating func write(_ object: JSONObject) throws(OutputError) {
        buffer += object.bytes
        try endLine()
    }

    /// Writes a line as it is, with a line end added; see ``printable(_:)``.
    package mutating func write(line: String) throws(OutputError) {
        buffer += line.utf8
        try endLine()
    }

    package mutating func finish() throws(OutputError) {
        try flush()
        try file.close()
    }

    private mutating func endLine() throws(OutputError) {
        buffer.append(UInt8(ascii: "\n"))
        if buffer.count >= 64 << 10 { try flush() }
    }

    /// Writes the buffered lines, for a reader that waits for them.
    package mutating func flush() throws(OutputError) {
        guard !buffer.isEmpty else { return }
        // Emptied even on failure: some bytes may have been written.
        defer { buffer.removeAll(keepingCapacity: true) }
        try file.write(buffer)
    }
}

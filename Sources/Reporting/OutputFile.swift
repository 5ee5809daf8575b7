internal import Glibc

/// An open descriptor that is written to; one that was opened here is closed at the latest when
/// the value's life ends.
///
/// `SIGPIPE` must be ignored in the process, as the program does at its start; otherwise a closed
/// pipe kills it before `EPIPE` can be reported.
package struct OutputFile: ~Copyable, Sendable {
    private var descriptor: Int32
    private let isOwned: Bool
    /// What messages call it: a path, or `standard output`.
    package let name: String

    /// Takes a descriptor that stays the caller's to close.
    package init(borrowing descriptor: Int32, name: String) {
        self.descriptor = descriptor
        self.name = name
        isOwned = false
    }

    /// Creates the file or empties it; `-` is standard output.
    ///
    /// The mode is 0666 less the umask. A named pipe waits for its reader, as in a shell.
    ///
    /// - Throws: ``ReportingError`` when it cannot be opened.
    package init(path: String) throws(ReportingError) {
        guard path != "-" else {
            self.init(borrowing: STDOUT_FILENO, name: "standard output")
            return
        }
        var opened: Int32
        repeat {
            opened = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
        } while opened < 0 && errno == EINTR
        guard opened >= 0 else {
            throw ReportingError(operation: "open", subject: path, code: errno)
        }
        self.init(owning: opened, name: path)
    }

    private init(owning descriptor: Int32, name: String) {
        self.descriptor = descriptor
        self.name = name
        isOwned = true
    }

    deinit {
        // Reached without `close()` only after an error that was thrown already, or when the owner
        // gave up; what was written before is not made worse by what close answers.
        if isOwned, descriptor >= 0 { _ = Glibc.close(descriptor) }
    }

    /// Whether it is the process's standard output.
    package var isStandardOutput: Bool { descriptor == STDOUT_FILENO }

    /// Writes all bytes: goes on after short writes and interruptions, and waits where the
    /// descriptor does not block by itself.
    ///
    /// - Throws: ``ReportingError``; then a part of the bytes may have been written.
    package borrowing func write(_ bytes: [UInt8]) throws(ReportingError) {
        try write(bytes[...])
    }

    /// The same of a part of an array.
    package borrowing func write(_ bytes: ArraySlice<UInt8>) throws(ReportingError) {
        let result = bytes.withUnsafeBytes { buffer in
            Result { () throws(ReportingError) in try write(buffer) }
        }
        try result.get()
    }

    /// The same of bytes in memory.
    borrowing func write(_ buffer: UnsafeRawBufferPointer) throws(ReportingError) {
        let failure = { () -> (operation: String, code: Int32)? in
            var offset = 0
            while offset < buffer.count {
                let count = Glibc.write(
                    descriptor, buffer.baseAddress?.advanced(by: offset), buffer.count - offset)
                if count > 0 {
                    offset += count
                } else if count == 0 {
                    // No file that takes bytes answers so; going on could turn for ever.
                    return ("write", EIO)
                } else if errno == EAGAIN {
                    var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    if poll(&request, 1, -1) < 0, errno != EINTR { return ("wait", errno) }
                } else if errno != EINTR {
                    return ("write", errno)
                }
            }
            return nil
        }()
        if let failure {
            throw ReportingError(operation: failure.operation, subject: name, code: failure.code)
        }
    }

    /// Closes an owned descriptor; a second call does nothing.
    ///
    /// - Throws: ``ReportingError`` when the system reports a late write error.
    package mutating func close() throws(ReportingError) {
        guard isOwned, descriptor >= 0 else { return }
        let closing = descriptor
        descriptor = -1
        // Linux has closed the descriptor even when it answers EINTR (close(2), Notes).
        if Glibc.close(closing) != 0, errno != EINTR {
            throw ReportingError(operation: "close", subject: name, code: errno)
        }
    }
}

internal import Glibc

/// A new file that takes the place of an older one when it is complete: readers see the old one or
/// the new one, whole. A symbolic link stays, and its target is replaced.
///
/// Without ``commit()`` the new file is removed. Only a kill leaves it behind.
package struct ReplacingFile: ~Copyable, Sendable {
    private var file: OutputFile
    private let path: String
    private let target: String
    /// In the target's folder, and with a name that collectors of `*.prom` do not read.
    private let temporary: String
    private var isDone = false

    /// - Throws: ``ReportingError`` if a file at this path cannot be replaced, see
    ///   ``OutputFile/checkReplacing(_:)``.
    package init(_ path: String) throws(ReportingError) {
        try OutputFile.checkReplacing(path)
        let target = OutputFile.target(of: path)
        let temporary = "\(target).\(getpid()).new"
        file = try OutputFile(path: temporary)
        self.path = path
        self.target = target
        self.temporary = temporary
    }

    deinit {
        if !isDone { unlink(temporary) }
    }

    package borrowing func write(_ bytes: [UInt8]) throws(ReportingError) {
        try file.write(bytes)
    }

    /// Overwrites the first bytes. Nothing can be appended after it.
    package borrowing func overwriteStart(_ bytes: [UInt8]) throws(ReportingError) {
        try file.rewind()
        try file.write(bytes)
    }

    /// Closes the file and puts it in its place.
    ///
    /// - Throws: ``ReportingError``; the old file is unchanged then.
    package mutating func commit() throws(ReportingError) {
        try file.close()
        guard rename(temporary, target) == 0 else {
            throw ReportingError(operation: "rename", subject: path, code: errno)
        }
        isDone = true
    }

    /// Removes the new file.
    package mutating func discard() {
        unlink(temporary)
        isDone = true
    }
}

internal import Glibc

extension OutputFile {
    /// Checks that ``replace(_:with:)`` may succeed.
    ///
    /// - Throws: ``ReportingError`` if the folder cannot be written, or if the path leads to
    ///   something other than a regular file: a device or a pipe must not be replaced.
    package static func checkReplacing(_ path: String) throws(ReportingError) {
        var status = stat()
        if stat(path, &status) == 0 {
            guard status.st_mode & S_IFMT == S_IFREG else {
                throw ReportingError(operation: "replace", subject: path, code: EEXIST)
            }
        } else if errno != ENOENT {
            throw ReportingError(operation: "stat", subject: path, code: errno)
        }
        let target = target(of: path)
        let folder = target.lastIndex(of: "/").map { target[...$0] } ?? "."
        guard access(String(folder), W_OK | X_OK) == 0 else {
            throw ReportingError(operation: "replace", subject: path, code: errno)
        }
    }

    /// Replaces a file by one with this content: readers see the old one or the new one, whole. A
    /// symbolic link stays, and its target is replaced.
    ///
    /// - Throws: ``ReportingError``; the old file is unchanged then.
    package static func replace(_ path: String, with bytes: [UInt8]) throws(ReportingError) {
        try checkReplacing(path)
        let target = target(of: path)
        // In the same folder, and with a name that collectors of `*.prom` do not read.
        let temporary = "\(target).\(getpid()).new"
        func write() throws(ReportingError) {
            var file = try OutputFile(path: temporary)
            try file.write(bytes)
            try file.close()
            guard rename(temporary, target) == 0 else {
                throw ReportingError(operation: "rename", subject: path, code: errno)
            }
        }
        do throws(ReportingError) {
            try write()
        } catch {
            unlink(temporary)
            throw error
        }
    }

    /// Returns the path without symbolic links; the path itself if there is no file.
    private static func target(of path: String) -> String {
        guard let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        return String(cString: resolved)
    }
}

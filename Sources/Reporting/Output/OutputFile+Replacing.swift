internal import Glibc

extension OutputFile {
    /// Checks that a ``ReplacingFile`` may succeed.
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

    /// Replaces a file by one with this content, see ``ReplacingFile``.
    ///
    /// - Throws: ``ReportingError``; the old file is unchanged then.
    package static func replace(_ path: String, with bytes: [UInt8]) throws(ReportingError) {
        var file = try ReplacingFile(path)
        try file.write(bytes)
        try file.commit()
    }

    /// Returns the path without symbolic links; the path itself if there is no file.
    static func target(of path: String) -> String {
        guard let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        return String(cString: resolved)
    }
}

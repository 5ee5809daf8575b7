import Glibc

extension StorageError {
    /// A remedy after a refused access to a path of the cache: names the folder or file that
    /// does not allow it, and its mode.
    static func permissionHint(_ path: String) -> String {
        guard let (culprit, status) = firstRefusal(on: path) else {
            return "check the owner and the permissions, or name another place with --cache-dir"
        }
        let state = "\(culprit) has mode \(FileMode.text(status.st_mode & 0o7777))"
        guard status.st_uid == geteuid() else {
            let remedy =
                allows(R_OK, culprit)
                ? "run as that user, or name another place with --cache-dir"
                : "that user can let others read a cache: `prefetch chmod 0644`"
            return "\(state) and belongs to another user (uid \(status.st_uid)); \(remedy)"
        }
        let change = status.isFolder ? "-R u+rwX" : "u+rw"
        return "\(state): `chmod \(change) \(culprit)`"
    }

    /// Returns the outermost folder that may not be searched, else the path itself or its folder
    /// if the user may not read and write them; nil if all of this is allowed.
    private static func firstRefusal(on path: String) -> (path: String, status: stat)? {
        let folders = path.indices.filter { path[$0] == "/" && $0 > path.startIndex }
            .map { String(path[..<$0]) }
        let needed =
            folders.map { ($0, X_OK) }
            + [path, folders.last].compactMap { $0.map { ($0, R_OK | W_OK) } }
        for (path, access) in needed where !allows(access, path) {
            var status = stat()
            return stat(path, &status) == 0 ? (path, status) : nil
        }
        var status = stat()
        guard stat(path, &status) == 0, status.isFolder, !allows(X_OK, path) else { return nil }
        return (path, status)
    }

    /// Whether the access is not refused; a missing file refuses nothing.
    private static func allows(_ access: Int32, _ path: String) -> Bool {
        faccessat(AT_FDCWD, path, access, AT_EACCESS) == 0 || errno != EACCES
    }
}

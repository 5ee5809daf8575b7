import CacheStorage
import Glibc
import PrefetchModel

/// The folder of an export before it.
struct ExportFolder: Sendable {
    let parent: Folder
    let name: String
    /// Nil if it is new.
    let folder: Folder?
    /// Nil if no export has written it.
    let state: ExportState?

    /// Opens a folder by its path, links followed. It need not exist; its parents are created.
    init(_ path: String) throws(UserError) {
        let (parentPath, name) = try ExportFolder.place(of: path)
        parent = try Folder.openOrMake(parentPath)
        self.name = name
        try ExportFolder.recover(name, in: parent)
        folder = try parent.folder(name)
        state = try folder.flatMap(ExportFolder.state)
    }

    /// Opens a folder that exists; nil without one.
    static func existing(_ path: String) throws(UserError) -> ExportFolder? {
        guard try Folder.open(path) != nil else { return nil }
        return try ExportFolder(path)
    }

    /// Whether it is the current folder, or above it.
    var holdsCurrentFolder: Bool {
        guard let folder else { return false }
        var (own, current, above) = (stat(), stat(), stat())
        guard fstat(folder.number, &own) == 0 else { return false }
        var path = "."
        while stat(path, &current) == 0 {
            if current.st_dev == own.st_dev, current.st_ino == own.st_ino { return true }
            path += "/.."
            // The root is above itself.
            guard stat(path, &above) == 0,
                above.st_dev != current.st_dev || above.st_ino != current.st_ino
            else { return false }
        }
        return false
    }

    private static func place(of path: String) throws(UserError) -> (String, String) {
        var path = path
        if let resolved = realpath(path, nil) {
            defer { free(resolved) }
            path = String(cString: resolved)
        }
        while path.count > 1, path.hasSuffix("/") { path.removeLast() }
        let slash = path.lastIndex(of: "/")
        let name = slash.map { String(path[path.index(after: $0)...]) } ?? path
        guard !name.isEmpty, name != ".", name != ".." else {
            throw UserError(
                .failed, path, "cannot be exported to", hint: "name a folder in it")
        }
        let folder = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        return (folder, name)
    }

    /// Completes an exchange of folders in several steps that a kill interrupted.
    private static func recover(_ name: String, in parent: Folder) throws(UserError) {
        let oldName = oldName(of: name)
        guard let old = try parent.folder(oldName) else { return }
        guard try old.isOfExport(in: parent) else { throw .foreign(leftover: old.path) }
        guard parent.status(of: name) == nil else { return try parent.remove(folder: oldName) }
        guard renameat(parent.number, oldName, parent.number, name) == 0 else {
            throw .system("rename", parent.path(of: oldName))
        }
    }

    static func oldName(of name: String) -> String { ".\(name).prefetch-old" }

    /// Keeps other exports from the folder until the process ends.
    ///
    /// - Throws: ``UserError`` if another export writes there, or has just replaced the folder.
    func lock() throws(UserError) {
        guard let folder else { return }
        guard try folder.takeLock(), folder.isPresent(as: name, in: parent) else {
            throw .held(folder.path)
        }
    }

    private static func state(of folder: Folder) throws(UserError) -> ExportState? {
        guard let status = folder.status(of: ExportState.name), status.isFile else {
            return nil
        }
        return try folder.contents(of: ExportState.name).flatMap(ExportState.init)
    }

    /// The first file that no export wrote; nil without one.
    func foreignFile() throws(UserError) -> String? {
        guard let folder else { return nil }
        var foreign: String?
        let tables = Set(state?.records.compactMap { state?.table(of: $0.path) } ?? [])
        _ = try folder.forEachFile { path in
            if state?[path] != nil || ExportState.isOwn(path) || tables.contains(path) {
                return true
            }
            foreign = path
            return false
        }
        return foreign
    }
}

internal import CLinux
import CacheStorage
import Glibc
import PrefetchModel

/// The folder in which an export writes its files until they are put in place.
///
/// Only one process at a time can hold it. A killed process leaves it behind for the next one.
final class ExportStage {
    let folder: Folder
    /// The folder that it is in, and its name there.
    let parent: Folder
    let name: String
    private let mode: FileMode?
    private var cursor: FolderCursor

    /// Creates or opens the folder, locks it and removes its contents.
    ///
    /// - Throws: ``UserError`` if another process holds it.
    init(_ name: String, in parent: Folder, mode: FileMode?) throws(UserError) {
        self.parent = parent
        self.name = name
        self.mode = mode
        folder = try ExportStage.hold(name, in: parent, mode)
        cursor = FolderCursor(root: folder, mode: mode)
        try folder.removeContents()
        try mark()
    }

    private static func hold(
        _ name: String, in parent: Folder, _ mode: FileMode?
    ) throws(UserError) -> Folder {
        while true {
            let stage = try parent.makeFolder(name, mode: mode)
            guard try stage.takeLock() else { throw .held(parent.path(of: name)) }
            // The other one may have put it in place or removed it since it was opened.
            guard stage.isPresent(as: name, in: parent) else { continue }
            guard try stage.isOfExport(in: parent) else { throw .foreign(leftover: stage.path) }
            return stage
        }
    }

    func enter(_ path: String) throws(UserError) -> (folder: Folder, name: String) {
        try cursor.enter(path)
    }

    /// Marks the folder as that of an export, for the next one if this one is killed.
    private func mark() throws(UserError) { close(try makeState()) }

    /// Moves the state of the export to the folder that is updated.
    func moveState(to target: Folder) throws(UserError) {
        try folder.move(ExportState.name, to: (target, ExportState.name))
        try mark()
    }

    private func makeState() throws(UserError) -> Int32 {
        unlinkat(folder.number, ExportState.name, 0)
        let number = openat(
            folder.number, ExportState.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
            mode?.ofFiles ?? 0o666)
        guard number >= 0 else { throw .system("create", folder.path(of: ExportState.name)) }
        return number
    }

    func write(_ state: ExportState) throws(UserError) {
        let path = folder.path(of: ExportState.name)
        let number = try makeState()
        let file = Folder(number, path: path)
        if let mode { _ = try Folder.set("chmod", path, fchmod(number, mode.ofFiles)) }
        try UserError.ofExport { () throws(StorageError) in
            try CacheDirectory.writeAll(state.bytes, to: file.number, path: path)
        }
    }

    func synchronize() throws(UserError) {
        guard clinux_synchronize(folder.number) == 0 else { throw .system("sync", folder.path) }
    }

    func remove() throws(UserError) { try parent.remove(folder: name) }
}

@available(*, unavailable)
extension ExportStage: Sendable {}

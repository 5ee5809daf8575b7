internal import CLinux
internal import Glibc

/// Many files that are replaced together: all are written, then the file system is synchronised
/// once, then they take their places in the order in which they were added.
///
/// One `fsync` for each file would wait for the disk thousands of times. Without ``commit()`` the
/// new files are removed.
package final class ReplacingBatch {
    private struct Stage {
        let folder: OutputFolder
        let token: String
        /// An empty file with the lock of all.
        let lock: Int32
        let device: dev_t
        var count = 0
    }

    private struct File {
        let stage: Int
        let number: Int
        let name: String
    }

    private var stages: [Stage] = []
    private var files: [File] = []
    private var placed = 0

    package init() {}

    deinit { discard() }

    /// The number of files that wait for ``commit()``.
    package var count: Int { files.count }

    /// Opens a folder by its path, and removes files there that a killed process has left.
    package static func folder(_ path: String) throws(OutputError) -> OutputFolder {
        let folder = try FilePlace.folder(path)
        folder.removeLeftovers()
        return folder
    }

    /// Writes a file; `path` is for messages. A symbolic link stays, and its target is replaced.
    package func add(
        _ bytes: [UInt8], as name: String, in folder: OutputFolder, _ path: String
    ) throws(OutputError) {
        let place = try FilePlace(name, in: folder, path)
        try place.checkReplacing()
        let stage = try stage(of: place)
        let number = stages[stage].count
        stages[stage].count += 1
        let file = try place.folder.makeFile(
            OutputFolder.temporaryName(stages[stage].token, number: number), mode: 0o666, path)
        files.append(File(stage: stage, number: number, name: place.name))
        defer { close(file) }
        try FileBytes.write(bytes, to: file, path)
    }

    private func stage(of place: FilePlace) throws(OutputError) -> Int {
        if let index = stages.firstIndex(where: { $0.folder === place.folder }) { return index }
        let (token, lock) = try place.folder.makeTemporary(mode: 0o600, place.path)
        var status = stat()
        fstat(lock, &status)
        stages.append(
            Stage(folder: place.folder, token: token, lock: lock, device: status.st_dev))
        return stages.count - 1
    }

    /// Puts all files in their places.
    ///
    /// - Throws: ``OutputError``; each file is the old or the new one then.
    package func commit() throws(OutputError) {
        defer { discard() }
        var devices: Set<dev_t> = []
        for stage in stages where devices.insert(stage.device).inserted {
            try OutputFolder.synchronizeFileSystem(of: stage.lock, subject)
        }
        for file in files {
            let stage = stages[file.stage]
            try stage.folder.rename(
                OutputFolder.temporaryName(stage.token, number: file.number), to: file.name,
                file.name)
            placed += 1
        }
        for stage in stages { try stage.folder.synchronize(stage.lock, subject) }
    }

    private var subject: String { files.first?.name ?? "" }

    package func discard() {
        for file in files[placed...] {
            let stage = stages[file.stage]
            stage.folder.remove(OutputFolder.temporaryName(stage.token, number: file.number))
        }
        for stage in stages {
            stage.folder.remove(OutputFolder.temporaryName(stage.token))
            close(stage.lock)
        }
        (stages, files, placed) = ([], [], 0)
    }
}

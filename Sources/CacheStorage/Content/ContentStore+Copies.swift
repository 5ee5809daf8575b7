internal import CLinux
import Glibc
import PrefetchModel

extension ContentStore {
    /// Replaces content files that have other hard links by copies with the mode of new files,
    /// which share blocks where the file system can. Each copy replaces its file atomically, after
    /// all of them are on the disk. Only for the holder of the lock, while nothing is being stored.
    func makeOwn(
        _ names: [String], in folder: FileDescriptor, _ changes: inout OpenCache.ModeChanges
    ) throws(StorageError) {
        var copies: [(temporaryName: String, name: String)] = []
        do {
            for name in names {
                var size = 0
                let temporaryName = try makeTemporary { (number, newPath) throws(StorageError) in
                    try copy(name, in: folder, to: number, newPath, &size)
                }
                if let temporaryName {
                    copies.append((temporaryName, name))
                } else {
                    changes.withoutRoom += 1
                    changes.bytesWithoutRoom += size
                }
            }
            guard !copies.isEmpty else { return }
            // A power cut must not leave an empty file in the place of a whole one.
            try synchronize()
            while let copy = copies.popLast() {
                try place(copy.temporaryName, as: copy.name, in: folder)
                changes.files += 1
                changes.copied += 1
            }
        } catch {
            for copy in copies { unlinkat(temporary.number, copy.temporaryName, 0) }
            throw error
        }
    }

    /// Returns false if the disk has no room for the copy.
    private func copy(
        _ name: String, in folder: FileDescriptor, to number: Int32,
        _ newPath: String, _ size: inout Int
    ) throws(StorageError) -> Bool {
        let path = folder.path(of: name)
        guard let source = FileDescriptor.reading(name, in: folder) else {
            throw .system("open", path)
        }
        guard let status = source.status else { throw .system("stat", path) }
        size = status.size
        if clinux_clone(number, source.number) != 0 {
            if let free = directory.freeSize, free.bytes < size { return false }
            do {
                try FileDescriptor.copy(source, to: number, from: path, to: newPath)
            } catch {
                guard error.isDiskFull else { throw error }
                return false
            }
        }
        // Web servers derive validators from the time.
        var times = [status.st_atim, status.st_mtim]
        guard futimens(number, &times) == 0 else { throw .system("utimens", newPath) }
        ContentStore.copyAttributes(from: source.number, to: number)
        return true
    }
}

internal import Glibc

/// A new file that takes the place of an older one when it is complete: readers see the old one or
/// the new one, whole, also after a power cut. A symbolic link stays, and its target is replaced.
///
/// Without ``commit()`` the new file is removed. Only a kill leaves it behind, until the next file
/// in that folder is replaced.
package struct ReplacingFile: ~Copyable, Sendable {
    private let place: FilePlace
    private let temporary: String
    private var descriptor: Int32

    /// The names of a folder that are searched for files of killed processes: a large folder must
    /// not delay each file.
    private static let mostNames = 10_000

    /// - Parameters:
    ///   - path: the file, which may be missing.
    ///   - mode: the permissions of the new file, less the umask.
    /// - Throws: ``FileOutputError`` if a file at this path cannot be replaced, see
    ///   ``FilePlace/checkReplacing()``.
    package init(_ path: String, mode: UInt32 = 0o666) throws(FileOutputError) {
        let place = try FilePlace(path)
        try place.checkReplacing()
        place.folder.removeLeftovers(most: ReplacingFile.mostNames)
        let (token, file) = try place.folder.makeTemporary(mode: mode, path)
        self.place = place
        temporary = OutputFolder.temporaryName(token)
        descriptor = file
    }

    deinit {
        if descriptor >= 0 {
            place.folder.remove(temporary)
            close(descriptor)
        }
    }

    /// Appends bytes.
    package borrowing func write(_ bytes: [UInt8]) throws(FileOutputError) {
        try FileBytes.write(bytes, to: descriptor, place.path)
    }

    /// Overwrites the first bytes. Nothing can be appended after it.
    package borrowing func overwriteStart(_ bytes: [UInt8]) throws(FileOutputError) {
        guard lseek(descriptor, 0, SEEK_SET) == 0 else {
            throw .system("seek", place.path, errno)
        }
        try write(bytes)
    }

    /// Puts the file in its place, after its bytes are on the disk.
    ///
    /// - Throws: ``FileOutputError``; the old file is unchanged then, unless it is the folder that
    ///   cannot be synchronised.
    package mutating func commit() throws(FileOutputError) {
        try OutputFolder.synchronize(descriptor, place.path)
        // Closed last: its lock keeps other processes from removing it.
        try place.folder.rename(temporary, to: place.name, place.path)
        let file = descriptor
        descriptor = -1
        defer { close(file) }
        try place.folder.synchronize(file, place.path)
    }

    /// Removes the new file.
    package mutating func discard() {
        guard descriptor >= 0 else { return }
        place.folder.remove(temporary)
        close(descriptor)
        descriptor = -1
    }
}

enum FileBytes {
    /// Writes all bytes to a regular file.
    static func write(
        _ bytes: [UInt8], to file: Int32, _ path: String
    ) throws(FileOutputError) {
        let failure = bytes.withUnsafeBytes { buffer -> Int32? in
            var offset = 0
            while offset < buffer.count {
                let count = Glibc.write(
                    file, buffer.baseAddress?.advanced(by: offset), buffer.count - offset)
                if count > 0 {
                    offset += count
                } else if count == 0 || errno != EINTR {
                    return count == 0 ? EIO : errno
                }
            }
            return nil
        }
        if let failure { throw .system("write", path, failure) }
    }
}

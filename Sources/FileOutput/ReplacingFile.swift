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

    /// The names searched for files of killed processes: a large folder must not delay each file.
    private static let mostNames = 10_000

    /// The file may be missing; `mode` are the permissions of the new one, less the umask.
    ///
    /// - Throws: ``OutputError`` if a file at this path cannot be replaced, see
    ///   ``FilePlace/checkReplacing()``.
    package init(_ path: String, mode: UInt32 = 0o666) throws(OutputError) {
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

    package borrowing func write(_ bytes: [UInt8]) throws(OutputError) {
        try FileBytes.write(bytes, to: descriptor, place.path)
    }

    /// Overwrites the first bytes. Nothing can be appended after it.
    package borrowing func overwriteStart(_ bytes: [UInt8]) throws(OutputError) {
        guard lseek(descriptor, 0, SEEK_SET) == 0 else {
            throw .system("seek", place.path, errno)
        }
        try write(bytes)
    }

    /// Puts the file in its place, after its bytes are on the disk.
    ///
    /// - Throws: ``OutputError``; the old file is unchanged then, unless it is the folder that
    ///   cannot be synchronised.
    package mutating func commit() throws(OutputError) {
        try OutputFolder.synchronize(descriptor, place.path)
        // Closed last: its lock keeps other processes from removing it.
        try place.folder.rename(temporary, to: place.name, place.path)
        let file = descriptor
        descriptor = -1
        defer { close(file) }
        try place.folder.synchronize(file, place.path)
    }

    package mutating func discard() {
        guard descriptor >= 0 else { return }
        place.folder.remove(temporary)
        close(descriptor)
        descriptor = -1
    }
}

package enum FileBytes {
    /// Writes all bytes: continues after short writes and interruptions, and waits if the
    /// descriptor is non-blocking.
    ///
    /// - Throws: ``OutputError``; some of the bytes may have been written.
    package static func write(
        _ buffer: UnsafeRawBufferPointer, to file: Int32, _ path: String
    ) throws(OutputError) {
        var rest = buffer[...]
        while !rest.isEmpty {
            let count = Glibc.write(
                file, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if count == 0 {
                // Should not happen; trying again could loop without end.
                throw .system("write", path, EIO)
            } else if errno == EAGAIN {
                var request = pollfd(fd: file, events: Int16(POLLOUT), revents: 0)
                if poll(&request, 1, -1) < 0, errno != EINTR { throw .system("wait", path, errno) }
            } else if errno != EINTR {
                throw .system("write", path, errno)
            }
        }
    }

    package static func write(
        _ bytes: [UInt8], to file: Int32, _ path: String
    ) throws(OutputError) {
        try bytes.span.withUnsafeBytes { buffer throws(OutputError) in
            try write(buffer, to: file, path)
        }
    }
}

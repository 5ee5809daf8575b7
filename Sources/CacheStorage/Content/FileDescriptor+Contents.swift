internal import CLinux
import Glibc

// Whole files through descriptors.

extension FileDescriptor {
    /// Writes all bytes; the path is for messages.
    static func write(
        _ bytes: UnsafeRawBufferPointer, to number: Int32, path: @autoclosure () -> String
    ) throws(StorageError) {
        var offset = 0
        while offset < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
            let count = Glibc.write(number, rest.baseAddress, rest.count)
            if count > 0 {
                offset += count
            } else if errno != EINTR {
                throw .system("write", path())
            }
        }
    }

    /// What ``contents(of:in:size:path:)`` finds.
    enum Contents {
        /// So many bytes as were asked for, or less when the file was cut while it was read.
        case bytes([UInt8])
        /// There is no regular file of that name and size.
        case missing
        case unreadable(StorageError)
    }

    /// Reads a regular file below `parent` that has to be of that size; the path is for messages.
    static func contents(
        of name: String, in parent: FileDescriptor, size: Int, path: @autoclosure () -> String
    ) -> Contents {
        switch regularFile(name, in: parent, size: size, path: path()) {
        case .missing: return .missing
        case .unreadable(let error): return .unreadable(error)
        case .file(let file):
            var code: Int32 = 0
            let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
                (count, code) = fill(UnsafeMutableRawBufferPointer(buffer), from: file)
            }
            guard code == 0 else {
                errno = code
                return .unreadable(.system("read", path()))
            }
            return .bytes(bytes)
        }
    }

    /// The same into memory that is there, as large as the file has to be.
    ///
    /// - Returns: whether all of it was read.
    static func read(
        _ name: String, in parent: FileDescriptor, into buffer: UnsafeMutableRawBufferPointer,
        path: @autoclosure () -> String
    ) -> Bool {
        guard
            case .file(let file) = regularFile(
                name, in: parent, size: buffer.count, path: path())
        else { return false }
        return fill(buffer, from: file) == (buffer.count, 0)
    }

    /// What ``fill(_:from:in:path:)`` has done.
    enum Reading {
        case whole
        /// There is no regular file of that name and size, or it was cut meanwhile.
        case missing
        case unreadable(StorageError)
    }

    /// Reads a regular file below `parent` into memory as large as the file has to be; the path is for
    /// messages.
    static func fill(
        _ buffer: UnsafeMutableRawBufferPointer, from name: String, in parent: FileDescriptor,
        path: @autoclosure () -> String
    ) -> Reading {
        switch regularFile(name, in: parent, size: buffer.count, path: path()) {
        case .missing: return .missing
        case .unreadable(let error): return .unreadable(error)
        case .file(let file):
            let (count, code) = fill(buffer, from: file)
            guard code == 0 else {
                errno = code
                return .unreadable(.system("read", path()))
            }
            return count == buffer.count ? .whole : .missing
        }
    }

    /// Larger files are none of ours, whatever a row says: no format that is stored has 4 GiB, and nobody has the memory.
    static let mostBytes = 1 << 32

    private enum RegularFile {
        case file(FileDescriptor)
        case missing
        case unreadable(StorageError)
    }

    /// Opens a file for reading, if it is a regular one of that size.
    ///
    /// Symbolic links are not followed, and whatever may have taken the file's place, nothing is
    /// waited for: a FIFO would block.
    private static func regularFile(
        _ name: String, in parent: FileDescriptor, size: Int, path: @autoclosure () -> String
    ) -> RegularFile {
        let number = openat(
            parent.number, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard number >= 0 else {
            switch errno {
            case ENOENT, ENOTDIR, ELOOP, ENXIO: return .missing
            default: return .unreadable(.system("open", path()))
            }
        }
        let file = FileDescriptor(number)
        var status = stat()
        guard fstat(file.number, &status) == 0 else {
            return .unreadable(.system("stat", path()))
        }
        guard status.st_mode & S_IFMT == S_IFREG, Int(status.st_size) == size,
            size <= mostBytes
        else { return .missing }
        return .file(file)
    }

    /// Reads until the buffer is full or the file ends.
    ///
    /// - Returns: the count of bytes read, and the code of the error that ended it, or zero.
    private static func fill(
        _ buffer: UnsafeMutableRawBufferPointer, from file: FileDescriptor
    ) -> (count: Int, code: Int32) {
        var count = 0
        while count < buffer.count {
            let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
            let taken = Glibc.read(file.number, rest.baseAddress, rest.count)
            if taken > 0 {
                count += taken
            } else if taken == 0 {
                break
            } else if errno != EINTR {
                return (count, errno)
            }
        }
        return (count, 0)
    }
}

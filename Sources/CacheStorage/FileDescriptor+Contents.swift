import Glibc

// Whole files through descriptors.

extension FileDescriptor {
    /// Writes all bytes; the path is for messages.
    static func write(
        _ bytes: UnsafeRawBufferPointer, to number: Int32, path: String
    ) throws(StorageError) {
        var offset = 0
        while offset < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
            let count = Glibc.write(number, rest.baseAddress, rest.count)
            if count > 0 {
                offset += count
            } else if errno != EINTR {
                throw .system("write", path)
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
    ///
    /// Symbolic links are not followed, and whatever may have taken the file's place, nothing is
    /// waited for: a FIFO would block.
    static func contents(
        of name: String, in parent: FileDescriptor, size: Int, path: @autoclosure () -> String
    ) -> Contents {
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
        guard status.st_mode & S_IFMT == S_IFREG, Int(status.st_size) == size else {
            return .missing
        }
        var code: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            while count < buffer.count {
                let rest = UnsafeMutableBufferPointer(rebasing: buffer[count...])
                let taken = read(file.number, rest.baseAddress, rest.count)
                if taken > 0 {
                    count += taken
                } else if taken == 0 {
                    return
                } else if errno != EINTR {
                    code = errno
                    return
                }
            }
        }
        guard code == 0 else {
            errno = code
            return .unreadable(.system("read", path()))
        }
        return .bytes(bytes)
    }
}

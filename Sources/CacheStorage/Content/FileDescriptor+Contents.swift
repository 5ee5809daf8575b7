import Glibc

package enum FileReading<Value: Sendable>: Sendable {
    case whole(Value)
    /// No regular file has this name and size, it was truncated during the read, or its bytes do
    /// not match its name.
    case damaged
    /// The file may be intact.
    case unreadable(StorageError)

    package var whole: Value? { if case .whole(let value) = self { value } else { nil } }

    func flatMap<Other: Sendable>(_ body: (Value) -> FileReading<Other>) -> FileReading<Other> {
        switch self {
        case .whole(let value): body(value)
        case .damaged: .damaged
        case .unreadable(let error): .unreadable(error)
        }
    }
}

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

    static func copy(
        _ source: FileDescriptor, to number: Int32, from path: String, to newPath: String
    ) throws(StorageError) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 64)
        defer { buffer.deallocate() }
        while true {
            let (count, code) = fill(buffer, from: source)
            guard code == 0 else {
                errno = code
                throw .system("read", path)
            }
            guard count > 0 else { return }
            try write(UnsafeRawBufferPointer(rebasing: buffer[..<count]), to: number, path: newPath)
        }
    }

    /// Opens a file to read; nil with `errno`. Follows no symbolic link and never blocks.
    static func reading(_ name: String, in parent: FileDescriptor) -> FileDescriptor? {
        let number = openat(parent.number, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        return number >= 0 ? FileDescriptor(number) : nil
    }

    /// Reads a regular file of exactly this size below `parent`.
    static func contents(
        of name: String, in parent: FileDescriptor, size: Int
    ) -> FileReading<[UInt8]> {
        regularFile(name, in: parent, size: size).flatMap { file in
            var code: Int32 = 0
            let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
                (count, code) = fill(UnsafeMutableRawBufferPointer(buffer), from: file)
            }
            guard code == 0 else {
                errno = code
                return .unreadable(.system("read", parent.path(of: name)))
            }
            return bytes.count == size ? .whole(bytes) : .damaged
        }
    }

    /// The first bytes of a file, at most `limit`; nil as for ``reading(_:in:)``.
    static func beginning(of name: String, in parent: FileDescriptor, limit: Int) -> [UInt8]? {
        guard let file = reading(name, in: parent) else { return nil }
        return [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
            count = fill(UnsafeMutableRawBufferPointer(buffer), from: file).count
        }
    }

    /// Reads a regular file of the size of `buffer` into it.
    static func fill(
        _ buffer: UnsafeMutableRawBufferPointer, from name: String, in parent: FileDescriptor
    ) -> FileReading<Void> {
        regularFile(name, in: parent, size: buffer.count).flatMap { file in
            let (count, code) = fill(buffer, from: file)
            guard code == 0 else {
                errno = code
                return .unreadable(.system("read", parent.path(of: name)))
            }
            return count == buffer.count ? .whole(()) : .damaged
        }
    }

    /// A limit for sizes in damaged rows: no stored format reaches 4 GiB.
    static let mostBytes = 1 << 32

    /// Opens a regular file of this size. Never blocks, even if a FIFO has replaced the file.
    private static func regularFile(
        _ name: String, in parent: FileDescriptor, size: Int
    ) -> FileReading<FileDescriptor> {
        guard let file = reading(name, in: parent) else {
            switch errno {
            case ENOENT, ENOTDIR, ELOOP, ENXIO: return .damaged
            default: return .unreadable(.system("open", parent.path(of: name)))
            }
        }
        guard let status = file.status else {
            return .unreadable(.system("stat", parent.path(of: name)))
        }
        return status.isFile && status.size == size && size <= mostBytes ? .whole(file) : .damaged
    }

    /// Reads until the buffer is full or the file ends. Returns the number of bytes read, and the
    /// error code that ended the read, or zero.
    static func fill(
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

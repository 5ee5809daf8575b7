import Glibc

/// An open list of a cache, for one thread at a time; the file may have been replaced since.
package final class ListFile: Sendable {
    package let list: StoredList
    package let size: Int
    private let file: FileDescriptor
    private let start: Int

    /// The file's descriptor, valid while this value lives.
    package var descriptor: Int32 { file.number }

    /// Longer than any head: libcurl takes at most 300 KiB of fields.
    private static let maximumHeadBytes = 1 << 20

    /// `start` is the size of the head with its end.
    init(_ list: StoredList, size: Int, in file: FileDescriptor, start: Int) {
        self.list = list
        self.size = size
        self.file = file
        self.start = start
    }

    /// Reads the head of an open file; nil if the file is damaged.
    init?(_ file: FileDescriptor) {
        guard let status = file.status, status.isFile else { return nil }
        let wanted = min(status.size, ListFile.maximumHeadBytes)
        let bytes = [UInt8](unsafeUninitializedCapacity: wanted) { buffer, count in
            count = FileDescriptor.fill(UnsafeMutableRawBufferPointer(buffer), from: file).count
        }
        guard let end = bytes.firstRange(of: StoredList.end),
            let (list, size) = StoredList.parse(
                String(decoding: bytes[..<end.lowerBound], as: UTF8.self)),
            // A file that was cut is of no use, and neither is its response's validator.
            status.size - end.upperBound == size
        else { return nil }
        self.list = list
        self.size = size
        self.file = file
        start = end.upperBound
        guard rewind() else { return nil }
    }

    /// Moves the descriptor to the beginning of the list. Returns whether that succeeded.
    package func rewind() -> Bool { lseek(file.number, off_t(start), SEEK_SET) == start }

    /// Calls `body` with pieces of the list. Returns false if they cannot be read.
    func forEachPiece(
        _ body: (UnsafeRawBufferPointer) throws(StorageError) -> Void
    ) throws(StorageError) -> Bool {
        guard rewind() else { return false }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 64)
        defer { buffer.deallocate() }
        var left = size
        while left > 0 {
            let window = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(left))
            let (count, code) = FileDescriptor.fill(window, from: file)
            guard code == 0, count > 0 else { return false }
            try body(UnsafeRawBufferPointer(rebasing: window[..<count]))
            left -= count
        }
        return rewind()
    }

    /// Notes that the list is in use; the owner of a file may always set its times.
    package func touch() { _ = futimens(file.number, nil) }
}

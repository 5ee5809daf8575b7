internal import CLinux
import Glibc

/// Memory that another process can map: a memfd, mapped into this process. Its pages exist once
/// they are written.
///
/// Not thread-safe.
package final class SharedMemory {
    /// Nil once it is closed; the memory stays.
    package private(set) var descriptor: Int32?
    package private(set) var bytes: UnsafeMutableRawBufferPointer

    /// Nil with `errno`.
    package init?(_ name: String, capacity: Int) {
        let descriptor = clinux_memory(name)
        guard descriptor >= 0 else { return nil }
        guard ftruncate(descriptor, off_t(capacity)) == 0,
            let start = mmap(nil, capacity, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0),
            start != MAP_FAILED
        else {
            let code = errno
            close(descriptor)
            errno = code
            return nil
        }
        self.descriptor = descriptor
        bytes = UnsafeMutableRawBufferPointer(start: start, count: capacity)
    }

    deinit {
        munmap(bytes.baseAddress, bytes.count)
        closeDescriptor()
    }

    package func closeDescriptor() {
        if let descriptor { close(descriptor) }
        descriptor = nil
    }

    /// Moves the bytes if need be. Returns false with `errno`, and then nothing has changed.
    package func grow(to capacity: Int) -> Bool {
        guard let descriptor, let old = bytes.baseAddress,
            ftruncate(descriptor, off_t(capacity)) == 0,
            let start = clinux_resize_mapping(old, bytes.count, capacity), start != MAP_FAILED
        else { return false }
        bytes = UnsafeMutableRawBufferPointer(start: start, count: capacity)
        return true
    }

    /// Fixes the size. With `isFinal`, no other process can write, and this one only here. Returns
    /// false where the kernel cannot, before Linux 5.1.
    package func seal(isFinal: Bool) -> Bool {
        descriptor.map { clinux_seal($0, isFinal ? 1 : 0) == 0 } ?? false
    }

    /// Gives the pages of a range back, which begins at one; they are read as zeros. Only a hint.
    package func discard(_ range: Range<Int>) {
        guard !range.isEmpty else { return }
        madvise(bytes.baseAddress.map { $0 + range.lowerBound }, range.count, Int32(MADV_REMOVE))
    }
}

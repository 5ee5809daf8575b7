import Glibc

/// The bytes of a manifest that are read and not yet parsed.
///
/// Not thread-safe.
final class LineBuffer {
    private let bytes: UnsafeMutableRawBufferPointer
    private var range = 0..<0
    /// The index up to which ``range`` has no line end.
    private var searched = 0

    /// - Parameter capacity: room for the longest accepted line and one more read, in bytes.
    init(capacity: Int) {
        bytes = .allocate(byteCount: capacity, alignment: 16)
    }

    deinit {
        bytes.deallocate()
    }

    /// Valid until the next change. Its indices are those of ``nextLineEnd()``.
    var unread: UnsafeRawBufferPointer.SubSequence { UnsafeRawBufferPointer(bytes)[range] }

    /// The index of the first line feed in ``unread``; nil without one.
    func nextLineEnd() -> Int? {
        guard searched < range.upperBound, let base = bytes.baseAddress,
            let found = memchr(base + searched, 0x0A, range.upperBound - searched)
        else {
            searched = range.upperBound
            return nil
        }
        return UnsafeRawPointer(found) - UnsafeRawPointer(base)
    }

    /// Removes a line with its line feed.
    func discard(through end: Int) {
        range = (end + 1)..<range.upperBound
        searched = range.lowerBound
    }

    func discardAll() {
        range = 0..<0
        searched = 0
    }

    /// The free space behind ``unread``, which is moved to the beginning first.
    func room() -> UnsafeMutableRawBufferPointer {
        if range.lowerBound > 0 {
            let rest = UnsafeRawBufferPointer(rebasing: unread)
            bytes.copyMemory(from: rest)
            searched -= range.lowerBound
            range = 0..<rest.count
        }
        return UnsafeMutableRawBufferPointer(rebasing: bytes[range.upperBound...])
    }

    /// Adds this number of bytes, written to ``room()``.
    func add(_ count: Int) {
        range = range.lowerBound..<(range.upperBound + count)
    }
}

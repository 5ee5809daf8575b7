import Glibc
import PrefetchModel

/// The bytes of a manifest that are read and not yet parsed.
///
/// Not thread-safe.
final class LineBuffer {
    let source: ByteSource
    private let maximumBytes: Int
    /// Whether ``readOn()`` has reached the end.
    private(set) var hasEnded = false
    /// Whether a byte so far is not ASCII.
    private(set) var hasOtherBytes = false
    /// After decompression.
    private var bytesRead = 0
    private let bytes: UnsafeMutableRawBufferPointer
    private var range = 0..<0
    /// The index up to which ``range`` has no line end.
    private var searched = 0

    init(_ source: ByteSource, _ options: ManifestOptions) {
        self.source = source
        maximumBytes = options.maximumBytes
        // Room for the longest accepted line and one more read.
        bytes = .allocate(byteCount: options.maximumLineBytes + options.readBytes, alignment: 16)
    }

    deinit {
        bytes.deallocate()
    }

    /// Valid until the next change. Indices as in ``nextLineEnd()``.
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

    /// Reads more bytes, waiting if there are none yet.
    func readOn() throws(ManifestError) {
        guard let count = try source.read(into: room()) else {
            hasEnded = true
            return
        }
        bytesRead += count
        guard bytesRead <= maximumBytes else {
            throw ManifestError(
                path: source.name, operation: .recognise,
                message: "is larger than \(ByteCount(maximumBytes)) unpacked")
        }
        range = range.lowerBound..<(range.upperBound + count)
        // All bytes, so that the compiler can take many at a time.
        if !hasOtherBytes { hasOtherBytes = unread.suffix(count).reduce(0, |) & 0x80 != 0 }
    }

    /// The free space behind ``unread``, which is moved to the beginning first.
    private func room() -> UnsafeMutableRawBufferPointer {
        if range.lowerBound > 0 {
            let rest = UnsafeRawBufferPointer(rebasing: unread)
            bytes.copyMemory(from: rest)
            searched -= range.lowerBound
            range = 0..<rest.count
        }
        return UnsafeMutableRawBufferPointer(rebasing: bytes[range.upperBound...])
    }
}

import Glibc
import PrefetchModel

/// The bytes of a manifest that are read and not yet parsed.
///
/// Not thread-safe.
final class LineBuffer {
    let source: ByteSource
    private let options: ManifestOptions
    /// Whether ``readOn()`` has reached the end.
    private(set) var hasEnded = false
    /// Whether a byte so far is not ASCII.
    private(set) var hasOtherBytes = false
    /// After decompression.
    private var bytesRead = 0
    private var bytes: UnsafeMutableRawBufferPointer
    private var range = 0..<0
    /// The index up to which ``range`` has no line end.
    private var searched = 0
    /// The last byte of lines: LF, or CR if the first ``headBytes`` have CR and no LF.
    /// Nil until that is known.
    private var lineEnd: UInt8?

    init(_ source: ByteSource, _ options: ManifestOptions) {
        self.source = source
        self.options = options
        bytes = .allocate(byteCount: LineBuffer.usualBytes + options.readBytes, alignment: 16)
    }

    private static let headBytes = 64 << 10
    /// Longer lines make the buffer larger.
    private static let usualBytes = 64 << 10

    deinit {
        bytes.deallocate()
    }

    /// Valid until the next change. Indices as in ``nextLineEnd()``.
    var unread: UnsafeRawBufferPointer.SubSequence { UnsafeRawBufferPointer(bytes)[range] }

    /// The index of the first line end in ``unread``; nil without one.
    func nextLineEnd() -> Int? {
        guard searched < range.upperBound, let base = bytes.baseAddress,
            let end = lineEnd ?? findLineEnd(),
            let found = memchr(base + searched, Int32(end), range.upperBound - searched)
        else {
            // A CR may become a line end later.
            let unsure = lineEnd == nil ? unread[searched...].firstIndex(of: 0x0D) : nil
            searched = unsure ?? range.upperBound
            return nil
        }
        return UnsafeRawPointer(found) - UnsafeRawPointer(base)
    }

    /// The same for all pieces in which the source may arrive.
    private func findLineEnd() -> UInt8? {
        let start = bytesRead - unread.count
        let head = unread.prefix(max(0, LineBuffer.headBytes - start))
        let isWhole = hasEnded || bytesRead >= LineBuffer.headBytes
        if head.contains(0x0A) {
            lineEnd = 0x0A
        } else if isWhole {
            // A CR at the end may be half of a CR LF.
            lineEnd = head.dropLast().contains(0x0D) ? 0x0D : 0x0A
        }
        return lineEnd
    }

    /// The last byte of lines, as far as it is known.
    var lineEndByte: UInt8 { lineEnd ?? findLineEnd() ?? 0x0A }

    /// Removes a line with its line end.
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
        guard bytesRead <= options.maximumBytes else {
            throw ManifestError(
                path: source.name, operation: .recognise,
                message: "is larger than \(ByteCount(options.maximumBytes)) unpacked")
        }
        range = range.lowerBound..<(range.upperBound + count)
        // All bytes, so that the compiler can take many at a time.
        if !hasOtherBytes { hasOtherBytes = unread.suffix(count).reduce(0, |) & 0x80 != 0 }
    }

    /// The free space behind ``unread``, which is moved to the beginning first.
    private func room() -> UnsafeMutableRawBufferPointer {
        let rest = UnsafeRawBufferPointer(rebasing: unread)
        let usual = LineBuffer.usualBytes + options.readBytes
        // A large buffer is given up after its line.
        let wanted =
            rest.count + options.readBytes > bytes.count
            ? min(2 * rest.count, options.maximumLineBytes + options.readBytes) + options.readBytes
            : bytes.count > LineBuffer.mostKeptBytes && rest.count < LineBuffer.usualBytes
                ? usual : bytes.count
        if wanted != bytes.count {
            let other = UnsafeMutableRawBufferPointer.allocate(byteCount: wanted, alignment: 16)
            other.copyMemory(from: rest)
            bytes.deallocate()
            bytes = other
        } else if range.lowerBound > 0 {
            bytes.copyMemory(from: rest)
        }
        searched -= range.lowerBound
        range = 0..<rest.count
        return UnsafeMutableRawBufferPointer(rebasing: bytes[range.upperBound...])
    }

    private static let mostKeptBytes = 4 << 20
}

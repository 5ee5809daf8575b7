import CLinux
import Glibc

/// A temporary file of records that are appended, changed in place and read back.
///
/// It has no name: however the process ends, the kernel gives its space back. The end of the file
/// is gathered in memory and written in blocks; reading goes by blocks, too, and keeps a few of
/// them, so that records that are asked for in about the order of their writing cost no call into
/// the kernel each. Space of blocks that hold nothing any more is given back.
///
/// `package` for the bench of the scheduler, which spills as a run does.
package final class SpillFile {
    private let descriptor: Int32
    /// For messages.
    let folder: String
    /// What is not written yet, from ``flushed`` on.
    private var tail: [UInt8] = []
    private var flushed = 0
    /// Living records by block, to give space back.
    private var living: [Int32] = []
    private var cache: [Block?]

    private struct Block {
        let number: Int
        var bytes: [UInt8]
    }

    /// Blocks of half a mebibyte, of which the tail holds eight: a queue's last record is mostly
    /// still there when the link in it changes.
    private static let blockBytes = 512 << 10
    private static let tailBlocks = 8
    private static let cachedBlocks = 8

    /// Creates the file in `folder`.
    ///
    /// - Throws: when no file can be made there.
    package init(folder: String) throws(SpillError) {
        self.folder = folder
        // An unnamed file from the start, where the file system can do that.
        var descriptor = open(folder, clinux_o_tmpfile | O_RDWR | O_CLOEXEC, 0o600)
        if descriptor < 0, [EOPNOTSUPP, EISDIR, EINVAL].contains(errno) {
            var path = Array("\(folder)/prefetch-queue.XXXXXX".utf8CString)
            descriptor = mkostemp(&path, O_CLOEXEC)
            if descriptor >= 0 { unlink(path) }
        }
        guard descriptor >= 0 else {
            throw SpillError(folder: folder, operation: "creating a temporary file", code: errno)
        }
        self.descriptor = descriptor
        cache = [Block?](repeating: nil, count: SpillFile.cachedBlocks)
    }

    deinit {
        close(descriptor)
    }

    private var end: Int { flushed + tail.count }

    /// The space that the file takes, for tests.
    var bytesOnDisk: Int {
        get throws(SpillError) {
            var status = stat()
            guard fstat(descriptor, &status) == 0 else {
                throw SpillError(folder: folder, operation: "looking at its size", code: errno)
            }
            return Int(status.st_blocks) * 512
        }
    }

    /// Adds a record and returns its offset.
    ///
    /// - Throws: when what has gathered cannot be written; the record is not added then.
    package func append(_ record: [UInt8]) throws(SpillError) -> Int {
        if tail.count >= SpillFile.tailBlocks * SpillFile.blockBytes { try flush() }
        let offset = end
        tail += record
        for block in blocks(of: record.count, at: offset) {
            while living.count <= block { living.append(0) }
            living[block] += 1
        }
        return offset
    }

    /// Writes `bytes` over those of a record.
    package func change(_ bytes: [UInt8], at offset: Int) throws(SpillError) {
        let count = min(bytes.count, max(0, flushed - offset))
        // First what may fail, so that it changes all or nothing.
        if count > 0 { try write(bytes[..<count], at: offset) }
        for (index, byte) in bytes.enumerated().dropFirst(count) {
            tail[offset + index - flushed] = byte
        }
        for index in 0..<count {
            let slot = cacheSlot(of: (offset + index) / SpillFile.blockBytes)
            guard cache[slot]?.number == (offset + index) / SpillFile.blockBytes else { continue }
            cache[slot]?.bytes[(offset + index) % SpillFile.blockBytes] = bytes[index]
        }
    }

    /// Reads `count` bytes of a record.
    ///
    /// - Throws: also when the file has no such bytes, as damaged numbers may say.
    package func read(_ count: Int, at offset: Int) throws(SpillError) -> [UInt8] {
        guard offset >= 0, count >= 0, offset <= end, count <= end - offset else { throw damage() }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        var position = offset
        while position < offset + count {
            let wanted = offset + count - position
            if position >= flushed {
                let start = position - flushed
                bytes += tail[start..<(start + wanted)]
                break
            }
            let number = position / SpillFile.blockBytes
            let slot = try cachedSlot(of: number)
            let start = position % SpillFile.blockBytes
            let here = min(wanted, SpillFile.blockBytes - start)
            if let block = cache[slot] { bytes += block.bytes[start..<(start + here)] }
            position += here
        }
        return bytes
    }

    /// The error of bytes that are not what was written.
    func damage() -> SpillError {
        SpillError(folder: folder, operation: "reading the waiting entries back", code: EIO)
    }

    /// Tells that a record of `count` bytes is not needed any more.
    package func forget(_ count: Int, at offset: Int) {
        for block in blocks(of: count, at: offset) {
            living[block] -= 1
            let start = block * SpillFile.blockBytes
            guard living[block] == 0, start + SpillFile.blockBytes <= flushed else { continue }
            // A file system that cannot do it keeps the space until the end.
            _ = fallocate(
                descriptor, clinux_falloc_punch_hole | clinux_falloc_keep_size, off_t(start),
                off_t(SpillFile.blockBytes))
        }
    }

    // MARK: Blocks

    private func blocks(of count: Int, at offset: Int) -> ClosedRange<Int> {
        (offset / SpillFile.blockBytes)...((offset + max(count, 1) - 1) / SpillFile.blockBytes)
    }

    private func cacheSlot(of block: Int) -> Int { block % SpillFile.cachedBlocks }

    /// The slot of the cache that holds a block.
    private func cachedSlot(of number: Int) throws(SpillError) -> Int {
        let slot = cacheSlot(of: number)
        if cache[slot]?.number == number { return slot }
        // What is written ends with a whole block, see `flush`.
        let start = number * SpillFile.blockBytes
        let count = SpillFile.blockBytes
        var bytes = [UInt8](repeating: 0, count: count)
        var done = 0
        while done < count {
            let result = bytes.withUnsafeMutableBytes { buffer in
                pread(
                    descriptor, buffer.baseAddress.map { $0 + done }, count - done,
                    off_t(start + done))
            }
            if result < 0, errno == EINTR { continue }
            guard result > 0 else {
                guard result < 0 else { throw damage() }
                throw SpillError(
                    folder: folder, operation: "reading the waiting entries back", code: errno)
            }
            done += result
        }
        cache[slot] = Block(number: number, bytes: bytes)
        return slot
    }

    /// Writes half of what has gathered, but for blocks that hold nothing any more: the other half
    /// may still be changed.
    private func flush() throws(SpillError) {
        let count = SpillFile.tailBlocks / 2 * SpillFile.blockBytes
        for start in stride(from: 0, to: count, by: SpillFile.blockBytes) {
            guard living[(flushed + start) / SpillFile.blockBytes] > 0 else { continue }
            try write(tail[start..<(start + SpillFile.blockBytes)], at: flushed + start)
        }
        tail.removeFirst(count)
        flushed += count
    }

    private func write(_ bytes: ArraySlice<UInt8>, at offset: Int) throws(SpillError) {
        var rest = bytes
        var position = offset
        while !rest.isEmpty {
            let result = rest.withUnsafeBytes { buffer in
                pwrite(descriptor, buffer.baseAddress, buffer.count, off_t(position))
            }
            if result < 0, errno == EINTR { continue }
            guard result > 0 else {
                throw SpillError(
                    folder: folder, operation: "writing waiting entries to a temporary file",
                    code: result == 0 ? ENOSPC : errno)
            }
            rest = rest.dropFirst(result)
            position += result
        }
    }
}

import CLinux
import Glibc
import PrefetchModel

/// A temporary file of records that are appended, changed in place and read back.
///
/// It has no name: however the process ends, the kernel frees its space. The end of the file is
/// buffered in memory and written in blocks. Reading is by blocks too, with a small cache, so that
/// reading in about the order of writing needs few system calls. The space of blocks without live
/// records is freed.
///
/// `package` for the scheduler's benchmark, which spills as a run does.
package final class SpillFile {
    /// -1 before the first record.
    private var descriptor: Int32 = -1
    let folder: String
    /// The unwritten bytes, from ``flushed`` on.
    private var tail: [UInt8] = []
    private var flushed = 0
    /// The number of live records by block, for freeing space.
    private var living: [Int32] = []
    private var cache = [Block?](repeating: nil, count: cachedBlocks)

    private struct Block {
        let number: Int
        var bytes: [UInt8]
    }

    /// The tail holds eight blocks of half a mebibyte: a queue's last record is mostly still there
    /// when its link changes.
    private static let blockBytes = 512 << 10
    private static let tailBlocks = 8
    private static let cachedBlocks = 8

    package init(folder: String) {
        self.folder = folder
    }

    private func create() throws {
        // Unnamed from the start, where the file system supports it.
        descriptor = open(folder, clinux_o_tmpfile | O_RDWR | O_CLOEXEC, 0o600)
        if descriptor < 0, [EOPNOTSUPP, EISDIR, EINVAL].contains(errno) {
            var path = Array("\(folder)/prefetch-queue.XXXXXX".utf8CString)
            descriptor = mkostemp(&path, O_CLOEXEC)
            if descriptor >= 0 { unlink(path) }
        }
        guard descriptor >= 0 else { throw failure("creating a temporary file", errno) }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    private var end: Int { flushed + tail.count }

    /// The allocated size, for tests.
    var bytesOnDisk: Int {
        get throws {
            var status = stat()
            guard fstat(descriptor, &status) == 0 else {
                throw failure("looking at its size", errno)
            }
            return Int(status.st_blocks) * 512
        }
    }

    /// Appends a record and returns its offset. After an error it is not added.
    package func append(_ record: [UInt8]) throws -> Int {
        if descriptor < 0 {
            try create()
            tail.reserveCapacity((SpillFile.tailBlocks + 1) * SpillFile.blockBytes)
        }
        if tail.count >= SpillFile.tailBlocks * SpillFile.blockBytes { try flush() }
        let offset = end
        tail += record
        for block in blocks(of: record.count, at: offset) {
            while living.count <= block { living.append(0) }
            living[block] += 1
        }
        return offset
    }

    package func change(_ bytes: [UInt8], at offset: Int) throws {
        let count = min(bytes.count, max(0, flushed - offset))
        // The write that may fail is first, so that all or nothing changes.
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

    /// Reads bytes of a record. Throws also for a range beyond the file, as damaged numbers may
    /// demand.
    package func read(_ count: Int, at offset: Int) throws -> [UInt8] {
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

    func damage() -> UserError { failure("reading the waiting entries back", EIO) }

    private func failure(_ operation: String, _ code: Int32) -> UserError {
        UserError(
            folder, "\(operation): \(String(cString: strerror(code)))",
            hint:
                "TMPDIR names another folder for waiting entries, a larger --queue-capacity keeps "
                + "more of them in memory")
    }

    /// Notes that a record of `count` bytes is no longer needed.
    package func forget(_ count: Int, at offset: Int) {
        for block in blocks(of: count, at: offset) {
            living[block] -= 1
            let start = block * SpillFile.blockBytes
            guard living[block] == 0, start + SpillFile.blockBytes <= flushed else { continue }
            // Without support for holes, the space is kept until the end.
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

    private func cachedSlot(of number: Int) throws -> Int {
        let slot = cacheSlot(of: number)
        if cache[slot]?.number == number { return slot }
        // The written part ends with a whole block, see `flush`.
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
                throw failure("reading the waiting entries back", errno)
            }
            done += result
        }
        cache[slot] = Block(number: number, bytes: bytes)
        return slot
    }

    /// Writes half of the buffered blocks, except those without live records; the other half may
    /// still change.
    private func flush() throws {
        let count = SpillFile.tailBlocks / 2 * SpillFile.blockBytes
        for start in stride(from: 0, to: count, by: SpillFile.blockBytes) {
            guard living[(flushed + start) / SpillFile.blockBytes] > 0 else { continue }
            try write(tail[start..<(start + SpillFile.blockBytes)], at: flushed + start)
        }
        tail.removeFirst(count)
        flushed += count
    }

    private func write(_ bytes: ArraySlice<UInt8>, at offset: Int) throws {
        var rest = bytes
        var position = offset
        while !rest.isEmpty {
            let result = rest.withUnsafeBytes { buffer in
                pwrite(descriptor, buffer.baseAddress, buffer.count, off_t(position))
            }
            if result < 0, errno == EINTR { continue }
            guard result > 0 else {
                throw failure(
                    "writing waiting entries to a temporary file", result == 0 ? ENOSPC : errno)
            }
            rest = rest.dropFirst(result)
            position += result
        }
    }
}

internal import CLinux
import Glibc
import Pipeline
import PrefetchModel

/// The limit of the address space (`ulimit -v`). Swift's runtime does not survive a failed
/// allocation.
enum AddressSpace {
    /// libcurl and its libraries.
    private static let libraries = ByteCount.mebibytes(64)
    /// A thread's stack and its part of the heap. With 40 MiB, one limit of some dozen crashed.
    private static let thread = ByteCount.mebibytes(50)

    /// Checks that threads and images fit into the rest of the limit. `used` are the addresses in
    /// use before the first thread starts: its heap would count twice.
    static func require(threads: Int, images: ByteCount, used: Int) throws {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit) == 0,
            let limit = Int(exactly: limit.rlim_cur)
        else { return }
        let needed = used + libraries.bytes + threads * thread.bytes + images.bytes
        guard needed > limit else { return }
        let kibibytes = (needed + 1023) / 1024
        throw UserError(
            """
            memory: the limit of \(ByteCount(limit)) for addresses is too small; about \
            \(ByteCount(needed)) are needed
            """,
            hint: "raise the limit: ulimit -v \(kibibytes); or lower --memory (\(images))")
    }

    /// The addresses in use, in bytes; 0 if the system doesn't tell.
    static var used: Int {
        guard let file = fopen("/proc/self/statm", "re") else { return 0 }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 128)
        guard fgets(&line, Int32(line.count), file) != nil else { return 0 }
        return strtol(line, nil, 10) * sysconf(Int32(_SC_PAGESIZE))
    }
}

enum FreedMemory {
    /// Lets `free` return the memory of pictures to the system. By itself the C library keeps up to
    /// 64 MiB for each thread.
    static func returnLargeBlocks() {
        _ = mallopt(M_MMAP_THRESHOLD, 4 << 20)
        _ = mallopt(M_TRIM_THRESHOLD, 8 << 20)
        // One thread reads entries and another frees them, so every heap would keep freed memory.
        // Two heaps cost the codecs nothing: they allocate few large blocks.
        _ = mallopt(M_ARENA_MAX, 2)
    }
}

enum OpenFiles {
    private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)

    /// Raises the soft limit to the number that a run may need, within the hard limit.
    static func raiseLimit() {
        guard var limit = limits() else { return }
        limit.rlim_cur = RunConfiguration.openFiles(soft: limit.rlim_cur, hard: limit.rlim_max)
        // On failure the run gets by with the old limit.
        setrlimit(resource, &limit)
    }

    /// The limit and the number of free descriptors; nil if the system doesn't tell.
    private static func available() -> (limit: Int, left: Int)? {
        guard let limit = limits().map({ Int(clamping: $0.rlim_cur) }) else { return nil }
        // Descriptors open at the start have low numbers. One call shows which are in use.
        var entries = (0..<Int32(min(limit, 1024))).map { pollfd(fd: $0, events: 0, revents: 0) }
        guard poll(&entries, nfds_t(entries.count), 0) >= 0 else { return nil }
        let used = entries.count { $0.revents & Int16(POLLNVAL) == 0 }
        return (limit, limit - used)
    }

    static var left: Int? { available()?.left }

    /// Checks that `count` descriptors are free, and that `fits` accepts the number of free ones.
    static func require(_ count: Int, fits: (Int) -> Bool = { _ in true }) throws {
        guard let available = available() else { return }
        guard available.left >= count, fits(available.left) else {
            throw UserError(
                """
                open files: the limit of \(available.limit) leaves \(available.left), and \
                at least \(count) are needed
                """,
                hint:
                    "raise the limit: ulimit -n \(max(64, available.limit - available.left + count))"
            )
        }
    }

    private static func limits() -> rlimit? {
        var limit = rlimit()
        return getrlimit(resource, &limit) == 0 ? limit : nil
    }
}

enum AvailableProcessors {
    /// The number in the affinity mask, or a smaller cgroup quota; at least 1.
    static var count: Int {
        let allowed = Int(clinux_allowed_processors())
        let count = allowed > 0 ? allowed : max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
        guard let quota = ProcessorQuota.smallest(reading: contents) else { return count }
        // The minimum is taken first, since an infinite quota has no integer value.
        return max(1, Int(min(Double(count), quota).rounded(.up)))
    }

    /// The text of a kernel file; nil if it doesn't exist or exceeds 4 MiB.
    private static func contents(of path: String) -> String? {
        let limit = 4 << 20
        guard let bytes = try? InputFile(path).read(limit: limit), bytes.count < limit else {
            return nil
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

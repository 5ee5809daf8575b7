import Glibc
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

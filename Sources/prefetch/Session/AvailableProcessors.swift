internal import CLinux
import Glibc
import Pipeline

/// The processors that this process may use.
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
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        // A container's mount takes about a kibibyte.
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        var count = 0
        while true {
            if count == bytes.count {
                guard count < 4 << 20 else { return nil }
                bytes += [UInt8](repeating: 0, count: count)
            }
            let result = bytes.withUnsafeMutableBytes {
                read(descriptor, $0.baseAddress?.advanced(by: count), $0.count - count)
            }
            if result < 0, errno == EINTR { continue }
            guard result >= 0 else { return nil }
            guard result > 0 else { return String(decoding: bytes[..<count], as: UTF8.self) }
            count += result
        }
    }
}

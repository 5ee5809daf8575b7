import Glibc

/// Which boot of the machine this is: what a process left in the page cache is there in the same one,
/// and perhaps gone in the next.
package enum BootID {
    /// 36 characters; nil where the system does not say.
    package static func current() -> String? {
        let number = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
        guard number >= 0 else { return nil }
        let file = FileDescriptor(number)
        let bytes = [UInt8](unsafeUninitializedCapacity: 36) { buffer, count in
            count = max(0, read(file.number, buffer.baseAddress, 36))
        }
        return bytes.count == 36 ? String(decoding: bytes, as: UTF8.self) : nil
    }
}

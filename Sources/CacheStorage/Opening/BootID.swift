import Glibc

/// The identifier of the machine's current boot. Data in the page cache survives within a boot, and
/// may be lost across boots.
package enum BootID {
    /// 36 characters; nil if the system does not provide it.
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

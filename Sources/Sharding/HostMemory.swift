import Glibc

/// Numbers by host. A host may be forgotten for another one, so memory is limited.
///
/// A table of 65,536 places, 3.5 MB, allocated at first use; each host has one place.
struct HostMemory: ~Copyable {
    private static let bits = 16
    /// Longer hosts are not remembered.
    private static let longest = 50

    private struct KnownHost {
        var count: UInt8
        var number: Int32
    }

    private var slots: UnsafeMutablePointer<KnownHost>?
    private var names: UnsafeMutableRawPointer?

    deinit {
        slots?.deallocate()
        names?.deallocate()
    }

    subscript(host: UnsafeRawBufferPointer) -> Int32? {
        guard let slots, let names, let start = host.baseAddress, host.count <= HostMemory.longest
        else { return nil }
        let index = HostMemory.index(of: host)
        guard Int(slots[index].count) == host.count,
            memcmp(names + index * HostMemory.longest, start, host.count) == 0
        else { return nil }
        return slots[index].number
    }

    mutating func note(_ number: Int32, for host: UnsafeRawBufferPointer) {
        guard let start = host.baseAddress, host.count <= HostMemory.longest else { return }
        let size = 1 << HostMemory.bits
        if slots == nil {
            let new = UnsafeMutablePointer<KnownHost>.allocate(capacity: size)
            new.initialize(repeating: KnownHost(count: 0, number: 0), count: size)
            slots = new
            names = UnsafeMutableRawPointer.allocate(
                byteCount: size * HostMemory.longest, alignment: 8)
        }
        guard let slots, let names else { return }
        let index = HostMemory.index(of: host)
        slots[index] = KnownHost(count: UInt8(host.count), number: number)
        memcpy(names + index * HostMemory.longest, start, host.count)
    }

    /// FNV-1a with the upper bits mixed in.
    private static func index(of host: UnsafeRawBufferPointer) -> Int {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in host { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return Int(truncatingIfNeeded: (hash ^ hash >> 32) & (1 << UInt64(bits) - 1))
    }
}

/// What stands for the name of a host, since a list may have a million hosts: 64 bits of a hash
/// with a secret of the process.
///
/// Nobody can make two hosts meet. That any two of a million do has a chance of one in 30 million;
/// they would share their limits then, and nothing else.
struct HostFingerprint: Hashable, Sendable {
    let bits: UInt64

    init(_ name: String) {
        var hasher = Hasher()
        hasher.combine(name)
        bits = UInt64(truncatingIfNeeded: hasher.finalize())
    }
}

/// The hosts of a scheduler by number and by fingerprint, some 32 bytes each, and references to what
/// there is of each: a hash table with linear probing, of the hosts' numbers.
struct HostTable: Sendable {
    struct Host: Sendable {
        fileprivate let fingerprint: HostFingerprint
        /// What it is while something of it runs or waits in memory.
        var active = PoolIndex.none
        /// Its first queue, while it is not active.
        var queue = PoolIndex.none
        /// Its pacing, while it is not active, unless that is as new.
        var pacing = PoolIndex.none
    }

    private var hosts = Pool<Host>()
    /// Numbers plus one, 0 for an empty slot.
    private var slots = [UInt32](repeating: 0, count: 16)

    private var mask: Int { slots.count - 1 }

    var count: Int { hosts.count }

    subscript(host: Int) -> Host {
        _read { yield hosts[host] }
        _modify { yield &hosts[host] }
    }

    /// The number of a host, which is added when it is not in.
    mutating func host(_ fingerprint: HostFingerprint) -> Int {
        var slot = home(of: fingerprint)
        while slots[slot] != 0 {
            let host = Int(slots[slot]) - 1
            if hosts[host].fingerprint == fingerprint { return host }
            slot = (slot + 1) & mask
        }
        if (count + 1) * 4 > slots.count * 3 {
            grow()
            slot = emptySlot(home(of: fingerprint))
        }
        let host = hosts.insert(Host(fingerprint: fingerprint))
        slots[slot] = UInt32(host) + 1
        return host
    }

    /// Takes out a host; its number is given to another one.
    mutating func remove(_ host: Int) {
        var hole = home(of: hosts[host].fingerprint)
        while Int(slots[hole]) != host + 1 { hole = (hole + 1) & mask }
        // What stands further on for want of a place comes back, so that no search ends here.
        var slot = hole
        while true {
            slot = (slot + 1) & mask
            guard slots[slot] != 0 else { break }
            let home = home(of: hosts[Int(slots[slot]) - 1].fingerprint)
            guard (slot - home) & mask >= (slot - hole) & mask else { continue }
            slots[hole] = slots[slot]
            hole = slot
        }
        slots[hole] = 0
        hosts.remove(host)
    }

    /// The numbers of all hosts.
    var numbers: some Sequence<Int> { slots.lazy.filter { $0 != 0 }.map { Int($0) - 1 } }

    private func home(of fingerprint: HostFingerprint) -> Int {
        Int(truncatingIfNeeded: fingerprint.bits) & mask
    }

    private func emptySlot(_ home: Int) -> Int {
        var slot = home
        while slots[slot] != 0 { slot = (slot + 1) & mask }
        return slot
    }

    private mutating func grow() {
        let former = slots
        slots = [UInt32](repeating: 0, count: former.count * 2)
        for value in former where value != 0 {
            slots[emptySlot(home(of: hosts[Int(value) - 1].fingerprint))] = value
        }
    }
}

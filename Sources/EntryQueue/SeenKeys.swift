package import Hashing

/// The keys of a run's entries that were not warm, to find duplicates. Each takes some 16 bytes,
/// since there may be millions while everything else waits on disk.
///
/// It keeps 80 of a fingerprint's 128 bits, mixed with a secret of the run, so no list can make
/// keys collide on purpose. Among five million keys, the chance of any collision is 1 in 10¹¹.
package struct SeenKeys {
    /// Low bits by entry.
    private var marks = ChunkedArray<UInt64>()
    private var tags = ChunkedArray<UInt16>()
    /// A hash table with linear probing: entries plus one, 0 for an empty slot.
    private var slots: [UInt32]
    package private(set) var count = 0
    private let secret: UInt64

    private static let initialSlots = 1 << 10

    package init(using random: inout some RandomNumberGenerator) {
        secret = random.next() | 1
        slots = [UInt32](repeating: 0, count: SeenKeys.initialSlots)
    }

    package var isEmpty: Bool { count == 0 }

    package subscript(key: KeyFingerprint) -> Int? {
        let mark = mark(of: key)
        let tag = tag(of: key)
        let mask = slots.count - 1
        var slot = Int(truncatingIfNeeded: mark) & mask
        while slots[slot] != 0 {
            let entry = Int(slots[slot]) - 1
            if marks[entry] == mark, tags[entry] == tag { return entry }
            slot = (slot + 1) & mask
        }
        return nil
    }

    /// Adds the key of the next entry; entries are numbered from 0 without gaps.
    ///
    /// - Precondition: less than 2³² − 1 entries.
    package mutating func append(_ key: KeyFingerprint) {
        if (count + 1) * 4 > slots.count * 3 { grow() }
        marks[count] = mark(of: key)
        tags[count] = tag(of: key)
        place(count)
        count += 1
    }

    private func mark(of key: KeyFingerprint) -> UInt64 { key.low &+ (key.high &* secret) }
    private func tag(of key: KeyFingerprint) -> UInt16 { UInt16(truncatingIfNeeded: key.high) }

    private mutating func place(_ entry: Int) {
        let mask = slots.count - 1
        var slot = Int(truncatingIfNeeded: marks[entry]) & mask
        while slots[slot] != 0 { slot = (slot + 1) & mask }
        slots[slot] = UInt32(entry + 1)
    }

    private mutating func grow() {
        slots = [UInt32](repeating: 0, count: slots.count * 2)
        for entry in 0..<count { place(entry) }
    }
}

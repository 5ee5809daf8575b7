/// Values by 64-bit fingerprint: a hash table with linear probing over a ``Pool`` of values.
///
/// A value keeps its number until it is removed. Slots take 5 to 11 bytes for each value.
struct FingerprintTable<Value: Sendable>: Sendable {
    private struct FingerprintedValue: Sendable {
        let fingerprint: UInt64
        var value: Value
    }

    private var items = Pool<FingerprintedValue>()
    /// Numbers plus one; 0 in an empty slot.
    private var slots = [UInt32](repeating: 0, count: 16)

    private var mask: Int { slots.count - 1 }

    var count: Int { items.count }

    subscript(number: Int) -> Value {
        _read { yield items[number].value }
        _modify { yield &items[number].value }
    }

    func number(of fingerprint: UInt64) -> Int? {
        let slot = slot(of: fingerprint)
        return slots[slot] == 0 ? nil : Int(slots[slot]) - 1
    }

    /// Returns the number of a fingerprint, which is added with `value` when it is not in the
    /// table.
    mutating func insert(_ fingerprint: UInt64, _ value: @autoclosure () -> Value) -> Int {
        var slot = slot(of: fingerprint)
        guard slots[slot] == 0 else { return Int(slots[slot]) - 1 }
        if (count + 1) * 4 > slots.count * 3 {
            grow()
            slot = self.slot(of: fingerprint)
        }
        let number = items.insert(FingerprintedValue(fingerprint: fingerprint, value: value()))
        slots[slot] = UInt32(number) + 1
        return number
    }

    /// Removes a value; its number is given to a later one.
    mutating func remove(_ number: Int) {
        var hole = home(of: items[number].fingerprint)
        while Int(slots[hole]) != number + 1 { hole = (hole + 1) & mask }
        // Closes the gap, so that no search stops here before the value that it looks for.
        var slot = hole
        while true {
            slot = (slot + 1) & mask
            guard slots[slot] != 0 else { break }
            let home = home(of: items[Int(slots[slot]) - 1].fingerprint)
            guard (slot - home) & mask >= (slot - hole) & mask else { continue }
            slots[hole] = slots[slot]
            hole = slot
        }
        slots[hole] = 0
        items.remove(number)
    }

    var numbers: some Sequence<Int> { slots.lazy.filter { $0 != 0 }.map { Int($0) - 1 } }

    func forEach(_ body: (UInt64, Value) -> Void) {
        for number in numbers { body(items[number].fingerprint, items[number].value) }
    }

    private func home(of fingerprint: UInt64) -> Int { Int(truncatingIfNeeded: fingerprint) & mask }

    /// Returns the slot of a fingerprint, or the empty one that it would take.
    private func slot(of fingerprint: UInt64) -> Int {
        var slot = home(of: fingerprint)
        while slots[slot] != 0, items[Int(slots[slot]) - 1].fingerprint != fingerprint {
            slot = (slot + 1) & mask
        }
        return slot
    }

    private mutating func grow() {
        let former = slots
        slots = [UInt32](repeating: 0, count: former.count * 2)
        for value in former where value != 0 {
            var slot = home(of: items[Int(value) - 1].fingerprint)
            while slots[slot] != 0 { slot = (slot + 1) & mask }
            slots[slot] = value
        }
    }
}

extension FingerprintTable {
    subscript(bits fingerprint: UInt64) -> Value? {
        number(of: fingerprint).map { self[$0] }
    }

    mutating func set(_ fingerprint: UInt64, to value: Value) {
        self[insert(fingerprint, value)] = value
    }
}

/// A 64-bit hash that stands for the name of a host, since a list may have a million hosts.
///
/// The hash has a secret of the process, so no list can make two hosts collide on purpose. Among a
/// million hosts the chance of any collision is 1 in 30 million; the two would share their limits.
struct HostFingerprint: Hashable, Sendable {
    let bits: UInt64

    init(_ name: String) {
        var hasher = Hasher()
        hasher.combine(name)
        bits = UInt64(truncatingIfNeeded: hasher.finalize())
    }
}

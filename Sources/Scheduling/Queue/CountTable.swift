/// Numbers by 64 random bits, in 12 bytes and a part that is empty: a hash table with linear
/// probing from which nothing is taken out.
struct CountTable: Sendable {
    /// 0 for an empty slot.
    private var keys = [UInt64](repeating: 0, count: 16)
    private var values = [UInt32](repeating: 0, count: 16)
    private(set) var count = 0

    subscript(bits: UInt64) -> UInt32? {
        get {
            let slot = slot(of: CountTable.key(bits))
            return keys[slot] == 0 ? nil : values[slot]
        }
        set {
            guard let newValue else { preconditionFailure("nothing is taken out") }
            let key = CountTable.key(bits)
            var slot = slot(of: key)
            if keys[slot] == 0 {
                if (count + 1) * 4 > keys.count * 3 {
                    grow()
                    slot = self.slot(of: key)
                }
                keys[slot] = key
                count += 1
            }
            values[slot] = newValue
        }
    }

    func forEach(_ body: (UInt64, UInt32) -> Void) {
        for (key, value) in zip(keys, values) where key != 0 { body(key, value) }
    }

    /// One of 2⁶⁴ hosts is taken for another.
    private static func key(_ bits: UInt64) -> UInt64 { bits == 0 ? 1 : bits }

    /// Where a key is, or where it would come.
    private func slot(of key: UInt64) -> Int {
        let mask = keys.count - 1
        var slot = Int(truncatingIfNeeded: key) & mask
        while keys[slot] != 0, keys[slot] != key { slot = (slot + 1) & mask }
        return slot
    }

    private mutating func grow() {
        let former = (keys, values)
        keys = [UInt64](repeating: 0, count: former.0.count * 2)
        values = [UInt32](repeating: 0, count: former.0.count * 2)
        for (key, value) in zip(former.0, former.1) where key != 0 {
            let slot = slot(of: key)
            keys[slot] = key
            values[slot] = value
        }
    }
}

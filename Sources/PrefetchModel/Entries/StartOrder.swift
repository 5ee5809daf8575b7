/// The order in which entries of one priority start, by their position in the manifests.
package enum StartOrder: Hashable, Sendable {
    /// First in, first out: the first line starts first.
    case fifo
    /// Last in, first out: the newest line starts first.
    case lifo
    /// Drawn at random from the entries in memory. The same seed draws the same order.
    case random(seed: UInt64)
}

/// The generator SplitMix64 (Steele, Lea and Flood 2014): the same numbers for a seed in every
/// version of the program.
package struct SplitMix64: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64) {
        state = seed
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
        return value ^ (value >> 31)
    }
}

import PrefetchModel

/// A seeded generator for repeatable failures.
package struct SplitMix: RandomNumberGenerator {
    private var generator: SplitMix64

    package init(seed: UInt64) {
        generator = SplitMix64(seed: seed)
    }

    package mutating func next() -> UInt64 { generator.next() }
}

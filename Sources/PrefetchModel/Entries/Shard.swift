/// A part of a list: one of `count` shards.
package struct Shard: Hashable, Sendable {
    /// 0 to `count` - 1.
    package let index: Int
    package let count: Int

    /// Array jobs of Kubernetes have at most 10⁵ indexes (`completions` with parallelism above 10⁴
    /// is refused), AWS Batch 10⁴.
    package static let counts = 1...100_000

    /// The only shard of a list that is not divided.
    package static let whole = Shard()

    private init() { (index, count) = (0, 1) }

    package init?(index: Int, count: Int) {
        guard Shard.counts.contains(count), (0..<count).contains(index) else { return nil }
        self.index = index
        self.count = count
    }
}

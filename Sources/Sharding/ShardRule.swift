/// The distribution of entries over shards.
///
/// All URLs of a registrable domain belong to one shard, so that the limits of a host hold for all
/// shards together. Only a plan splits a domain, which then has a part of its limits in each shard.
package struct ShardRule: Sendable {
    package let shard: Shard
    /// Nil to distribute domains by their hash.
    package let plan: ShardPlan?

    /// - Precondition: the plan has as many shards.
    package init(_ shard: Shard, plan: ShardPlan? = nil) {
        precondition(plan.map { $0.shards == shard.count } ?? true, "a plan of other shards")
        self.shard = shard
        self.plan = plan
    }
}

package import PrefetchModel

/// The removals that a pruning by the stored rules would make.
package struct NextPruning: Sendable {
    package let rules: PruneRules
    /// Removals by rules that pick images or variants.
    package let picked: RemovalTotals
    /// Files and blocks that limits remove in addition, least recently used first.
    package let excess: DiskUsage
}

extension CacheCatalog {
    /// Returns the removals that a pruning would make now; nil if no rules are stored.
    ///
    /// Limits are compared with the totals. Rules that pick images read the row of each image.
    package func nextPruning(at now: Timestamp) throws(StorageError) -> NextPruning? {
        let rules = try database.read("reading properties") { try PruneRules.stored(in: $0) }
        guard let rules else { return nil }
        let estimate = RemovalEstimate(self, variant: nil)
        _ = try CachePruning(rules.withoutLimits, at: now).run(estimate) { _ in }
        return NextPruning(
            rules: rules, picked: estimate.totals,
            excess: CachePruning(rules, at: now).excess(of: try estimate.usage))
    }
}

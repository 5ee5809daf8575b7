package import PrefetchModel

/// Removes the images, variants and history that rules pick, each once, or estimates that. Each
/// batch is permanent: after a kill the cache is sound, and the next call continues.
package struct CachePruning {
    private let rules: PruneRules
    private let now: Timestamp
    private let shouldStop: () -> Bool
    private let isProtected: (Int64) -> Bool
    private let protectsSuperseded: (Int64) -> Bool

    /// Limits keep protected images, and superseded variants of images that `protectsSuperseded`
    /// accepts, by default the same ones. No batch begins once `shouldStop` returns true.
    package init(
        _ rules: PruneRules, at now: Timestamp, until shouldStop: @escaping () -> Bool = { false },
        protecting isProtected: @escaping (Int64) -> Bool = { _ in false },
        protectsSuperseded: ((Int64) -> Bool)? = nil
    ) {
        self.protectsSuperseded = protectsSuperseded ?? isProtected
        self.rules = rules
        self.now = now
        self.shouldStop = shouldStop
        self.isProtected = isProtected
    }

    /// Applies the rules; calls `report` after each batch. Returns whether it was not stopped.
    package func run(
        _ removal: some ImageRemoving, _ report: (RemovalTotals) -> Void
    ) throws(StorageError) -> Bool {
        let isComplete = try apply(removal, report, in: removal.database)
        try removal.finish()
        return isComplete
    }

    private func apply(
        _ removal: some ImageRemoving, _ report: (RemovalTotals) -> Void, in database: CacheDatabase
    ) throws(StorageError) -> Bool {
        // Read before the first removal, which would change them: an estimate would differ.
        var orders: [(selector: VariantSelector?, images: [PruneScan.Weight])] = []
        if try target(for: removal.usage) != nil {
            for selector in [VariantSelector.superseded, nil] {
                let images = try PruneScan.imagesByAge(with: selector, in: database, at: now)
                orders.append((selector, images))
            }
        }
        let selectors = try database.read("looking for the last use of a variant") {
            try rules.variantSelectors(at: now, in: $0)
        }
        let picked = try PruneScan.images(pickedBy: rules, in: database, at: now)
        guard try remove(picked, only: nil, by: removal, report) else { return false }
        for selector in selectors {
            let picked = try PruneScan.images(with: selector, in: database)
            guard try remove(picked, only: selector, by: removal, report) else { return false }
        }
        // Superseded variants first: no run uses them.
        if let target = try target(for: removal.usage) {
            for (selector, images) in orders {
                guard
                    try shrink(images, to: target, only: selector, by: removal, report)
                else { return false }
            }
        }
        if let age = rules.historyAge {
            try removal.removeHistory(before: now.advanced(by: .zero - age), at: now)
            report(removal.totals)
        }
        return true
    }

    private func remove(
        _ images: [Int64], only selector: VariantSelector?, by removal: some ImageRemoving,
        _ report: (RemovalTotals) -> Void
    ) throws(StorageError) -> Bool {
        var rest = images[...]
        while !rest.isEmpty {
            if shouldStop() { return false }
            let batch = rest.prefix(RemovalCandidate.batchSize(of: selector))
            rest = rest.dropFirst(batch.count)
            try removal.remove(images: Array(batch), only: selector)
            report(removal.totals)
        }
        return true
    }

    /// The usage to shrink to; nil if no limit is exceeded.
    private func target(for usage: DiskUsage) -> UsageLimit? {
        guard let limit = rules.limit, limit.isExceeded(by: usage) else { return nil }
        return limit.scaled(by: rules.lowWater)
    }

    /// The usage that must be removed if a limit is exceeded; otherwise none.
    func excess(of usage: DiskUsage) -> DiskUsage {
        target(for: usage)?.excess(of: usage) ?? DiskUsage(files: 0, blocks: 0)
    }

    /// Removes images in their order until the target is reached.
    private func shrink(
        _ images: [PruneScan.Weight], to target: UsageLimit, only selector: VariantSelector?,
        by removal: some ImageRemoving, _ report: (RemovalTotals) -> Void
    ) throws(StorageError) -> Bool {
        var rest = images[...]
        while !rest.isEmpty {
            var excess = target.excess(of: try removal.usage)
            guard excess.files > 0 || excess.blocks > 0 else { return true }
            if shouldStop() { return false }
            // A batch that may suffice, and no larger: files shared with other images free nothing.
            var batch: [Int64] = []
            while excess.files > 0 || excess.blocks > 0,
                batch.count < RemovalCandidate.batchSize(of: selector), let image = rest.popFirst()
            {
                guard !(selector == nil ? isProtected : protectsSuperseded)(image.id) else {
                    continue
                }
                batch.append(image.id)
                excess.files = max(0, excess.files - image.usage.files)
                excess.blocks = max(0, excess.blocks - image.usage.blocks)
            }
            try removal.remove(images: batch, only: selector)
            report(removal.totals)
        }
        return true
    }
}

/// The removals that a pruning by the stored rules would make.
package struct NextPruning: Sendable {
    package let rules: PruneRules
    /// Removals by rules that pick images or variants.
    package let picked: RemovalTotals
    /// Files and blocks that limits remove in addition, least recently used first.
    package let excess: DiskUsage
}

extension CacheCatalog {
    /// Returns the removals that a pruning would make now; nil if no rules are stored. Limits are
    /// compared with the totals. Rules that pick images read the row of each image.
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

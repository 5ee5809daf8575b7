package import PrefetchModel

/// Removes what rules pick from a cache, or finds out what that would come to.
///
/// Batch by batch, each for good: a kill in between leaves a sound cache, and the next call goes on. What
/// is picked twice goes once.
package struct CachePruning {
    private let rules: PruneRules
    private let now: Timestamp
    private let isOver: () -> Bool
    /// Images that a bound must not touch.
    private let isProtected: (Int64) -> Bool
    /// The same of variants of it that are superseded.
    private let protectsSuperseded: (Int64) -> Bool

    /// - Parameters:
    ///   - rules: what goes.
    ///   - now: the wall clock.
    ///   - isOver: whether nothing more is to begin.
    ///   - isProtected: whether a bound must leave an image alone.
    ///   - protectsSuperseded: whether it must leave superseded variants of an image alone, which somebody may be
    ///     about to use again; by itself those of every image that is protected.
    package init(
        _ rules: PruneRules, at now: Timestamp, until isOver: @escaping () -> Bool = { false },
        protecting isProtected: @escaping (Int64) -> Bool = { _ in false },
        protectsSuperseded: ((Int64) -> Bool)? = nil
    ) {
        self.protectsSuperseded = protectsSuperseded ?? isProtected
        self.rules = rules
        self.now = now
        self.isOver = isOver
        self.isProtected = isProtected
    }

    /// How it went.
    package struct Ending: Hashable, Sendable {
        /// Whether it came to its end.
        package var isComplete = true
        /// Whether the cache is within the bounds.
        package var isWithinBounds = true
    }

    /// Carries the rules out and tells after each batch what has gone.
    package func run(
        _ removal: some ImageRemoving, _ report: (RemovalTotals) -> Void
    ) throws(StorageError) -> Ending {
        let database = removal.database
        let isComplete = try carryOut(removal, report, in: database)
        try removal.finish()
        return Ending(
            isComplete: isComplete,
            isWithinBounds: try target(for: removal.usage) == nil)
    }

    /// - Returns: whether it came to its end.
    private func carryOut(
        _ removal: some ImageRemoving, _ report: (RemovalTotals) -> Void, in database: CacheDatabase
    ) throws(StorageError) -> Bool {
        // By what stands before anything goes, so that an estimate comes to the same.
        var orders: [(selector: VariantSelector?, images: [PruneScan.Weight])] = []
        if try target(for: removal.usage) != nil {
            for selector in [VariantSelector.superseded, nil] {
                let images = try PruneScan.imagesByAge(with: selector, in: database, at: now)
                orders.append((selector, images))
            }
        }
        var unused: VariantSelector?
        if let age = rules.variantsUnusedFor {
            let last = try PruneScan.lastUse(in: database, at: now)
            unused = .unused(since: last.advanced(by: .zero - age))
        }
        if rules.picksImages {
            let picked = try PruneScan.images(pickedBy: rules, in: database, at: now)
            guard try remove(picked, only: nil, by: removal, report) else { return false }
        }
        for selector in [rules.variant, unused].compactMap(\.self) {
            let picked = try PruneScan.images(with: selector, in: database)
            guard try remove(picked, only: selector, by: removal, report) else { return false }
        }
        // What no run uses any more before what one may want again.
        if let target = try target(for: removal.usage) {
            for (selector, images) in orders {
                guard
                    try shrink(images, to: target, only: selector, by: removal, report)
                else { return false }
            }
        }
        if let history = rules.history {
            try removal.removeHistory(before: now.advanced(by: .zero - history), at: now)
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
            if isOver() { return false }
            let batch = rest.prefix(RemovalCandidate.batchSize(of: selector))
            rest = rest.dropFirst(batch.count)
            try removal.remove(images: Array(batch), only: selector)
            report(removal.totals)
        }
        return true
    }

    // MARK: Bounds

    /// What is to be left; nil for what has no bound.
    private struct Target {
        var files: Int?
        var blocks: Int?

        /// By how much more there is.
        func excess(of usage: DiskUsage) -> (files: Int, blocks: Int) {
            (
                files.map { max(0, usage.files - $0) } ?? 0,
                blocks.map { max(0, usage.blocks - $0) } ?? 0
            )
        }
    }

    /// Nil when no bound is exceeded.
    private func target(for usage: DiskUsage) -> Target? {
        let blocks = rules.maximumSize.map { $0.bytes / DiskUsage.blockSize }
        let files = rules.maximumFiles
        guard usage.blocks > blocks ?? .max || usage.files > files ?? .max else { return nil }
        func low(_ bound: Int?) -> Int? {
            bound.map { Int(exactly: (Double($0) * rules.lowWater).rounded(.down)) ?? $0 }
        }
        return Target(files: low(files), blocks: low(blocks))
    }

    /// What has to go so that the cache comes down to the low water of a bound that is exceeded; nothing when none is.
    func excess(of usage: DiskUsage) -> DiskUsage {
        let excess = target(for: usage)?.excess(of: usage)
        return DiskUsage(files: excess?.files ?? 0, blocks: excess?.blocks ?? 0)
    }

    /// Removes images, one after the other, until no more than `target` is left.
    private func shrink(
        _ images: [PruneScan.Weight], to target: Target, only selector: VariantSelector?,
        by removal: some ImageRemoving, _ report: (RemovalTotals) -> Void
    ) throws(StorageError) -> Bool {
        var rest = images[...]
        while !rest.isEmpty {
            var excess = target.excess(of: try removal.usage)
            guard excess.files > 0 || excess.blocks > 0 else { return true }
            if isOver() { return false }
            // So many that they may be enough, and no more: a file that others have, too, frees nothing.
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

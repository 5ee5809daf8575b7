package import PrefetchModel
internal import SQLite

/// The rules that were given last, which `stats` says the next pruning goes by. They are rows of `property`, one
/// for each rule.
extension PruneRules {
    /// Whether the same rules may be expected next time: a host, a variant or lists are named once.
    fileprivate var areLasting: Bool {
        wanted == nil && variant == nil && isOfHost == nil && !isEmpty
    }

    /// Shares are kept in millionths.
    private static let wholeShare = 1_000_000.0

    private var properties: [(Schema.Property, Int64?)] {
        [
            (.pruneMaximumSize, maximumSize.map { Int64($0.bytes) }),
            (.pruneMaximumFiles, maximumFiles.map { Int64($0) }),
            (
                .pruneLowWater,
                maximumSize == nil && maximumFiles == nil
                    ? nil : Int64((lowWater * PruneRules.wholeShare).rounded())
            ),
            (.pruneUnlistedFor, unlistedFor?.wholeMilliseconds),
            (.pruneExpiredFor, expiredFor?.wholeMilliseconds),
            (.pruneGone, isGone ? 1 : nil),
            (.pruneVariantsUnusedFor, variantsUnusedFor?.wholeMilliseconds),
            (.pruneHistory, history?.wholeMilliseconds),
        ]
    }

    func areKept(in database: Connection) throws -> Bool {
        try properties.allSatisfy { property, value in try property.value(in: database) == value }
    }

    func keep(in database: Connection) throws {
        for (property, value) in properties {
            if let value {
                try property.set(to: value, in: database)
            } else {
                try property.remove(in: database)
            }
        }
    }

    /// Nil when none were given yet.
    static func kept(in database: Connection) throws -> PruneRules? {
        func value(_ property: Schema.Property) throws -> Int64? {
            // Damage may make it anything; none of these can be less.
            try property.value(in: database).map { max(0, $0) }
        }
        func duration(_ property: Schema.Property) throws -> Duration? {
            try value(property).map { .milliseconds($0) }
        }
        var rules = PruneRules()
        rules.maximumSize = try value(.pruneMaximumSize).map { ByteCount(Int($0)) }
        rules.maximumFiles = try value(.pruneMaximumFiles).map { Int($0) }
        if let share = try value(.pruneLowWater) {
            rules.lowWater = min(1, Double(share) / wholeShare)
        }
        rules.unlistedFor = try duration(.pruneUnlistedFor)
        rules.expiredFor = try duration(.pruneExpiredFor)
        rules.isGone = try value(.pruneGone) != nil
        rules.variantsUnusedFor = try duration(.pruneVariantsUnusedFor)
        rules.history = try duration(.pruneHistory)
        return rules.isEmpty ? nil : rules
    }
}

extension OpenCache {
    /// Notes by which rules the cache is pruned, for ``CacheCatalog/nextPruning(at:)``, if they can be expected to be given again.
    package func keep(_ rules: PruneRules) throws(StorageError) {
        guard rules.areLasting,
            try database.read("reading properties", { try !rules.areKept(in: $0) })
        else { return }
        try database.write("noting the rules") { try rules.keep(in: $0) }
    }
}

/// What pruning by the rules given last would remove.
package struct NextPruning: Sendable {
    package let rules: PruneRules
    /// By the rules that pick images.
    package let picked: RemovalTotals
    /// What bounds have go besides, the oldest first: files and what they take on the disk.
    package let excess: DiskUsage
}

extension CacheCatalog {
    /// What pruning would remove now; nil when no rules were given yet.
    ///
    /// Bounds are compared with the totals; rules that pick images look at each of them.
    package func nextPruning(at now: Timestamp) throws(StorageError) -> NextPruning? {
        let rules = try database.read("reading properties") { try PruneRules.kept(in: $0) }
        guard let rules else { return nil }
        var picking = rules
        picking.maximumSize = nil
        picking.maximumFiles = nil
        let estimate = RemovalEstimate(self, variant: nil)
        _ = try CachePruning(picking, at: now).run(estimate) { _ in }
        return NextPruning(
            rules: rules, picked: estimate.totals,
            excess: CachePruning(rules, at: now).excess(of: try estimate.usage))
    }
}

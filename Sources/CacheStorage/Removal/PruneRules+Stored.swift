import PrefetchModel
internal import SQLite

/// The rules of the last pruning, which `stats` assumes for the next one: one row of `property` for
/// each.
extension PruneRules {
    func areStored(in database: Connection) throws -> Bool {
        let values = storedValues
        return try PruneRule.allCases.allSatisfy { rule in
            try rule.value(in: database) == values[rule]
        }
    }

    func store(in database: Connection) throws {
        let values = storedValues
        for rule in PruneRule.allCases {
            if let value = values[rule] {
                try rule.set(to: value, in: database)
            } else {
                try rule.remove(in: database)
            }
        }
    }

    private var storedValues: [PruneRule: Int64] {
        Dictionary(uniqueKeysWithValues: settings.map { ($0.rule, $0.value) })
    }

    /// Reads the stored rules; nil before the first pruning.
    static func stored(in database: Connection) throws -> PruneRules? {
        var rules = PruneRules()
        for rule in PruneRule.allCases {
            // A damaged row may hold any value; no rule has a negative one.
            rules[rule] = try rule.value(in: database).map { max(0, $0) }
        }
        return rules.isEmpty ? nil : rules
    }
}

extension PruneRule: PropertyKey {
    var propertyName: String { "prune_" + rawValue.replacing("-", with: "_") }
}

extension OpenCache {
    /// Stores the rules for ``CacheCatalog/nextPruning(at:)``, unless they are for this pruning
    /// alone.
    package func store(_ rules: PruneRules) throws(StorageError) {
        guard !rules.isEmpty, !rules.areForOnce,
            try database.read("reading properties", { try !rules.areStored(in: $0) })
        else { return }
        try database.write("storing the rules") { try rules.store(in: $0) }
    }
}

package import Hashing
package import PrefetchModel
internal import SQLite

/// The rules of one pruning. An image or variant is removed if any of them picks it.
package struct PruneRules: Sendable {
    /// Values in the units of their rules.
    private var values: [PruneRule: Int64] = [:]
    /// The keys of images to keep; nil keeps all.
    package var wanted: Set<KeyFingerprint>?
    package var variant: VariantSelector?
    /// Removes images of hosts, given as the cache stores them: scheme, host and port.
    package var isOfHost: (@Sendable (String) -> Bool)?

    package init(_ settings: [PruneRule.Setting] = []) {
        for setting in settings { values[setting.rule] = setting.value }
    }

    package init(maximumSize: ByteCount) {
        values[.maxSize] = Int64(maximumSize.bytes)
    }

    /// The value of a rule in its unit; nil if the rule is not in use.
    package subscript(rule: PruneRule) -> Int64? {
        get { values[rule] }
        set { values[rule] = newValue }
    }

    /// The rules in use, in the order of their cases; with a limit, also the scale of limits.
    package var settings: [PruneRule.Setting] {
        PruneRule.allCases.compactMap { rule in
            let value =
                if case .limitScale = rule.definition.effect {
                    limit == nil ? nil : lowWater.millionths
                } else {
                    values[rule]
                }
            return value.map { PruneRule.Setting(rule: rule, value: $0) }
        }
    }

    /// The settings as `run --prune` reads them. Hosts, manifests and a variant have no such form.
    package var specification: String {
        settings.map(\.specification).joined(separator: ",")
    }

    package var isEmpty: Bool {
        settings.isEmpty && !areForOnce
    }

    /// Whether a host, a variant or manifests are named, which no later pruning repeats.
    var areForOnce: Bool { wanted != nil || variant != nil || isOfHost != nil }

    var lowWater: Share {
        values[.lowWater].map(Share.init(millionths:)) ?? PruneRule.defaultLowWater
    }

    /// All limits; nil without any.
    var limit: UsageLimit? {
        values.reduce(into: nil) { limit, entry in
            if case .limit(let make) = entry.key.definition.effect {
                limit = make(entry.value).merging(limit ?? UsageLimit())
            }
        }
    }

    var withoutLimits: PruneRules {
        var rules = self
        rules.values = values.filter {
            if case .limit = $0.key.definition.effect { false } else { true }
        }
        return rules
    }

    /// The predicates of images, one for each rule that removes whole images.
    func imagePredicates(
        at now: Timestamp, in database: Connection
    ) throws -> [PruneRule.ImagePredicate] {
        var predicates: [PruneRule.ImagePredicate] = []
        if let isOfHost { predicates.append { isOfHost($0.host) } }
        if let wanted {
            predicates.append { image in image.key.map { !wanted.contains($0) } ?? false }
        }
        for setting in settings {
            if case .images(let make) = setting.rule.definition.effect {
                predicates.append(try make(setting.value, now, database))
            }
        }
        return predicates
    }

    /// The selectors of variants, one for each rule that removes variants.
    func variantSelectors(at now: Timestamp, in database: Connection) throws -> [VariantSelector] {
        var selectors = [variant].compactMap(\.self)
        for setting in settings {
            if case .variants(let make) = setting.rule.definition.effect {
                selectors.append(try make(setting.value, now, database))
            }
        }
        return selectors
    }

    /// The age from which history is removed; nil keeps all of it.
    var historyAge: Duration? { values[.history].map { .milliseconds($0) } }
}

/// The rules of the last pruning, which `stats` assumes for the next one, as rows of `property`.
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
    /// Stores rules for ``CacheCatalog/nextPruning(at:)`` unless they are for this pruning alone.
    package func store(_ rules: PruneRules) throws(StorageError) {
        guard !rules.isEmpty, !rules.areForOnce,
            try database.read("reading properties", { try !rules.areStored(in: $0) })
        else { return }
        try database.write("storing the rules") { try rules.store(in: $0) }
    }
}

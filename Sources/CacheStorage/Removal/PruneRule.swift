package import Hashing
package import PrefetchModel
internal import SQLite

/// A rule of `prefetch prune` with at most one value, which later runs can apply again. A new rule
/// takes a case, its row in ``definition``, and, if it has a value, an option in `PruneOptions`.
/// `run --prune`, help, stored rules, messages and pruning iterate over the cases.
package enum PruneRule: String, CaseIterable, Sendable {
    // In the order in which `stats` prints rules.
    case unlistedFor = "unlisted-for"
    case unusedFor = "unused-for"
    case expiredFor = "expired-for"
    case gone
    case variantsUnusedFor = "variants-unused-for"
    case history
    case maxSize = "max-size"
    case maxFiles = "max-files"
    case lowWater = "low-water"

    struct Definition {
        let unit: Unit
        /// A sensible value, as it is written on the command line.
        var example = ""
        let help: String
        let effect: Effect
    }

    var definition: Definition {
        switch self {
        case .unlistedFor:
            Definition(
                unit: .age, example: "30d",
                help: """
                    Images that no run has listed for this time, counted back from the last run that listed any.
                    """,
                effect: .images(PruneScan.unlisted))
        case .unusedFor:
            Definition(
                unit: .age, example: "30d",
                help: """
                    Images that no run has listed and no `get` has returned for this time, counted back from the \
                    last run that listed any.
                    """,
                effect: .images(PruneScan.unused))
        case .expiredFor:
            Definition(
                unit: .age, example: "90d", help: "Images that have been stale for this time.",
                effect: .images(PruneScan.expired))
        case .gone:
            Definition(
                unit: .none, help: "Images of URLs that are blacklisted after HTTP 404 or 410.",
                effect: .images(PruneScan.gone))
        case .variantsUnusedFor:
            Definition(
                unit: .age, example: "30d",
                help: """
                    Variants that no run has used for this time, counted back from the last run: superseded ones, \
                    and variants of names that no run has requested.
                    """,
                effect: .variants(PruneScan.unusedVariants))
        case .history:
            Definition(
                unit: .age, example: "90d",
                help: """
                    Records of failures, hosts, runs and partial downloads from before this time; blacklist entries \
                    in force stay.
                    """,
                effect: .history)
        case .maxSize:
            Definition(
                unit: .size, example: "20GiB",
                help: "Keep the content files within this size on disk.",
                effect: .limit { UsageLimit(blocks: Int($0) / DiskUsage.blockSize) })
        case .maxFiles:
            Definition(
                unit: .count, example: "100000", help: "Keep at most this number of content files.",
                effect: .limit { UsageLimit(files: Int($0)) })
        case .lowWater:
            Definition(
                unit: .share, example: "90%",
                help: """
                    Once a limit is exceeded, remove images down to this share of it \
                    (default: \(PruneRule.defaultLowWater)).
                    """,
                effect: .limitScale)
        }
    }

    /// The share of an exceeded limit that a pruning fills at most, where no rule says otherwise.
    package static let defaultLowWater = Share(millionths: 900_000)

    package var unit: Unit { definition.unit }
    package var help: String { definition.help }

    /// The rule with a sensible value, as `run --prune` reads it.
    package var example: String { text(definition.example) }

    /// The rule with a value, as `run --prune` reads it.
    func text(_ value: String) -> String { unit == .none ? rawValue : "\(rawValue)=\(value)" }

    /// The form of a value, for messages: `takes a size with its unit, like 20GiB`.
    package var requirement: String {
        switch unit {
        case .none: "takes no value"
        case .age: "takes a duration with its unit, like \(definition.example)"
        case .size: "takes a size with its unit, like \(definition.example)"
        case .count: "takes a number, like \(definition.example)"
        case .share: "takes a percentage, like \(definition.example)"
        }
    }

    package func setting(_ text: String?) -> Setting? {
        unit.value(text).map { Setting(rule: self, value: $0) }
    }

    package enum Unit: Sendable {
        /// The rule has no value; 1 stands for it.
        case none
        case age
        case size
        case count
        /// Millionths of the whole, see ``Share``.
        case share

        /// Parses a value from a command line. Ages and sizes below 1 MiB need a unit: `30` in the
        /// sense of days would be read as seconds, and the rule would remove nearly everything.
        func value(_ text: String?) -> Int64? {
            guard self != .none else { return text == nil ? 1 : nil }
            guard let text else { return nil }
            let hasUnit = text.last?.isNumber == false
            switch self {
            case .none: return nil
            case .age: return hasUnit ? Duration(quantity: text)?.wholeMilliseconds : nil
            case .size:
                guard let size = ByteCount(quantity: text), hasUnit || size >= .mebibytes(1) else {
                    return nil
                }
                return Int64(size.bytes)
            case .count: return Int64(text).flatMap { $0 < 0 ? nil : $0 }
            case .share: return Share(percentage: text)?.millionths
            }
        }

        func text(_ value: Int64) -> String {
            switch self {
            case .none: ""
            case .age: Duration.milliseconds(value).quantityDescription
            case .size: ByteCount(Int(value)).quantityDescription
            case .count: "\(value)"
            case .share: Share(millionths: value).description
            }
        }
    }

    package struct Setting: Hashable, Sendable, CustomStringConvertible {
        package let rule: PruneRule
        /// In the rule's unit.
        package let value: Int64

        package init(rule: PruneRule, value: Int64) {
            self.rule = rule
            self.value = value
        }

        /// The value as a command line has it.
        package var description: String { rule.unit.text(value) }

        /// The setting as `run --prune` reads it: `max-size=20GiB`.
        var specification: String { rule.text(description) }
    }

    typealias ImagePredicate = (ScannedImage) -> Bool

    /// The rows that a rule removes. Functions take its value, the wall clock and a connection.
    enum Effect {
        /// Removes images for which the returned predicate holds.
        case images((Int64, Timestamp, Connection) throws -> ImagePredicate)
        case variants((Int64, Timestamp, Connection) throws -> VariantSelector)
        /// Removes the least recently used variants and images once the cache exceeds the limit.
        case limit((Int64) -> UsageLimit)
        /// Sets how far below an exceeded limit a pruning removes images.
        case limitScale
        /// Removes old rows that belong to no image.
        case history
    }
}

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

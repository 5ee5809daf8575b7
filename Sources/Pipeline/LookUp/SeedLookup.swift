import CacheStorage
import EntryLifecycle
import HTTPSemantics
import Hashing
import PrefetchModel

/// Finds entries that need a request, although their images are fresh in a seed cache.
///
/// For one thread.
struct SeedLookup {
    private let reader: CacheReader
    private let index: FreshnessIndex
    private let configuration: RunConfiguration
    private let wallClock: @Sendable () -> Timestamp

    init(
        _ source: CacheCatalog, index: FreshnessIndex, configuration: RunConfiguration,
        wallClock: @escaping @Sendable () -> Timestamp
    ) throws(StorageError) {
        reader = try CacheReader(source.directory, matchesVary: configuration.matchesVary())
        self.index = index
        self.configuration = configuration
        self.wallClock = wallClock
    }

    func apply(to looked: inout LookedUpBatch) throws(StorageError) {
        let batch = looked.batch
        let numbers = batch.records.indices.filter {
            looked.findings[$0].state.asksOrigin || looked.findings[$0].blacklisting != nil
        }
        guard !numbers.isEmpty else { return }
        let asked = AskedVariants(configuration.images.variants, of: batch, hasher: SHA256Hasher())
        let all = asked.fingerprints(of: looked.findings.map(\.fingerprint))
        let records = try index.records(
            of: numbers.flatMap { all[asked.places(of: $0)] }, with: reader)
        let now = wallClock()
        var next = 0
        for number in numbers {
            let found = records[next..<next + asked.places(of: number).count]
            next = found.endIndex
            let extras = batch.extras(of: batch.records[number])
            guard let first = found.first ?? nil,
                found.allSatisfy({ $0?.resourceID == first.resourceID }),
                let expiresAt = try reader.warmUntil(
                    first, by: configuration, extras: extras, at: now)
            else { continue }
            if let digest = extras?.sourceDigest,
                try reader.wereMade(of: [(first.resourceID, digest)]) != [true]
            {
                continue
            }
            looked.findings[number].state = .seeded(expiresAt: expiresAt)
        }
    }
}

extension CacheReader {
    /// Returns the expiry, by a run's rules, of a copy that is used without a request; nil for
    /// another.
    func warmUntil(
        _ record: FreshnessRecord, by configuration: RunConfiguration, extras: EntryExtras?,
        at now: Timestamp
    ) throws(StorageError) -> Timestamp? {
        let rules = configuration.lifetimes.rules(extras)
        switch configuration.lifetimes.refresh {
        case .none:
            return Freshness.extendedExpiry(
                validatedAt: record.validatedAt, expiresAt: record.expiresAt, at: now, rules: rules)
        case .all, .force: return nil
        case .stale:
            guard
                Freshness.isFresh(
                    validatedAt: record.validatedAt, expiresAt: record.expiresAt, at: now,
                    rules: rules),
                try matchesVary(record, configuration, extras)
            else { return nil }
            return Freshness.expiry(
                validatedAt: record.validatedAt, expiresAt: record.expiresAt, rules: rules)
        }
    }

    private func matchesVary(
        _ record: FreshnessRecord, _ configuration: RunConfiguration, _ extras: EntryExtras?
    ) throws(StorageError) -> Bool {
        guard let extras, !extras.headers.isEmpty else { return try matchesVary(record) }
        return try matchesVary(
            record, isSelected: configuration.matchesVary(userFields: extras.headers))
    }
}

package import CacheStorage
import Codecs
import HTTPSemantics
import Pipeline
package import PrefetchModel
import Scheduling

// The freshness of stored copies, by the default rules of a run, for commands that only read.

extension CacheCatalog.Item {
    /// Whether a copy may be used without a request to its origin.
    package enum FreshnessStanding: Hashable, Sendable {
        case fresh
        case expired
        /// It has to be validated at every use, which only a run does.
        case validatedAtEveryUse
        /// It was validated in the future: the clock was or is wrong, and its age is unknown.
        case fromTheFuture
    }

    package func standing(at now: Timestamp) -> FreshnessStanding {
        if CacheCatalog.isFresh(validatedAt: validatedAt, expiresAt: expiresAt, at: now) {
            return .fresh
        }
        if isValidatedAtEveryUse { return .validatedAtEveryUse }
        return now < expiresAt ? .fromTheFuture : .expired
    }

    package var isValidatedAtEveryUse: Bool { expiresAt <= Freshness.alwaysStale }

    /// See ``PrefetchModel/Recipe/effectiveText(of:under:)``.
    package func isMade(asBy recipe: String) -> Bool {
        let rule = CodecLibraries.sameRules[download.format]
        return Recipe.effectiveText(of: self.recipe, under: rule)
            == Recipe.effectiveText(of: recipe, under: rule)
    }

    /// Whether its origin forbids any stale use (RFC 9111 §4.2.4).
    package var forbidsStaleUse: Bool { CacheControl(text: download.cacheControl).forbidsStaleUse }
}

extension CacheCatalog {
    fileprivate static func isFresh(
        validatedAt: Timestamp, expiresAt: Timestamp, at now: Timestamp
    ) -> Bool {
        Freshness.isFresh(
            validatedAt: validatedAt, expiresAt: expiresAt, at: now, rules: Freshness.Rules())
    }

    /// Returns sums over the cache, by the rules of a run with default flags.
    package func statistics(at now: Timestamp) throws(StorageError) -> Statistics {
        try statistics(
            at: now,
            isFresh: { CacheCatalog.isFresh(validatedAt: $0, expiresAt: $1, at: now) },
            isBlacklisted: { $0.isBlacklisted(at: now) })
    }

    /// Calls `body`, by name, for every host with a failed URL or a special treatment at `now`.
    package func forEachHost(at now: Timestamp, _ body: (StoredHost) throws -> Void) throws {
        try forEachHost(
            at: now,
            isBlacklisted: {
                FailurePolicy.isBlacklisted(blacklistedUntil: $0, lastFailedAt: $1, at: now)
            }, body)
    }
}

extension CacheCatalog.ListRow {
    package var isValidatedAtEveryUse: Bool { expiresAt <= Freshness.alwaysStale }
}

extension ListSelection.FreshnessTest {
    /// Tests whether an image will be fresh (or stale) for a run with default flags after a time
    /// from `now` on. It is ``HTTPSemantics/Freshness/isFresh(validatedAt:expiresAt:at:rules:)``
    /// with rules that neither force nor limit a lifetime, as conditions for SQL.
    package init(fresh: Bool, at now: Timestamp, ahead: Duration = .zero) {
        self.init(
            latestValidation: now.advanced(by: Timestamp.toleratedClockStep),
            latestExpired: max(now.advanced(by: ahead), Freshness.alwaysStale), isFresh: fresh)
    }
}

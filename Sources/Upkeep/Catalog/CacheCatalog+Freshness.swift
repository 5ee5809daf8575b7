package import CacheStorage
import HTTPSemantics
import Pipeline
package import PrefetchModel

// What the commands that only look say of stored copies, by the rules of a run.

extension CacheCatalog.Item {
    /// Whether a copy may be used without asking its origin.
    package enum Standing: Hashable, Sendable {
        case fresh
        case expired
        /// It has to be validated at every use, and only a run can do that.
        case validatedAtEveryUse
        /// It was validated in the future: the clock was wrong then or is wrong now, and nobody
        /// knows how old it is.
        case fromTheFuture
    }

    /// What a run with default flags would find.
    package func standing(at now: Timestamp) -> Standing {
        if CacheCatalog.isFresh(validatedAt: validatedAt, expiresAt: expiresAt, at: now) {
            return .fresh
        }
        if isValidatedAtEveryUse { return .validatedAtEveryUse }
        return now < expiresAt ? .fromTheFuture : .expired
    }

    package var isValidatedAtEveryUse: Bool { expiresAt <= Freshness.alwaysStale }

    /// Whether its origin forbids any use once it is stale (RFC 9111 §4.2.4).
    package var forbidsStaleUse: Bool { CacheControl(text: cacheControl).forbidsStaleUse }
}

extension CacheCatalog {
    fileprivate static func isFresh(
        validatedAt: Timestamp, expiresAt: Timestamp, at now: Timestamp
    ) -> Bool {
        Freshness.isFresh(
            validatedAt: validatedAt, expiresAt: expiresAt, at: now, rules: Freshness.Rules())
    }

    /// Sums over the cache as a run with default flags would find it.
    package func statistics(at now: Timestamp) throws(StorageError) -> Statistics {
        try statistics(
            at: now,
            isFresh: { CacheCatalog.isFresh(validatedAt: $0, expiresAt: $1, at: now) },
            isBlacklisted: { $0.isBlacklisted(at: now) })
    }
}

extension CacheCatalog.Row {
    package var isValidatedAtEveryUse: Bool { expiresAt <= Freshness.alwaysStale }
}

extension ListSelection.FreshnessTest {
    /// Whether a run with default flags would find an image fresh after a time from `now` on, if nothing
    /// happened to it; or that it would not.
    ///
    /// It is ``HTTPSemantics/Freshness/isFresh(validatedAt:expiresAt:at:rules:)`` with rules that neither
    /// force nor bound a lifetime, in the form that SQL can ask for.
    package init(fresh: Bool, at now: Timestamp, ahead: Duration = .zero) {
        self.init(
            latestValidation: now.advanced(by: Timestamp.toleratedClockStep),
            latestExpired: max(now.advanced(by: ahead), Freshness.alwaysStale), isFresh: fresh)
    }
}

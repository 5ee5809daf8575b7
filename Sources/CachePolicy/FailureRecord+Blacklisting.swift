package import CacheStorage
package import PrefetchModel
import Scheduling

extension FailureRecord {
    /// Whether its URL is not asked for at `now`.
    package func isBlacklisted(at now: Timestamp) -> Bool {
        FailurePolicy.isBlacklisted(
            blacklistedUntil: blacklistedUntil, lastFailedAt: lastFailedAt, at: now)
    }
}

extension CacheCatalog {
    /// Calls `body` for every host that the next run treats in a way of its own or of which a URL has
    /// failed, ordered by name; `now` is by the wall clock.
    package func forEachHost(at now: Timestamp, _ body: (Host) throws -> Void) throws {
        try forEachHost(
            at: now,
            isBlacklisted: {
                FailurePolicy.isBlacklisted(blacklistedUntil: $0, lastFailedAt: $1, at: now)
            }, body)
    }
}

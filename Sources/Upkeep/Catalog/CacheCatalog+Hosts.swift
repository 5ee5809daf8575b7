package import CacheStorage
package import PrefetchModel
import Scheduling

extension CacheCatalog {
    /// Calls `body`, ordered by name, for every host that has a failed URL or that the next run
    /// treats specially; `now` is by the wall clock.
    package func forEachHost(at now: Timestamp, _ body: (StoredHost) throws -> Void) throws {
        try forEachHost(
            at: now,
            isBlacklisted: {
                FailurePolicy.isBlacklisted(blacklistedUntil: $0, lastFailedAt: $1, at: now)
            }, body)
    }
}

package import CacheStorage
package import PrefetchModel
import Scheduling

extension FailureRecord {
    /// Whether its URL is blacklisted at `now`.
    package func isBlacklisted(at now: Timestamp) -> Bool {
        FailurePolicy.isBlacklisted(
            blacklistedUntil: blacklistedUntil, lastFailedAt: lastFailedAt, at: now)
    }
}

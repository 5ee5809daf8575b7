package import CacheStorage
package import PrefetchModel
import Scheduling

extension FailureRecord {
    /// Whether its URL is not asked for at `now`.
    package func isBlocking(at now: Timestamp) -> Bool {
        FailurePolicy.isBlocking(
            blockedUntil: blockedUntil, lastFailedAt: lastFailedAt, at: now)
    }
}

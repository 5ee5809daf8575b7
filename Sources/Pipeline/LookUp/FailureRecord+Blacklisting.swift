package import CacheStorage
package import PrefetchModel
import Scheduling

extension FailureRecord {
    package func isBlacklisted(at now: Timestamp) -> Bool {
        FailurePolicy.isBlacklisted(
            blacklistedUntil: blacklistedUntil, lastFailedAt: streak.lastFailedAt, at: now)
    }

    /// Whether the failure may have been the host's, so that it ends with the host's next success.
    var isOfHost: Bool {
        hostWasDown && RetryPolicy.isRetried(reason, httpStatus: httpStatus)
    }

    var unrequestedEnd: (outcome: Outcome, reason: FailureReason?) {
        reason.isExclusion ? (.excluded, reason) : (.blacklisted, nil)
    }

    var blacklistMessage: String {
        if reason.isExclusion {
            return message + (blacklistedUntil.map { "; next look after \($0)" } ?? "")
        }
        let runs = streak.runsInARow > 1 ? " in \(streak.runsInARow) runs in a row" : ""
        let until = blacklistedUntil.map { "; next try after \($0)" } ?? ""
        return "failed with \(cause)\(runs)\(until)"
    }
}

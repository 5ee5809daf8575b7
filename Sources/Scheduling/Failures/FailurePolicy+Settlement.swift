package import PrefetchModel

extension FailurePolicy {
    /// Returns the end of the time for which a stored image's failure may be its host's.
    package static func endOfFault(firstFailedAt: Timestamp) -> Timestamp {
        firstFailedAt.advanced(by: HostFaultRule.longestFault)
    }

    /// Decides at the end of a run whether and until when a failure is blacklisted. Returns nil for
    /// a failure that says nothing about its URL: the former one stays.
    ///
    /// `statuses` are the user's, see ``failureClass(of:httpStatus:blacklisting:)``.
    package static func settlement(
        of failure: UnsettledFailure, at host: HostVerdict, blacklisting statuses: StatusSet? = nil
    ) -> FailureSettlement? {
        let kind = failureClass(
            of: failure.reason, httpStatus: failure.httpStatus, blacklisting: statuses)
        guard kind != .ours else { return nil }
        // The host says nothing about a URL that fails in another way anyway.
        if let former = failure.former, former.host != .fault, host.isAtFault, !host.hasSuccess,
            former.reason != failure.reason || former.httpStatus != failure.httpStatus
        {
            return nil
        }
        let end = endOfFault(firstFailedAt: failure.firstFailedAt)
        if failure.isStored, failure.lastFailedAt < end {
            // A probe has failed.
            if failure.former?.host == .fault, !host.hasRecovered { return nil }
            if host.isAtFault {
                return FailureSettlement(
                    kind: kind,
                    runsInARow: kind == failure.streak.kind ? failure.streak.runsInARow : 0,
                    blacklistedUntil: end, host: .fault)
            }
        }
        if host.isInOutage {
            guard failure.former == nil else { return nil }
            return FailureSettlement(
                kind: failure.streak.kind, runsInARow: failure.streak.runsInARow,
                blacklistedUntil: nil, host: .fault)
        }
        let isHostDown =
            kind == .transient && !host.hasSuccess
            && RetryPolicy.isRetried(failure.reason, httpStatus: failure.httpStatus)
        if isHostDown, let former = failure.former, former.host != .fault, former.isLasting {
            return nil
        }
        return settlement(of: failure, kind, isHostDown: isHostDown)
    }

    /// The usual blacklist.
    private static func settlement(
        of failure: UnsettledFailure, _ kind: FailureClass, isHostDown: Bool
    ) -> FailureSettlement {
        // Permanent failures are consecutive only for the same cause.
        let isSame =
            kind != .permanent
            || failure.former.map { $0.reason == failure.reason && $0.hasSameConditions } ?? false
        let runs = nextRunsInARow(
            previous: isSame ? (failure.streak.kind, failure.streak.runsInARow) : nil, now: kind)
        let duration = blacklistDuration(
            confirmations: confirmations(kind, reason: failure.reason, runsInARow: runs))
        let end = duration.map {
            failure.lastFailedAt.advanced(
                by: isHostDown ? min($0, maximumDurationOfDownHost) : $0)
        }
        return FailureSettlement(
            kind: kind, runsInARow: runs, blacklistedUntil: end, host: isHostDown ? .down : nil)
    }

    /// Returns whether and how a failure is known from earlier runs.
    ///
    /// `isExplained`: whether its host was in trouble before, see
    /// ``OngoingOutages/explain(_:httpStatus:host:failedBefore:isStored:)``. `isSameURL`: whether
    /// the former failure was of the same URL. `isHostOut`: whether an outage of its host was
    /// reported. `hasSuccess`: whether its host has responded in this run.
    package static func knowledge(
        of failure: (reason: FailureReason, httpStatus: Int?), former: FormerFailure?,
        isSameURL: Bool, isExplained: Bool, isHostOut: Bool = false, hasSuccess: Bool
    ) -> FailureKnowledge {
        guard let former else { return isExplained ? .ofHost : .new }
        let repeats =
            isSameURL
            && (former.reason == failure.reason
                && (failure.reason != .httpStatus || former.httpStatus == failure.httpStatus)
                // A refusal is nothing new after a permanent failure.
                || isKnown(of: failure.reason, httpStatus: failure.httpStatus)
                    && failureClass(of: former.reason, httpStatus: former.httpStatus)
                        == .permanent)
        if repeats { return former.host == .fault ? .ofHost : .ofURL }
        // An outage of a host is one fact, with any status. It is no news about a URL that fails
        // anyway.
        let isRetried = RetryPolicy.isRetried(failure.reason, httpStatus: failure.httpStatus)
        let isLasting =
            failureClass(of: former.reason, httpStatus: former.httpStatus) != .transient
        let isOfHost =
            isRetried && (former.host != nil || isSameURL && isLasting)
            || isHostOut && isSameURL && former.host != .fault
        return !hasSuccess && isOfHost || isExplained ? .ofHost : .new
    }
}

/// The reason why a failure is no news.
package enum FailureKnowledge: Hashable, Sendable {
    case new
    /// The URL has failed in the same way before.
    case ofURL
    /// Its host was in trouble before; the end of the run tells whether that has been reported.
    case ofHost
}

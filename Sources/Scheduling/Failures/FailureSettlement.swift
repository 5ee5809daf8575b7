package import PrefetchModel

/// A failure of a run, as its end finds it in the table of failures.
package struct UnsettledFailure: Sendable {
    package var reason: FailureReason
    package var httpStatus: Int?
    /// Whether the cache has an image of its key.
    package var isStored: Bool
    package var firstFailedAt: Timestamp
    package var lastFailedAt: Timestamp
    /// The class and the number of failed runs in a row before this run.
    package var streak: (kind: FailureClass, runsInARow: Int)
    /// The failure before this run; nil without one.
    package var former: FormerCause?

    package struct FormerCause: Sendable {
        package var reason: FailureReason?
        package var httpStatus: Int?
        package var host: HostMark?
        /// Whether it depended on the same values of settings.
        package var hasSameConditions: Bool

        package init(
            reason: FailureReason?, httpStatus: Int?, host: HostMark?, hasSameConditions: Bool
        ) {
            self.reason = reason
            self.httpStatus = httpStatus
            self.host = host
            self.hasSameConditions = hasSameConditions
        }

        /// Whether it does not pass by itself.
        var isLasting: Bool {
            guard let reason else { return false }
            return FailurePolicy.failureClass(of: reason, httpStatus: httpStatus) != .transient
        }
    }

    package init(
        reason: FailureReason, httpStatus: Int?, isStored: Bool, firstFailedAt: Timestamp,
        lastFailedAt: Timestamp, streak: (kind: FailureClass, runsInARow: Int),
        former: FormerCause?
    ) {
        self.reason = reason
        self.httpStatus = httpStatus
        self.isStored = isStored
        self.firstFailedAt = firstFailedAt
        self.lastFailedAt = lastFailedAt
        self.streak = streak
        self.former = former
    }
}

/// A run's verdict about the host of a failure.
package struct HostVerdict: Hashable, Sendable {
    /// Whether an outage of the run explains the failure, see ``OutageRule``.
    package var isInOutage = false
    /// Whether most stored images of the host fail, see ``HostFaultRule``.
    package var isAtFault = false
    /// Whether any entry of the host succeeded.
    package var hasSuccess = false
    /// Whether the fault that an earlier run found has ended: its probe succeeded.
    package var hasRecovered = false

    package init(
        isInOutage: Bool = false, isAtFault: Bool = false, hasSuccess: Bool = false,
        hasRecovered: Bool = false
    ) {
        self.isInOutage = isInOutage
        self.isAtFault = isAtFault
        self.hasSuccess = hasSuccess
        self.hasRecovered = hasRecovered
    }
}

/// The values that a run's end gives to a failure.
package struct FailureSettlement: Hashable, Sendable {
    package var kind: FailureClass
    package var runsInARow: Int
    package var blacklistedUntil: Timestamp?
    package var host: HostMark?

    package init(
        kind: FailureClass, runsInARow: Int, blacklistedUntil: Timestamp?, host: HostMark?
    ) {
        self.kind = kind
        self.runsInARow = runsInARow
        self.blacklistedUntil = blacklistedUntil
        self.host = host
    }
}

package import PrefetchModel

/// Decides which failures blacklist a URL, for how long, and when a stored entry of the blacklist
/// still holds.
///
/// Pure functions over a URL's row of failures, which holds `runs_in_a_row`, `last_failed_at` and
/// `blacklisted_until`. A failed run counts with ``nextRunsInARow(previous:now:)``, unless its
/// class is ``FailureClass/ours``. The URL is then blacklisted for
/// ``blacklistDuration(confirmations:)`` of ``confirmations(_:reason:runsInARow:)``. A success
/// removes the row.
package enum FailurePolicy {
    /// Consecutive failed runs after which transient failures are blacklisted.
    package static let transientRunsToBlacklist = 5

    /// The longest time on the blacklist: 30 days.
    package static let maximumBlacklistDuration = Duration.days(30)

    /// The longest time for a URL of a host that was down, so that the host's return is noticed.
    package static let maximumDurationOfDownHost = Duration.days(1)

    // MARK: The table

    /// Returns the class of a failure: the one table of retried and blacklisted failures.
    ///
    /// The status counts only for the reason `http-status`. The class of any other reason does not
    /// depend on the status. `statuses` are the user's, in place of the default ones: they are
    /// permanent, and all others are not.
    package static func failureClass(
        of reason: FailureReason, httpStatus: Int?, blacklisting statuses: StatusSet? = nil
    ) -> FailureClass {
        switch reason {
        // The manifest's line is wrong; the corrected line may have the same key.
        case .invalidEntry: .ours
        // The program does not learn the scheme between two runs.
        case .unsupportedScheme: .permanent
        // A flag of the user refused it; the next run may omit the flag.
        case .refusedAddress: .ours
        // Resolvers fail far more often than names are removed, and a dead resolver fails for every
        // name.
        case .dns: .transient
        // The host is down or restarting, or the network is.
        case .connect: .transient
        // Certificates are renewed, and a wrong clock makes all of them invalid.
        case .tls: .transient
        // Load and latency change.
        case .timeout: .transient
        // Like a time-out: one slow hour says nothing about the next.
        case .stalled: .transient
        // A cut connection says nothing about the resource behind it.
        case .interrupted: .transient
        // Loops, too many hops and refused targets are configuration of the site.
        case .redirect: .permanent
        case .httpStatus:
            failureClass(ofStatus: httpStatus, blacklisting: statuses)
        // The resource keeps its size, and the limit seldom changes.
        case .tooLarge: .permanent
        // The whole body arrived and is something else. Captive portals send such bodies, too;
        // ``OutageRule`` detects them.
        case .notAnImage: .permanent
        // The whole body arrived; decoding the same bytes again gives the same error. Data that
        // ends early on a body of unknown length is `interrupted`.
        case .corruptImage: .permanent
        // The image's header says so, and another request does not change it.
        case .tooManyPixels: .permanent
        // A kind of image that this program cannot decode.
        case .unsupportedImage: .permanent
        // The image does not change, and the rule is one of the stored settings.
        case .otherFormat, .belowMinimumSize, .overMaximumAspect, .belowMinimumBytes, .robots:
            .permanent
        // Never requested.
        case .notSelected: .ours
        // The origin forbids storing it, which is configuration of the site.
        case .uncacheable: .permanent
        // A program of the user, which may be fixed at any time.
        case .bodyFilter: .ours
        // The local disk; the origin has no part in it.
        case .disk: .ours
        // A fault of this program must not count against the URL.
        case .internal: .ours
        }
    }

    /// Whether a failure of the class ``FailureClass/ours`` is remembered without being
    /// blacklisted: the origin refuses this client.
    ///
    /// Object stores that forbid listing send 403 for missing objects. So these are dead URLs as
    /// often as wrong credentials, and are reported as new once.
    package static func isKnown(
        of reason: FailureReason, httpStatus: Int?, blacklisting statuses: StatusSet? = nil
    ) -> Bool {
        reason == .httpStatus && httpStatus != nil
            && failureClass(of: reason, httpStatus: httpStatus, blacklisting: statuses) == .ours
    }

    /// Returns the class for the reason `http-status`, with the user's permanent statuses.
    private static func failureClass(
        ofStatus status: Int?, blacklisting statuses: StatusSet?
    ) -> FailureClass {
        let usual = failureClass(ofStatus: status)
        guard let statuses, let status else { return usual }
        if statuses.contains(status) { return .permanent }
        return usual == .permanent ? .transient : usual
    }

    private static func failureClass(ofStatus status: Int?) -> FailureClass {
        // A missing status is a fault of this program, like `internal`.
        guard let status else { return .ours }
        return switch status {
        // The user fixes credentials and permissions (RFC 9110 §15.5.2, §15.5.4, §15.5.8), and the
        // very next run has to work.
        case 401, 403, 407: .ours
        // The origin timed out waiting for the request, which may be repeated (RFC 9110 §15.5.9).
        case 408: .transient
        // Sent over a connection that does not serve this host; the request may be repeated over
        // another (RFC 9110 §15.5.20).
        case 421: .transient
        // Refused only because it was early data (RFC 8470 §5.2).
        case 425: .transient
        // Too many requests for now (RFC 6585 §4).
        case 429: .transient
        // The origin rejects the request, which is the same next time: 400, 404, 405, 410, 414, 451
        // and all others. Unknown codes count as 400 (RFC 9110 §15).
        case 400...499: .permanent
        // The origin reports a fault of its own (RFC 9110 §15.6), or a network requires a sign-in
        // (511, RFC 6585 §6). Misconfigured proxies send even 501 and 505.
        case 500...599: .transient
        // An interim response, or an unrequested protocol switch, in place of the final response
        // (RFC 9110 §15.2): the server is confused, which says nothing about the resource.
        case 100...199: .transient
        // Success without the image: accepted for later (202), no content (204, 205), a part
        // although no range was requested (206; RFC 9110 §15.3.3, §15.3.5 to §15.3.7). Broken
        // caches and unfinished sites send these until they are fixed. One run is not enough
        // evidence; the fifth in a row blacklists the URL.
        case 200...299: .transient
        // A redirect that leads nowhere: a choice (300), a 304 to an unconditional request, a proxy
        // to use (305, deprecated; RFC 9110 §15.4.1, §15.4.5, §15.4.6). The stray 304 is a broken
        // cache on the way; the others are as inconclusive as the successes above.
        case 300...399: .transient
        // Outside 100...599 a status is invalid and counts as 5xx (RFC 9110 §15).
        default: .transient
        }
    }

    // MARK: Time on the blacklist

    /// Returns the time on the blacklist by number of confirmations: 1 hour, 6 hours, 1 day, 7
    /// days, and 30 days from the fifth on; nil for 0 and less.
    package static func blacklistDuration(confirmations: Int) -> Duration? {
        switch confirmations {
        case ...0: nil
        case 1: .hours(1)
        case 2: .hours(6)
        case 3: .days(1)
        case 4: .days(7)
        default: maximumBlacklistDuration
        }
    }

    /// Returns the number of consecutive failed runs at which a URL is blacklisted; nil for never.
    ///
    /// `no-store` is blacklisted at the second run only: it forbids keeping anything of the
    /// response (RFC 9111 §5.2.2.5), so one such response does not decide the next run's requests.
    package static func runsToBlacklist(
        _ failureClass: FailureClass, reason: FailureReason
    ) -> Int? {
        switch failureClass {
        case .permanent: reason == .uncacheable ? 2 : 1
        case .transient: transientRunsToBlacklist
        case .ours: nil
        }
    }

    /// Returns how many consecutive failed runs have confirmed a URL's place on the blacklist; 0
    /// before it is blacklisted, and never negative.
    package static func confirmations(
        _ failureClass: FailureClass, reason: FailureReason, runsInARow: Int
    ) -> Int {
        // Compared first: the difference would overflow for the smallest number of a damaged row.
        guard let least = runsToBlacklist(failureClass, reason: reason), runsInARow >= least else {
            return 0
        }
        return runsInARow - least + 1
    }

    /// Returns the number of consecutive runs that failed in the same class, this one included.
    ///
    /// `previous` is the content of the URL's row, nil without a row. The same class counts up (and
    /// saturates), another class begins at 1. A negative count is a damaged row and counts as 0.
    /// For `ours` the result is 0: such a run is not counted. The row stays as it was, so the runs
    /// before and after it are consecutive.
    package static func nextRunsInARow(
        previous: (class: FailureClass, runs: Int)?, now failureClass: FailureClass
    ) -> Int {
        guard failureClass != .ours else { return 0 }
        guard let previous, previous.class == failureClass else { return 1 }
        let (runs, overflow) = max(0, previous.runs).addingReportingOverflow(1)
        return overflow ? .max : runs
    }

    /// Whether a stored entry of the blacklist holds at `now`, all three by the wall clock.
    ///
    /// It ends at `blacklistedUntil`; nil is no entry. Two kinds of rows are ignored, because a
    /// wrong clock or damage must not blacklist a URL for years:
    /// - `lastFailedAt` is more than ``Timestamp/toleratedClockStep`` in the future.
    /// - The time on the blacklist would exceed ``maximumBlacklistDuration`` from `now`, or from
    ///   `lastFailedAt` where that is in the future, within the tolerance. Otherwise setting the
    ///   clock back by an hour would end all entries of full length.
    package static func isBlacklisted(
        blacklistedUntil: Timestamp?, lastFailedAt: Timestamp, at now: Timestamp
    ) -> Bool {
        guard let blacklistedUntil, blacklistedUntil > now else { return false }
        guard lastFailedAt <= now.advanced(by: Timestamp.toleratedClockStep) else { return false }
        return blacklistedUntil <= max(now, lastFailedAt).advanced(by: maximumBlacklistDuration)
    }
}

extension Duration {
    fileprivate static func hours(_ count: Int) -> Duration { .seconds(count * 3600) }
    fileprivate static func days(_ count: Int) -> Duration { .seconds(count * 86_400) }
}

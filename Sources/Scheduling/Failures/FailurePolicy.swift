package import PrefetchModel

/// Decides which failures block a URL, for how long, and when a stored block still holds.
///
/// Pure functions over a URL's row of failures, which holds `runs_in_a_row`, `last_failed_at` and
/// `blacklisted_until`. A failed run, unless its class is ``FailureClass/ours``, counts with
/// ``nextRunsInARow(previous:now:)`` and blocks for ``blacklistDuration(confirmations:)`` of
/// ``confirmations(_:reason:runsInARow:)``; a success removes the row.
package enum FailurePolicy {
    /// Failed runs in a row from which on transient failures block: the fifth is the first.
    package static let transientRunsToBlacklist = 5

    /// The longest that a block lasts: 30 days.
    package static let maximumBlacklistDuration = Duration.days(30)

    // MARK: The table

    /// The class of a failure: the one table of what is retried and what blocks.
    ///
    /// The status counts only for the reason `http-status`. A failure of any other reason is of
    /// one class whatever the status of its response was.
    package static func failureClass(
        of reason: FailureReason, httpStatus: Int?
    ) -> FailureClass {
        switch reason {
        // The manifest's line is wrong; the repaired line may well have the same key.
        case .invalidEntry: .ours
        // This program will not learn the scheme between two runs.
        case .unsupportedScheme: .permanent
        // A flag of the user refused it, and the next run may go without.
        case .refusedAddress: .ours
        // Resolvers fail far more often than names end, and a dead one fails for every name.
        case .dns: .transient
        // The host is down or restarts, or the way to it is cut.
        case .connect: .transient
        // Certificates are renewed, and a wrong clock makes every one of them look bad.
        case .tls: .transient
        // Load and distance change.
        case .timeout: .transient
        // As a time-out: one slow hour says nothing about the next.
        case .stalled: .transient
        // A cut connection says nothing about the resource behind it.
        case .interrupted: .transient
        // Loops, too many hops and targets that are not followed are how the site is set up.
        case .redirect: .permanent
        case .httpStatus: failureClass(ofStatus: httpStatus)
        // The resource is as large as it is, and the limit seldom changes.
        case .tooLarge: .permanent
        // The body came whole and is something else. Captive portals answer so too; they are what
        // ``OutageRule`` is for.
        case .notAnImage: .permanent
        // The body came whole; decoding the same bytes again gives the same error. Data that ends
        // early on a body of unknown length is `interrupted`.
        case .corruptImage: .permanent
        // The header of the image says so, and that does not change by asking.
        case .tooManyPixels: .permanent
        // A kind of image that this program cannot decode.
        case .unsupportedImage: .permanent
        // The image is what it is, and the rule is one of the conditions.
        case .otherFormat, .belowMinimumSize, .overMaximumAspect, .belowMinimumBytes:
            .permanent
        // The origin forbids storing it, which is how the site is set up.
        case .uncacheable: .permanent
        // Our disk; the origin has no part in it.
        case .disk: .ours
        // A fault of this program must not be held against the URL.
        case .internal: .ours
        }
    }

    /// Whether a failure of the class ``FailureClass/ours`` is one that the next runs know of, though it blocks nothing: that the
    /// origin refuses the image to this client. Object stores answer 403 for what they do not have where listing is forbidden, so
    /// these are dead URLs as often as credentials that have to be repaired, and new once.
    package static func isKnown(of reason: FailureReason, httpStatus: Int?) -> Bool {
        reason == .httpStatus && httpStatus != nil && failureClass(ofStatus: httpStatus) == .ours
    }

    /// The rows of the table for the reason `http-status`.
    private static func failureClass(ofStatus status: Int?) -> FailureClass {
        // A failure by status without one is a mistake of this program, like `internal`.
        guard let status else { return .ours }
        return switch status {
        // Credentials and permissions are the user's to mend (RFC 9110 §15.5.2, §15.5.4, §15.5.8),
        // and once repaired the very next run has to work.
        case 401, 403, 407: .ours
        // The origin gave up waiting for the request, which may be repeated (RFC 9110 §15.5.9).
        case 408: .transient
        // Sent over a connection that does not serve this host; the request may be repeated over
        // another (RFC 9110 §15.5.20).
        case 421: .transient
        // Refused only because it came as early data (RFC 8470 §5.2).
        case 425: .transient
        // Too many requests for now (RFC 6585 §4).
        case 429: .transient
        // The origin finds fault with the request, which is the same next time: 400, 404, 405,
        // 410, 414, 451 and all others. Codes that we do not know count as 400 (RFC 9110 §15).
        case 400...499: .permanent
        // The origin knows that the fault is its own (RFC 9110 §15.6), or a network asks for a
        // sign-in (511, RFC 6585 §6). Even 501 and 505 come from half-configured proxies.
        case 500...599: .transient
        // An interim response, or a switch of protocols nobody asked for (RFC 9110 §15.2), where
        // the final one belongs: the server is confused, which tells nothing about the resource.
        case 100...199: .transient
        // Success without the image: accepted for later (202), no content (204, 205), a part
        // though no range was asked (206; RFC 9110 §15.3.3, §15.3.5 to §15.3.7). Broken caches and
        // half-built sites answer so, and are repaired. No answer was given that it never will be
        // there, so one run is not evidence enough; a site that stays so is blacklisted at the fifth.
        case 200...299: .transient
        // A redirect that leads nowhere: a choice (300), a 304 to an unconditional request, a
        // proxy to use (305, deprecated; RFC 9110 §15.4.1, §15.4.5, §15.4.6). The stray 304 is a
        // broken cache on the way; the others are as undecided as the successes above.
        case 300...399: .transient
        // Outside 100...599 a status is invalid and counts as 5xx (RFC 9110 §15).
        default: .transient
        }
    }

    // MARK: Blocks

    /// How long a block lasts that was confirmed so often: 1 hour, 6 hours, 1 day, 7 days, and
    /// 30 days for 5 and more; nil, no block, for 0 and less.
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

    /// Failed runs in a row of the class from which on a URL is blacklisted; nil for never.
    ///
    /// `no-store` blocks at the second run only: it forbids keeping anything of the response
    /// (RFC 9111 §5.2.2.5), so one such answer does not decide what the next run asks for. That
    /// the next answer forbids it, too, is how the site is set up.
    package static func runsToBlacklist(
        _ failureClass: FailureClass, reason: FailureReason
    ) -> Int? {
        switch failureClass {
        case .permanent: reason == .uncacheable ? 2 : 1
        case .transient: transientRunsToBlacklist
        case .ours: nil
        }
    }

    /// How often a URL's block has been confirmed after so many failed runs of the class in a row,
    /// the last of them with `reason`; 0 before it is blacklisted, and never negative.
    package static func confirmations(
        _ failureClass: FailureClass, reason: FailureReason, runsInARow: Int
    ) -> Int {
        // Compared first: the difference would overflow for a damaged row's smallest number.
        guard let least = runsToBlacklist(failureClass, reason: reason), runsInARow >= least else {
            return 0
        }
        return runsInARow - least + 1
    }

    /// The runs in a row that have failed in the same class, this one included.
    ///
    /// `previous` is what the URL's row holds, nil without a row: one more of the same class
    /// counts up (and saturates), another class begins at 1. A count below 0 is a damaged row and
    /// counts as 0. For `ours` the result is 0: such a run is not counted, and when the row stays
    /// as it was, the runs before and after it are in a row.
    package static func nextRunsInARow(
        previous: (class: FailureClass, runs: Int)?, now failureClass: FailureClass
    ) -> Int {
        guard failureClass != .ours else { return 0 }
        guard let previous, previous.class == failureClass else { return 1 }
        let (runs, overflow) = max(0, previous.runs).addingReportingOverflow(1)
        return overflow ? .max : runs
    }

    /// Whether a stored block holds at `now`, all three by the wall clock.
    ///
    /// It ends at `blacklistedUntil`; nil is no block. Two kinds of rows are not believed, since the
    /// clock was wrong when they were written, or they are damaged, and a URL must not stay
    /// blacklisted for years because of that:
    /// - `lastFailedAt` lies more than ``Timestamp/toleratedClockStep`` in the future.
    /// - the block would last longer than ``maximumBlacklistDuration`` from `now`, or from
    ///   `lastFailedAt` where that lies, within the tolerance, in the future. Else a clock put
    ///   back by an hour would end all blocks of full length.
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

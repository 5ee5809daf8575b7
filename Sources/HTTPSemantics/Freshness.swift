package import PrefetchModel

/// The time during which a stored response may be used without a request (RFC 9111 §4.2), for a
/// private cache filled by batches.
package struct Freshness: Sendable {
    /// The expiry of responses that must be validated at every use, regardless of the user's floor.
    package static let alwaysStale = Timestamp(milliseconds: 0)

    /// Returns the time until which a response, or a stored one updated by a 304, is usable without
    /// a request: ``alwaysStale`` if it must be validated at each use, else a later time. Nil if it
    /// must not be stored (`no-store`, §5.2.2.5).
    ///
    /// `receivedAt` is the arrival of the last byte, and `transferTime` the `response_delay` of
    /// §4.2.3. `Pragma` has no meaning in a response (§5.4). The first that applies counts: forced
    /// lifetime; `no-store`; validation at each use (`no-cache`, `Vary: *`); the origin's or
    /// heuristic lifetime minus the age, within floor and ceiling.
    package static func expiry(
        fields: [HeaderField], receivedAt: Timestamp, transferTime: Duration, rules: Rules
    ) -> Timestamp? {
        if let forced = rules.forced { return receivedAt.advanced(by: max(.zero, forced)) }
        let control = CacheControl(fields)
        if control.forbidsStoring { return nil }
        // `Vary: *` never matches a later request (§4.1).
        if control.requiresValidation || Vary.matchesNothing(fields.values(of: "vary")) {
            return alwaysStale
        }
        // The first of several counts, as in §4.2.1. Without a valid one it is the time of
        // reception (RFC 9110 §6.6.1).
        let date = date(of: fields, receivedAt: receivedAt)
        let lifetime = lifetime(
            control, fields: fields, date: date, receivedAt: receivedAt, rules: rules)
        // The corrected initial age (§4.2.3). With a clock behind the origin's the apparent age is
        // negative and counts as zero. Limited like numbers in fields (§1.2.2), so that no sum
        // overflows.
        let responseDelay = min(max(.zero, transferTime), .seconds(CacheControl.largestSeconds))
        let correctedAge = age(of: fields) + responseDelay
        let initialAge = max(receivedAt.timeSince(date), correctedAge)
        return bounded(
            receivedAt.advanced(by: lifetime - initialAge), validatedAt: receivedAt, rules: rules)
    }

    /// The rules for permanent redirects: a day without a lifetime. The user's are about images.
    package static let redirectRules = Rules(defaultLifetime: .seconds(86400))

    /// Returns the time until which a permanent redirect is followed without a request;
    /// ``alwaysStale`` also for `no-store`, and where the redirect may depend on the request's
    /// fields, which are not stored (§4.1).
    package static func expiry(
        ofRedirect fields: [HeaderField], receivedAt: Timestamp, transferTime: Duration
    ) -> Timestamp {
        guard Vary.names(fields.values(of: "vary")).allSatisfy({ $0 == "accept-encoding" }) else {
            return alwaysStale
        }
        return expiry(
            fields: fields, receivedAt: receivedAt, transferTime: transferTime,
            rules: redirectRules) ?? alwaysStale
    }

    /// Whether a response names its lifetime itself, by `max-age` or `Expires`.
    package static func isExplicit(_ fields: [HeaderField]) -> Bool {
        CacheControl(fields).maxAge != nil || fields.first("expires") != nil
    }

    /// Whether a stored response may be used without a request.
    ///
    /// A row that was validated in the future, by more than ``Timestamp/toleratedClockStep``, is
    /// stale: a clock that was wrong once must not make it immortal. Takes constant time and
    /// allocates nothing, since a run calls it for each entry of its manifest.
    ///
    /// `expiresAt` is the verdict of the last validation, perhaps by other rules. At the instant of
    /// expiry the response is stale (§4.2).
    package static func isFresh(
        validatedAt: Timestamp, expiresAt: Timestamp, at now: Timestamp, rules: Rules
    ) -> Bool {
        // The first comparison nearly always decides, and costs no conversion.
        guard validatedAt <= now || validatedAt <= now.advanced(by: Timestamp.toleratedClockStep)
        else {
            return false
        }
        guard let expiry = boundedExpiry(validatedAt, expiresAt, rules) else { return false }
        return now < (rules.ahead > .zero ? expiry.advanced(by: .zero - rules.ahead) : expiry)
    }

    /// The end of a stored response's freshness under these rules, ignoring `ahead`;
    /// ``alwaysStale`` for a response that must be validated at each use.
    package static func expiry(
        validatedAt: Timestamp, expiresAt: Timestamp, rules: Rules
    ) -> Timestamp {
        boundedExpiry(validatedAt, expiresAt, rules) ?? alwaysStale
    }

    /// The end of a stored response's freshness in a run that requests no stored image
    /// (`--refresh none`). An expired one is fresh again, for the lifetime of a response without
    /// one of its own, within a minute and a day: other runs are to refresh it. One that must be
    /// validated at each use gets that minute.
    package static func extendedExpiry(
        validatedAt: Timestamp, expiresAt: Timestamp, at now: Timestamp, rules: Rules
    ) -> Timestamp {
        let expiry = boundedExpiry(validatedAt, expiresAt, rules)
        if let expiry, expiry > now { return expiry }
        let lifetime = rules.forced ?? max(rules.defaultLifetime, rules.minimum ?? .zero)
        let limited =
            expiry == nil ? .zero : min(lifetime, rules.maximum ?? lifetime, .seconds(86400))
        return now.advanced(by: max(.seconds(60), limited))
    }

    /// The instant of `Date`, or the reception without a valid one.
    static func date(of fields: [HeaderField], receivedAt: Timestamp) -> Timestamp {
        fields.first("date").flatMap { HTTPDate.parse($0, relativeTo: receivedAt) } ?? receivedAt
    }

    /// Nil for a response that must be validated at each use.
    @inline(__always)
    private static func boundedExpiry(
        _ validatedAt: Timestamp, _ expiresAt: Timestamp, _ rules: Rules
    ) -> Timestamp? {
        let expiry: Timestamp
        if let forced = rules.forced {
            expiry = validatedAt.advanced(by: max(.zero, forced))
        } else if expiresAt <= alwaysStale {
            return nil
        } else {
            expiry = bounded(expiresAt, validatedAt: validatedAt, rules: rules)
        }
        return expiry
    }

    /// Applies floor and ceiling, and stays later than ``alwaysStale``: `Expires: Thu, 01 Jan 1970
    /// 00:00:00 GMT` is common, and is a different case.
    @inline(__always)
    private static func bounded(
        _ expiry: Timestamp, validatedAt: Timestamp, rules: Rules
    ) -> Timestamp {
        var expiry = expiry
        if let minimum = rules.minimum {
            expiry = max(expiry, validatedAt.advanced(by: max(.zero, minimum)))
        }
        if let maximum = rules.maximum {
            expiry = min(expiry, validatedAt.advanced(by: max(.zero, maximum)))
        }
        return max(expiry, Timestamp(milliseconds: alwaysStale.milliseconds + 1))
    }

    /// The first of max-age, Expires − Date, and a heuristic (§4.2.1, §4.2.2); negative when the
    /// response had expired before it was sent.
    private static func lifetime(
        _ control: CacheControl, fields: [HeaderField], date: Timestamp, receivedAt: Timestamp,
        rules: Rules
    ) -> Duration {
        // Invalid freshness information means stale, even beside valid one (§4.2.1).
        if control.hasInvalidMaxAge { return .zero }
        if let maxAge = control.maxAge { return maxAge + usableStale(control) }
        if fields.contains(where: { $0.isNamed("expires") }) {
            // An invalid date, typically the value 0, is in the past (§5.3). So are several
            // different dates (§4.2.1).
            guard let expires = fields.onlyValue(of: "expires"),
                let instant = HTTPDate.parse(expires, relativeTo: receivedAt)
            else { return .zero }
            return instant.timeSince(date) + usableStale(control)
        }
        // RFC 8246 names no lifetime, but an origin that calls the response immutable does not
        // expect a request after a tenth of its young age.
        if !control.isImmutable,
            let value = fields.first("last-modified"),
            let modified = HTTPDate.parse(value, relativeTo: receivedAt)
        {
            // A change in the future promises nothing.
            let tenth = max(.zero, date.timeSince(modified)) / 10
            return min(tenth, max(.zero, rules.defaultLifetime))
        }
        return max(.zero, rules.defaultLifetime)
    }

    /// The time after its explicit lifetime in which the response may be used during revalidation
    /// (RFC 5861 §3): a minute at most, since the next run revalidates. `must-revalidate` forbids
    /// it (RFC 9111 §4.2.4).
    private static func usableStale(_ control: CacheControl) -> Duration {
        control.mustRevalidate ? .zero : min(control.staleWhileRevalidate ?? .zero, .seconds(60))
    }

    /// The first member of `Age`, over all its field lines; ignored if it is invalid (§5.1).
    private static func age(of fields: [HeaderField]) -> Duration {
        guard let text = fields.combinedValue(of: "age"),
            let first = FieldSyntax.members(of: text).first
        else { return .zero }
        return .seconds(CacheControl.deltaSeconds(first) ?? 0)
    }
}

extension Freshness {
    /// The user's rules for lifetimes. Negative durations count as zero.
    ///
    /// Forced lifetime, floor and ceiling count from the last validation, by our own clock. A
    /// ceiling below the floor wins.
    package struct Rules: Hashable, Sendable {
        /// `--ttl`, or the entry's own. Overrides the origin, including `no-store` and `no-cache`,
        /// and floor and ceiling.
        package var forced: Duration?
        /// `--min-ttl`; not for responses that must be validated at each use.
        package var minimum: Duration?
        /// `--max-ttl`.
        package var maximum: Duration?
        /// `--default-ttl`: the lifetime when the origin names none, and the ceiling of heuristic
        /// lifetimes; 7 days by default.
        package var defaultLifetime: Duration
        /// `--ahead`: a response that expires within it counts as stale. Does not affect stored
        /// values.
        package var ahead: Duration

        package init(
            forced: Duration? = nil, minimum: Duration? = nil, maximum: Duration? = nil,
            defaultLifetime: Duration = .seconds(7 * 86400), ahead: Duration = .zero
        ) {
            self.forced = forced
            self.minimum = minimum
            self.maximum = maximum
            self.defaultLifetime = defaultLifetime
            self.ahead = ahead
        }
    }
}

package import PrefetchModel

/// Until when a stored response may be used without asking the origin (RFC 9111 §4.2), for a
/// private cache that is filled by batches.
package struct Freshness: Sendable {
    package enum Verdict: Hashable, Sendable {
        /// Must not be stored (`no-store`, §5.2.2.5).
        case uncacheable
        /// May be used without asking until then; ``Freshness/alwaysStale`` for a response that has
        /// to be validated at each use. Any other instant is later than that one.
        case expires(Timestamp)
    }

    /// The expiry of responses that must be validated at every use, whatever floor the user sets.
    package static let alwaysStale = Timestamp(milliseconds: 0)

    /// Reckons from a response's fields, or from those that a 304 left of them.
    ///
    /// - Parameters:
    ///   - fields: of the response; only `Cache-Control`, `Expires`, `Date`, `Age`, `Last-Modified`
    ///     and `Vary` count. `Pragma` means nothing in a response (§5.4).
    ///   - receivedAt: when the last byte had arrived, by the wall clock.
    ///   - transferTime: from sending the request to that last byte, by a monotonic clock; negative
    ///     ones count as none. It is the `response_delay` of §4.2.3.
    ///   - rules: the user's; all but `ahead` bear on the verdict.
    /// - Returns: the first of these that applies: forced lifetime; `no-store`; validation at each
    ///   use (`no-cache`, `Vary: *`); the origin's or the heuristic lifetime less the age, within
    ///   floor and ceiling.
    package static func verdict(
        fields: [HeaderField], receivedAt: Timestamp, transferTime: Duration, rules: Rules
    ) -> Verdict {
        if let forced = rules.forced {
            return .expires(receivedAt.advanced(by: max(.zero, forced)))
        }
        let control = CacheControl(fields)
        if control.forbidsStoring { return .uncacheable }
        // `Vary: *` never matches a later request (§4.1).
        if control.requiresValidation || Vary.matchesNothing(fields.values(of: "vary")) {
            return .expires(alwaysStale)
        }
        // Of several the first counts, as §4.2.1 has it for other fields. Without a valid one it is
        // the time of reception (RFC 9110 §6.6.1).
        let date = date(of: fields, receivedAt: receivedAt)
        let lifetime = lifetime(
            control, fields: fields, date: date, receivedAt: receivedAt, rules: rules)
        // The corrected initial age (§4.2.3). With a clock behind the origin's the apparent age is
        // negative and counts as none.
        // Bounded as numbers in fields are (§1.2.2), so that no sum overflows.
        let responseDelay = min(max(.zero, transferTime), .seconds(CacheControl.largestSeconds))
        let correctedAge = age(of: fields) + responseDelay
        let initialAge = max(receivedAt.timeSince(date), correctedAge)
        return .expires(
            bounded(
                receivedAt.advanced(by: lifetime - initialAge), validatedAt: receivedAt,
                rules: rules))
    }

    /// Whether a stored response may be used without asking the origin.
    ///
    /// A row that was validated in the future, by more than ``Timestamp/toleratedClockStep``, is stale: a
    /// clock that was wrong once must not make it immortal. Takes constant time and allocates
    /// nothing, since a run asks it for each entry of its manifest.
    ///
    /// - Parameters:
    ///   - validatedAt: when the origin last sent or confirmed the response.
    ///   - expiresAt: the verdict of then.
    ///   - now: by the wall clock.
    ///   - rules: of this run, which need not be those of the run that stored the response.
    /// - Returns: false from the instant of expiry on: fresh is what is younger than its lifetime
    ///   (§4.2).
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

    /// Until when a stored response is fresh under these rules, `ahead` left out of account.
    ///
    /// - Parameters:
    ///   - validatedAt: when the origin last sent or confirmed the response.
    ///   - expiresAt: the verdict of then.
    ///   - rules: of this run.
    /// - Returns: ``alwaysStale`` for a response to be validated at each use.
    package static func expiry(
        validatedAt: Timestamp, expiresAt: Timestamp, rules: Rules
    ) -> Timestamp {
        boundedExpiry(validatedAt, expiresAt, rules) ?? alwaysStale
    }

    /// The instant of `Date`, or of the reception without a valid one.
    static func date(of fields: [HeaderField], receivedAt: Timestamp) -> Timestamp {
        fields.first("date").flatMap { HTTPDate.parse($0, relativeTo: receivedAt) } ?? receivedAt
    }

    /// Nil for a response to be validated at each use.
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

    /// Within floor and ceiling, and later than ``alwaysStale``: `Expires: Thu, 01 Jan 1970
    /// 00:00:00 GMT` is common, and must not be taken for that.
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
        // Invalid freshness information is stale, even beside valid one (§4.2.1).
        if control.hasInvalidMaxAge { return .zero }
        if let maxAge = control.maxAge { return maxAge + usableStale(control) }
        if fields.contains(where: { $0.isNamed("expires") }) {
            // An invalid date, the value 0 above all, is the past (§5.3). So are several dates that
            // differ (§4.2.1).
            guard let expires = fields.onlyValue(of: "expires"),
                let instant = HTTPDate.parse(expires, relativeTo: receivedAt)
            else { return .zero }
            return instant.timeSince(date) + usableStale(control)
        }
        // RFC 8246 says nothing of a lifetime, but an origin that calls the response immutable does
        // not mean it to be asked for again after a tenth of its young age.
        if !control.isImmutable,
            let value = fields.first("last-modified"),
            let modified = HTTPDate.parse(value, relativeTo: receivedAt)
        {
            // A change that lies in the future promises nothing.
            let tenth = max(.zero, date.timeSince(modified)) / 10
            return min(tenth, max(.zero, rules.defaultLifetime))
        }
        return max(.zero, rules.defaultLifetime)
    }

    /// How long after its explicit lifetime the response may still be used while somebody
    /// revalidates it (RFC 5861 §3): a minute at most, since that somebody is the next run.
    /// `must-revalidate` forbids it (RFC 9111 §4.2.4).
    private static func usableStale(_ control: CacheControl) -> Duration {
        control.mustRevalidate ? .zero : min(control.staleWhileRevalidate ?? .zero, .seconds(60))
    }

    /// The first member of `Age`, whether the others follow in the same field line or in another;
    /// one that is no number is ignored (§5.1).
    private static func age(of fields: [HeaderField]) -> Duration {
        guard let text = fields.combinedValue(of: "age"),
            let first = FieldSyntax.members(of: text).first
        else { return .zero }
        return .seconds(CacheControl.deltaSeconds(first) ?? 0)
    }
}

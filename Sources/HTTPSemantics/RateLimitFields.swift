package import PrefetchModel

/// The field `Retry-After` (RFC 9110 §10.2.3), and the rate-limit fields sent in its place.
package enum RetryAfter {
    /// The delay that the origin requests, counted from the reception of the response.
    ///
    /// A date is compared with the response's own `Date`, so that a wrong clock on either side
    /// does not matter. Without a valid `Date`, our clock decides.
    ///
    /// Without `Retry-After`, `RateLimit-Reset` and `X-RateLimit-Reset` count. The `Remaining`
    /// fields are ignored: the exceeded quota may be another one. Servers send a delay or a Unix
    /// time. A number of ten digits or more is a time, in milliseconds from 13 digits on, in
    /// microseconds from 16 and in nanoseconds from 19. Fractions are rounded up, and parameters
    /// ignored.
    ///
    /// The longest of several values counts, in one field or in many; values that are neither a
    /// number nor a date are ignored.
    ///
    /// - Returns: nil without a valid value; at most 2³¹ seconds, so that sums do not overflow.
    package static func delay(of fields: [HeaderField], receivedAt: Timestamp) -> Duration? {
        ["retry-after", "ratelimit-reset", "x-ratelimit-reset"].lazy.compactMap {
            longestDelay(in: $0, of: fields, receivedAt: receivedAt)
        }.first
    }

    static func longestDelay(
        in name: String, of fields: [HeaderField], receivedAt: Timestamp
    ) -> Duration? {
        let values = fields.values(of: name)
        guard !values.isEmpty else { return nil }
        let date =
            fields.onlyValue(of: "date").flatMap { HTTPDate.parse($0, relativeTo: receivedAt) }
            ?? receivedAt
        return values.compactMap { delay(of: $0, since: date) }.max()
    }

    private static func delay(of value: String, since date: Timestamp) -> Duration? {
        let longest = Duration.seconds(CacheControl.largestSeconds)
        if let instant = HTTPDate.parse(value, relativeTo: date) {
            return min(max(.zero, instant.timeSince(date)), longest)
        }
        // A proxy may have joined several fields (§5.3).
        let delays = FieldSyntax.members(of: value).map { delay(ofMember: $0, since: date) }
        return delays.contains(nil) ? nil : delays.compactMap(\.self).max()
    }

    private static func delay(
        ofMember member: ArraySlice<UInt8>, since date: Timestamp
    ) -> Duration? {
        let number = FieldSyntax.trimmed(member.prefix { $0 != UInt8(ascii: ";") })
        let parts = number.split(
            separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.allSatisfy({ CacheControl.number($0, atMost: 1) != nil }) else { return nil }
        let whole = parts[0]
        let digits = whole.drop { $0 == UInt8(ascii: "0") }
        let isTime = digits.count >= 10
        // The digits behind the seconds.
        let fraction = if isTime { min((digits.count - 10) / 3, 3) * 3 } else { 0 }
        let isRoundedUp = (digits.suffix(fraction) + parts.dropFirst().joined())
            .contains { $0 != UInt8(ascii: "0") }
        let seconds =
            (CacheControl.number(whole.dropLast(fraction), atMost: 1_000_000_000_000) ?? 0)
            + (isRoundedUp ? 1 : 0)
        let delay = isTime ? Timestamp(seconds: seconds).timeSince(date) : .seconds(seconds)
        return min(max(.zero, delay), .seconds(CacheControl.largestSeconds))
    }
}

/// The fields in which an origin counts the requests that it still allows.
///
/// - `RateLimit: "NAME";r=REMAINING;t=SECONDS, …`, with the seconds of the window in
///   `RateLimit-Policy: "NAME";q=QUOTA;w=SECONDS` where `t` is missing
///   (draft-ietf-httpapi-ratelimit-headers-10).
/// - `RateLimit: limit=N, remaining=N, reset=SECONDS` (draft 07).
/// - `RateLimit-Remaining` and `RateLimit-Reset` (draft 06), `X-RateLimit-Remaining` and
///   `X-RateLimit-Reset`: a delay or a time, as in ``RetryAfter``.
package enum RateLimitFields {
    /// Returns the fewest remaining requests of all policies, and the time until more are allowed;
    /// nil without both. `receivedAt` is by the wall clock.
    package static func quota(
        of fields: [HeaderField], receivedAt: Timestamp
    ) -> (remaining: Int, reset: Duration)? {
        let quotas =
            structured(fields)
            + ["ratelimit", "x-ratelimit"].compactMap {
                counted(fields, prefix: $0, receivedAt: receivedAt)
            }
        return quotas.min { $0.remaining < $1.remaining }
    }

    private static func counted(
        _ fields: [HeaderField], prefix: String, receivedAt: Timestamp
    ) -> (remaining: Int, reset: Duration)? {
        let remaining = fields.values(of: "\(prefix)-remaining").compactMap {
            number(FieldSyntax.trimmed(Array($0.utf8)[...]))
        }
        guard let least = remaining.min(),
            let reset = RetryAfter.longestDelay(
                in: "\(prefix)-reset", of: fields, receivedAt: receivedAt)
        else { return nil }
        return (least, reset)
    }

    private static func structured(_ fields: [HeaderField]) -> [(remaining: Int, reset: Duration)] {
        let members = fields.values(of: "ratelimit").flatMap(FieldSyntax.members(of:))
            .map(parameters(of:))
        guard !members.isEmpty else { return [] }
        let windows = fields.values(of: "ratelimit-policy").flatMap(FieldSyntax.members(of:))
            .compactMap { parameters(of: $0)["w"] }
        let old = members.reduce(into: [String: Int]()) { $0.merge($1) { first, _ in first } }
        if let remaining = old["remaining"], let reset = old["reset"] {
            return [(remaining, .seconds(reset))]
        }
        return members.compactMap { member in
            guard let remaining = member["r"], let reset = member["t"] ?? windows.max() else {
                return nil
            }
            return (remaining, .seconds(reset))
        }
    }

    /// The parameters `NAME=NUMBER` of a member, separated by semicolons.
    private static func parameters(of member: ArraySlice<UInt8>) -> [String: Int] {
        var found: [String: Int] = [:]
        for part in member.split(separator: UInt8(ascii: ";")) {
            let pair = part.split(separator: UInt8(ascii: "="), maxSplits: 1)
            guard pair.count == 2, let value = number(FieldSyntax.trimmed(pair[1])) else {
                continue
            }
            found[FieldSyntax.text(FieldSyntax.trimmed(pair[0])).lowercased()] = value
        }
        return found
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> Int? {
        CacheControl.number(bytes, atMost: CacheControl.largestSeconds).map { Int($0) }
    }
}

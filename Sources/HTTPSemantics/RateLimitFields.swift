package import PrefetchModel

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

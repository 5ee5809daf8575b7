package import PrefetchModel

/// The field `Retry-After` (RFC 9110 §10.2.3), and the rate-limit fields sent in its place.
package enum RetryAfter {
    /// The delay that the origin asks for, counted from the reception of the response.
    ///
    /// A date is compared with the response's own `Date`, so that a wrong clock on either side
    /// does not matter. Without a valid `Date`, our clock decides.
    ///
    /// Without `Retry-After`, `RateLimit-Reset` and `X-RateLimit-Reset` count. Servers put a delay
    /// or a Unix time in either: a number above 10⁹ is a time, in milliseconds above 10¹².
    ///
    /// - Parameters:
    ///   - fields: the response's. The longest of several values counts, in one field or in many;
    ///     values that are neither a number nor a date are ignored.
    ///   - receivedAt: by the wall clock.
    /// - Returns: nil without a valid value; zero for a date in the past; at most 2³¹ seconds, so
    ///   that sums do not overflow.
    package static func delay(of fields: [HeaderField], receivedAt: Timestamp) -> Duration? {
        let date =
            fields.onlyValue(of: "date").flatMap { HTTPDate.parse($0, relativeTo: receivedAt) }
            ?? receivedAt
        func longest(_ name: String) -> Duration? {
            fields.values(of: name).compactMap { delay(of: $0, since: date) }.max()
        }
        if let delay = longest("retry-after") { return delay }
        // Some servers send the reset with every response; it counts when the quota is used up.
        for prefix in ["ratelimit", "x-ratelimit"] {
            let left = fields.values(of: "\(prefix)-remaining")
            guard left.allSatisfy({ $0 == "0" }) else { continue }
            if let delay = longest("\(prefix)-reset") { return delay }
        }
        return nil
    }

    private static func delay(of value: String, since date: Timestamp) -> Duration? {
        let longest = Duration.seconds(CacheControl.largestSeconds)
        if let instant = HTTPDate.parse(value, relativeTo: date) {
            return min(max(.zero, instant.timeSince(date)), longest)
        }
        // A proxy may have joined several fields (§5.3).
        let delays = FieldSyntax.members(of: value).map { delay(ofNumber: $0, since: date) }
        return delays.contains(nil) ? nil : delays.compactMap(\.self).max()
    }

    /// Smaller numbers are delays.
    private static let smallestTime: Int64 = 1_000_000_000
    private static let smallestTimeInMilliseconds: Int64 = 1_000_000_000_000

    private static func delay(
        ofNumber bytes: ArraySlice<UInt8>, since date: Timestamp
    ) -> Duration? {
        guard let number = CacheControl.number(bytes, atMost: 10_000_000_000_000_000) else {
            return nil
        }
        guard number > smallestTime else { return .seconds(number) }
        let milliseconds = number > smallestTimeInMilliseconds ? number : number * 1000
        let delay = Timestamp(milliseconds: milliseconds).timeSince(date)
        return min(max(.zero, delay), .seconds(CacheControl.largestSeconds))
    }
}

package import PrefetchModel

/// The field `Retry-After` (RFC 9110 §10.2.3).
package enum RetryAfter {
    /// The delay that the origin asks for, counted from the reception of the response.
    ///
    /// A date is compared with the response's own `Date`, so that a wrong clock on either side
    /// does not matter. Without a valid `Date`, our clock decides.
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
        return fields.values(of: "retry-after").compactMap { delay(of: $0, since: date) }.max()
    }

    private static func delay(of value: String, since date: Timestamp) -> Duration? {
        let longest = Duration.seconds(CacheControl.largestSeconds)
        if let instant = HTTPDate.parse(value, relativeTo: date) {
            return min(max(.zero, instant.timeSince(date)), longest)
        }
        // A proxy may have joined several fields (§5.3).
        let numbers = FieldSyntax.members(of: value).map(CacheControl.deltaSeconds)
        return numbers.contains(nil) ? nil : numbers.compactMap(\.self).max().map { .seconds($0) }
    }
}

package import PrefetchModel

/// The field `Retry-After` (RFC 9110 §10.2.3).
package enum RetryAfter {
    /// How long the origin asks to wait, from the reception of the response on.
    ///
    /// A date is judged against the response's own `Date`, so that neither a wrong clock of ours nor
    /// one of the origin's matters; without a valid one, against our clock.
    ///
    /// - Parameters:
    ///   - fields: of the response. Of several values, in one field or in many, the longest counts;
    ///     those that are neither a number nor a date are ignored.
    ///   - receivedAt: by the wall clock.
    /// - Returns: nil without a valid value; zero for a date that has passed; 2³¹ seconds at most,
    ///   whatever the text says, so that sums do not overflow.
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
        // Somebody on the way may have joined several fields (§5.3).
        let numbers = FieldSyntax.members(of: value).map(CacheControl.deltaSeconds)
        return numbers.contains(nil) ? nil : numbers.compactMap(\.self).max().map { .seconds($0) }
    }
}

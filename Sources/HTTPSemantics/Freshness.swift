package import PrefetchModel

/// Until when a stored response may be used without asking the origin (RFC 9111 §4.2), for a
/// private cache.
package struct Freshness: Sendable {
    /// What the user says about lifetimes.
    package struct Rules: Sendable {
        /// The lifetime when the origin says nothing, and the ceiling of heuristic ones.
        package var defaultLifetime: Duration = .seconds(7 * 86400)

        package init(defaultLifetime: Duration = .seconds(7 * 86400)) {
            self.defaultLifetime = defaultLifetime
        }
    }

    package enum Verdict: Hashable, Sendable {
        /// Must not be stored (`no-store`, §5.2.2.5).
        case uncacheable
        /// Fresh until then; in the past for a response that has to be validated at each use.
        case expires(Timestamp)
    }

    /// Reckons from the response's fields, from when the request was sent, since the whole transfer
    /// counts as age (§4.2.3), and from when the response had arrived.
    package static func verdict(
        fields: [HeaderField], requestedAt: Timestamp, receivedAt: Timestamp, rules: Rules
    ) -> Verdict {
        let control = CacheControl(fields)
        guard !control.forbidsStoring else { return .uncacheable }
        let date = fields.first("date").flatMap(HTTPDate.parse) ?? receivedAt
        let lifetime: Duration
        if control.requiresValidation || fields.values(of: "vary").contains(where: hasStar) {
            // `Vary: *` never matches a later request (§4.1).
            lifetime = .zero
        } else {
            lifetime = freshnessLifetime(
                control, fields: fields, date: date, receivedAt: receivedAt, rules: rules)
        }
        // Corrected initial age (§4.2.3).
        let apparentAge = max(.zero, receivedAt.timeSince(date))
        let ageValue = fields.first("age").flatMap(CacheControl.deltaSeconds) ?? 0
        let responseDelay = max(.zero, receivedAt.timeSince(requestedAt))
        let age = max(apparentAge, .seconds(ageValue) + responseDelay)
        return .expires(receivedAt.advanced(by: max(.zero, lifetime) - age))
    }

    /// The first of max-age, Expires − Date, and a heuristic (§4.2.1, §4.2.2).
    private static func freshnessLifetime(
        _ control: CacheControl, fields: [HeaderField], date: Timestamp, receivedAt: Timestamp,
        rules: Rules
    ) -> Duration {
        if control.hasInvalidMaxAge { return .zero }
        if let maxAge = control.maxAge { return maxAge }
        if let expires = fields.first("expires") {
            // An invalid date, the value 0 above all, is the past (§5.3).
            return HTTPDate.parse(expires)?.timeSince(date) ?? .zero
        }
        if let modified = fields.first("last-modified").flatMap(HTTPDate.parse) {
            let tenth = max(.zero, date.timeSince(modified)) / 10
            return min(tenth, rules.defaultLifetime)
        }
        return rules.defaultLifetime
    }

    private static func hasStar(_ value: String) -> Bool {
        value.split(separator: ",").contains { $0.allSatisfy { $0 == "*" || $0 == " " } }
    }
}

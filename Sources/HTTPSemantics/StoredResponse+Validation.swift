package import PrefetchModel

extension StoredResponse {
    /// The stored form of a complete 200: validators, all `Cache-Control` fields as one list, and
    /// `date` from the origin or else from our clock (RFC 9110 §6.6.1). Several different
    /// `Expires` are joined, which makes no valid date and so means the past.
    ///
    /// Validators that can never be sent are left out: longer than 8 KiB, with forbidden or lost
    /// bytes, several different ones, and entity tags that would match other responses.
    package init(fields: [HeaderField], varyingOn request: [HeaderField], receivedAt: Timestamp) {
        self.init()
        entityTag = fields.onlyValue(of: "etag").flatMap(EntityTag.init)?.text
        lastModified = fields.onlyValue(of: "last-modified")
            .flatMap { Validator.isSendable($0) ? $0 : nil }
        cacheControl = fields.combinedValue(of: "cache-control")
        expires = fields.onlyValue(of: "expires") ?? fields.combinedValue(of: "expires")
        vary = Vary.text(fields.values(of: "vary"), request: request)
        date = Freshness.date(of: fields, receivedAt: receivedAt)
        contentType = fields.first("content-type")
    }

    /// The fields to send for validation (RFC 9111 §4.3.1); none without a usable validator.
    ///
    /// `If-Modified-Since` accompanies `If-None-Match`, for origins that only know the former;
    /// others ignore it (RFC 9110 §13.1.3). An invalid `Last-Modified` is not sent: origins must
    /// ignore it.
    ///
    /// `matchesVary` tells whether the request selects the stored response, by
    /// ``Vary/matches(_:request:)`` or because it does not vary. If not, the origin may select
    /// another response with the same date and an equal weak entity tag (RFC 9110 §8.8.1). Only a
    /// strong tag tells them apart.
    package func conditionalFields(matchesVary: Bool) -> [HeaderField] {
        var result: [HeaderField] = []
        if let tag = entityTag.flatMap(EntityTag.init), matchesVary || !tag.isWeak {
            result.append(HeaderField(name: "If-None-Match", value: tag.text))
        }
        if matchesVary, let lastModified, instant(lastModified) != nil {
            result.append(HeaderField(name: "If-Modified-Since", value: lastModified))
        }
        return result
    }

    /// Whether a 304 with these fields confirms this response (RFC 9111 §4.3.4).
    ///
    /// If the 304 has entity tags, one must be the stored one. The section requires equal strong
    /// tags. `W/` is ignored here: some origins and compressing proxies add it to one response and
    /// not to the other, and `If-None-Match` compares without it anyway (RFC 9110 §13.1.2).
    /// Without a tag in both, `Last-Modified`, if both have it, must be the same instant. A 304
    /// without validators confirms the response in question; origins should not send it
    /// (RFC 9110 §15.4.5) but do. A stored response without a validator was never in question.
    package func isConfirmed(by fields: [HeaderField]) -> Bool {
        let storedTag = entityTag.flatMap(EntityTag.init)
        let storedDate = lastModified.flatMap(instant)
        guard storedTag != nil || storedDate != nil else { return false }
        let tags = fields.values(of: "etag").compactMap(EntityTag.init)
        if let storedTag, !tags.isEmpty {
            return tags.contains(where: storedTag.weaklyMatches)
        }
        let dates = fields.values(of: "last-modified").compactMap(instant)
        if let storedDate, !dates.isEmpty {
            return dates.contains(storedDate)
        }
        // The tag belongs to no stored 200, so the 304 is about another response.
        return tags.isEmpty
    }

    /// The stored response after a 304 that confirms it, with its fields replaced by the 304's
    /// (RFC 9111 §3.2, §4.3.4).
    ///
    /// - Returns: the response to store, and the fields for its expiry: a 304 with a `no-store`
    ///   forbids to store it. `Age` and `Date` are only the 304's: the age of the older response
    ///   has ended.
    package func updated(
        by fields: [HeaderField], varyingOn request: [HeaderField], receivedAt: Timestamp
    ) -> (response: StoredResponse, fields: [HeaderField]) {
        let new = StoredResponse(fields: fields, varyingOn: request, receivedAt: receivedAt)
        let varyValues =
            fields.contains { $0.isNamed("vary") }
            ? fields.values(of: "vary") : vary.map { [Vary.fieldValue(of: $0)] } ?? []
        let response = StoredResponse(
            entityTag: new.entityTag ?? entityTag, lastModified: new.lastModified ?? lastModified,
            cacheControl: new.cacheControl ?? cacheControl, expires: new.expires ?? expires,
            vary: Vary.text(varyValues, request: request), date: new.date,
            contentType: new.contentType ?? contentType)
        var merged = fields.filter { $0.isNamed("age") || $0.isNamed("date") }
        let stored = [
            ("Cache-Control", response.cacheControl), ("ETag", response.entityTag),
            ("Expires", response.expires), ("Last-Modified", response.lastModified),
        ]
        merged += stored.compactMap { name, value in
            value.map { HeaderField(name: name, value: $0) }
        }
        merged += varyValues.map { HeaderField(name: "Vary", value: $0) }
        return (response, merged)
    }

    /// Two-digit years are read relative to the time of storing, which is nearer to the origin's
    /// meaning than any later time.
    private func instant(_ text: String) -> Timestamp? {
        Validator.isSendable(text)
            ? HTTPDate.parse(text, relativeTo: date ?? Timestamp(seconds: 0)) : nil
    }
}

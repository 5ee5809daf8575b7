package import PrefetchModel

extension StoredResponse {
    /// What to store of a complete 200: validators, all `Cache-Control` fields as one list, and
    /// `date` from the origin or, if it does not say, from our clock (RFC 9110 §6.6.1). Several
    /// `Expires` that differ are joined too, which makes no valid date and so the past.
    ///
    /// Validators that can never be sent are left out: longer than 8 KiB, with bytes that no field
    /// may hold or that were lost in reading, doubled and different, and entity tags that would
    /// match other responses too.
    ///
    /// - Parameters:
    ///   - fields: of the response.
    ///   - request: all fields that were sent.
    ///   - receivedAt: by the wall clock.
    package init(
        fields: [HeaderField], varyingOn request: [HeaderField], receivedAt: Timestamp
    ) {
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
    /// `If-Modified-Since` goes along with `If-None-Match`, for origins that know only the former;
    /// the others ignore it (RFC 9110 §13.1.3). A `Last-Modified` that is no date is not sent, as
    /// they must ignore that too.
    ///
    /// - Parameter matchesVary: whether the request selects the stored response, by
    ///   ``Vary/matches(_:request:)`` or because it does not vary. If not, the origin may select
    ///   another one, modified at the same time, and of equal weak entity tag (RFC 9110 §8.8.1);
    ///   only a strong tag tells them apart.
    /// - Returns: at most one field of each kind.
    package func conditionalFields(matchesVary: Bool) -> [HeaderField] {
        var result: [HeaderField] = []
        if let tag = entityTag.flatMap(EntityTag.init), matchesVary || !tag.isWeak {
            result.append(HeaderField(name: "If-None-Match", value: tag.text))
        }
        if matchesVary, let lastModified, isDate(lastModified) {
            result.append(HeaderField(name: "If-Modified-Since", value: lastModified))
        }
        return result
    }

    /// Whether a 304 with these fields speaks of this response (RFC 9111 §4.3.4).
    ///
    /// If the 304 has entity tags, one must be the stored one. The section asks for equal strong
    /// tags; `W/` is ignored here, since some origins and compressing proxies add it to one answer
    /// and not to the other, and since by `If-None-Match` they compared without it anyway
    /// (RFC 9110 §13.1.2). Without one in both, `Last-Modified`, if both have it, must be the same
    /// instant. A 304 without validators, which origins should not send (RFC 9110 §15.4.5) but do,
    /// speaks of the one response that was asked about. Nothing was asked without a validator.
    ///
    /// - Parameter fields: of the 304.
    /// - Returns: false when the 304 speaks of another response; then ask without validators.
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
        // A tag that came with no 200: some other response is meant.
        return tags.isEmpty
    }

    /// The stored response after a 304 that confirms it: its fields replaced by those that the 304
    /// has (RFC 9111 §3.2, §4.3.4).
    ///
    /// - Parameters:
    ///   - fields: of the 304.
    ///   - request: all fields that were sent with the conditional request; the origin selected
    ///     this response for them.
    ///   - receivedAt: when the 304 arrived, by the wall clock.
    /// - Returns: what to store, and the fields to give to ``Freshness/verdict``. That may be
    ///   `uncacheable` now, if the 304 brings a `no-store`. `Age` and `Date` are only the 304's:
    ///   the age of the older answer ended with this one.
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

    private func isDate(_ text: String) -> Bool {
        instant(text) != nil
    }

    /// Two-digit years are seen from when the response was stored, which is nearer to what the
    /// origin meant than any later time.
    private func instant(_ text: String) -> Timestamp? {
        Validator.isSendable(text)
            ? HTTPDate.parse(text, relativeTo: date ?? Timestamp(seconds: 0)) : nil
    }
}

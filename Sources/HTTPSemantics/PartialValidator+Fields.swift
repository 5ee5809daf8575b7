package import PrefetchModel

extension PartialValidator {
    /// How much later than `Last-Modified` a response's `Date` has to be. RFC 9110 §8.8.2.2 asks
    /// for a second where both come from one clock, and else for enough to rule out that the clocks
    /// differ. We cannot know whose clock wrote `Last-Modified`, so it is the minute that its
    /// predecessor named (RFC 7232 §2.2.2).
    static let leastAge = Duration.seconds(60)

    /// The validator with which a body of this response can be continued; nil when there is none,
    /// so that a body that broke off has to be fetched from its beginning.
    ///
    /// What was encoded is here decoded, while a range would count encoded bytes (§8.4, §14.1.2).
    ///
    /// An entity tag has to be strong and of the standard's form (RFC 9110 §8.8.3): what an origin
    /// does not recognise as a tag it may ignore, and then send the rest of another body. A date
    /// is used only where no entity tag came (§13.1.5).
    ///
    /// - Parameters:
    ///   - fields: of the response whose body broke off.
    ///   - receivedAt: by the wall clock; only two-digit years are read by it.
    package init?(fields: [HeaderField], receivedAt: Timestamp) {
        guard !fields.values(of: "content-encoding").contains(where: ContentCoding.isEncoded)
        else { return nil }
        if fields.first("etag") != nil {
            guard let text = fields.onlyValue(of: "etag"), PartialValidator.isStrongTag(text) else {
                return nil
            }
            self = .entityTag(text)
        } else {
            // Without a `Date` of the origin's nothing tells whether it is strong.
            guard let text = fields.onlyValue(of: "last-modified"), Validator.isSendable(text),
                let modified = HTTPDate.parse(text, relativeTo: receivedAt),
                let date = fields.onlyValue(of: "date")
                    .flatMap({ HTTPDate.parse($0, relativeTo: receivedAt) }),
                date.timeSince(modified) >= PartialValidator.leastAge
            else { return nil }
            self = .lastModified(text)
        }
    }

    /// The fields of a request for everything from an offset on, in bytes (RFC 9110 §14.2, §13.1.5).
    ///
    /// - Precondition: `offset` is not negative.
    package func rangeFields(from offset: Int) -> [HeaderField] {
        precondition(offset >= 0, "a negative offset")
        let text =
            switch self {
            case .entityTag(let text), .lastModified(let text): text
            }
        return [
            HeaderField(name: "Range", value: "bytes=\(offset)-"),
            HeaderField(name: "If-Range", value: text),
        ]
    }

    /// Why a 206 with these fields speaks of another body, or nil when it is this one.
    ///
    /// An origin has to repeat the entity tag in a 206, but should leave out `Last-Modified`
    /// (RFC 9110 §15.3.7). So a tag that is missing shows an origin that may have ignored
    /// `If-Range`, too; a date that is missing shows nothing.
    func mismatch(in fields: [HeaderField]) -> String? {
        let tags = fields.values(of: "etag")
        switch self {
        case .entityTag(let tag):
            // By strong comparison (§8.8.3.2), for parts are put together (§15.3.7.3).
            if tags.isEmpty { return "the part has no entity tag" }
            return tags.allSatisfy { $0.utf8.elementsEqual(tag.utf8) }
                ? nil : "the part has another entity tag"
        case .lastModified(let text):
            if !tags.isEmpty { return "the part has an entity tag, the body had none" }
            // Byte for byte: the same origin writes the same date in the same form.
            return fields.values(of: "last-modified").allSatisfy {
                $0.utf8.elementsEqual(text.utf8)
            }
                ? nil : "the part was modified at another time"
        }
    }

    private static func isStrongTag(_ text: String) -> Bool {
        guard let tag = EntityTag(text), !tag.isWeak, text.utf8.count >= 2,
            text.utf8.first == FieldSyntax.quote
        else { return false }
        // `etagc` has no white space (§8.8.3).
        return !text.utf8.contains(where: FieldSyntax.isWhiteSpace)
    }
}

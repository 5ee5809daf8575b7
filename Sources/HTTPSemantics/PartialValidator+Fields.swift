package import PrefetchModel

extension PartialValidator {
    /// The least age of a `Last-Modified`, by the response's `Date`, to be a strong validator. RFC
    /// 9110 §8.8.2.2 requires a second if one clock wrote both, and otherwise enough to
    /// rule out a difference between clocks. We cannot know which clock wrote `Last-Modified`, so
    /// this is the minute of RFC 7232 §2.2.2.
    static let leastAge = Duration.seconds(60)

    /// The validator for resuming a body of this response; nil when the body can only be fetched
    /// from its beginning.
    ///
    /// An encoded body cannot be resumed: it is stored decoded, and ranges count encoded bytes
    /// (§8.4, §14.1.2).
    ///
    /// An entity tag must be strong and well-formed (RFC 9110 §8.8.3): an origin may ignore text
    /// that it does not recognise as a tag, and send the rest of another body. A date is used only
    /// without an entity tag (§13.1.5). `receivedAt` completes two-digit years.
    package init?(fields: [HeaderField], receivedAt: Timestamp) {
        guard !fields.values(of: "content-encoding").contains(where: FieldSyntax.isEncoding)
        else { return nil }
        if fields.first("etag") != nil {
            guard let text = fields.onlyValue(of: "etag"), PartialValidator.isStrongTag(text) else {
                return nil
            }
            self = .entityTag(text)
        } else {
            // Without the origin's `Date` nothing shows that the date is strong.
            guard let text = fields.onlyValue(of: "last-modified"), Validator.isSendable(text),
                let modified = HTTPDate.parse(text, relativeTo: receivedAt),
                let date = fields.onlyValue(of: "date")
                    .flatMap({ HTTPDate.parse($0, relativeTo: receivedAt) }),
                date.timeSince(modified) >= PartialValidator.leastAge
            else { return nil }
            self = .lastModified(text)
        }
    }

    /// The fields of a request for all bytes from `offset` on (RFC 9110 §14.2, §13.1.5).
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

    /// The reason why a 206 with these fields is of another body; nil when it is of this one.
    ///
    /// An origin must repeat the entity tag in a 206, but should leave out `Last-Modified` (RFC
    /// 9110 §15.3.7). So a missing tag suggests that the origin ignored `If-Range`, too; a missing
    /// date means nothing.
    func mismatch(in fields: [HeaderField]) -> String? {
        let tags = fields.values(of: "etag")
        switch self {
        case .entityTag(let tag):
            // Strong comparison (§8.8.3.2), because parts are joined (§15.3.7.3).
            if tags.isEmpty { return "the part has no entity tag" }
            return tags.allSatisfy { $0.utf8.elementsEqual(tag.utf8) }
                ? nil : "the part has another entity tag"
        case .lastModified(let text):
            if !tags.isEmpty { return "the part has an entity tag, the body had none" }
            // Byte for byte: an origin writes the same date in the same form.
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

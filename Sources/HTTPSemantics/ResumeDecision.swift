package import PrefetchModel

/// What the answer to a request for the rest of a body means
/// (``PrefetchModel/PartialValidator/rangeFields(from:)``).
package enum ResumeDecision: Hashable, Sendable {
    /// The body of this answer continues the part that is there, and goes to the end: with `total`
    /// all of it has so many bytes. Without, nobody knows, as with any body without a length.
    case append(total: Int?)
    /// The part that is there is worth nothing any more. The body of a 200 is a whole one; with
    /// 416 it has to be asked for without a range.
    case startOver
    /// A 206 that must not be put behind the part that is there: the body has to be asked for
    /// without a range. The text says why, for people.
    case refused(String)
    /// Any other status is judged as without a range, and the part stays as good as it was.
    case unanswered

    /// Decides by the head of the answer.
    ///
    /// A 206 has to begin where the part that is there ends and to go to the body's end, with the
    /// same total and validator as before (RFC 9110 §15.3.7.3). One that ends earlier, though
    /// allowed (§14.2), is refused: what came could not be told from a body that broke off again.
    ///
    /// - Parameters:
    ///   - status: of the answer, like the next.
    ///   - fields: of the answer.
    ///   - offset: the number of bytes that are there, which were left out of the request.
    ///   - validator: what was sent in `If-Range`.
    ///   - knownTotal: the length of the whole body, if the first answer told it.
    /// - Returns: what to do with the answer's body.
    package static func of(
        status: Int, fields: [HeaderField], offset: Int, validator: PartialValidator,
        knownTotal: Int?
    ) -> ResumeDecision {
        switch status {
        case 200, 416: return .startOver
        case 206: break
        default: return .unanswered
        }
        // Several parts come in a format of their own (§15.3.7.2), though one was asked for.
        let type = fields.first("content-type")?.lowercased() ?? ""
        if type.hasPrefix("multipart/") { return .refused("the part has several parts in it") }
        if let coding = fields.values(of: "content-encoding").first(where: ContentCoding.isEncoded)
        {
            // Ranges count encoded bytes (§14.1.2, §8.4), and those that are there are not.
            return .refused("the part is encoded: \(coding)")
        }
        guard let value = fields.onlyValue(of: "content-range") else {
            let isMissing = fields.first("content-range") == nil
            return .refused(isMissing ? "no Content-Range" : "several Content-Range")
        }
        guard let range = ContentRange(value), let part = range.part else {
            return .refused("Content-Range is not a range of bytes")
        }
        guard part.lowerBound == offset else {
            return .refused("the part begins at \(part.lowerBound) and not at \(offset)")
        }
        if let knownTotal, let total = range.total, total != knownTotal {
            return .refused("the body has \(total) bytes now, it had \(knownTotal)")
        }
        let total = range.total ?? knownTotal
        if let total, part.upperBound != total {
            return .refused("the part ends at \(part.upperBound) and not at \(total)")
        }
        if let length = fields.first("content-length"),
            ContentRange.number(length.utf8) != part.count
        {
            return .refused("the part's length is not that of its Content-Range")
        }
        if let mismatch = validator.mismatch(in: fields) {
            return .refused(mismatch)
        }
        return .append(total: total)
    }
}

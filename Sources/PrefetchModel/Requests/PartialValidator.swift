/// What tells that the rest of a body belongs to the part that came before: the one value that may
/// be sent in `If-Range` (RFC 9110 §13.1.5). Just as it came.
package enum PartialValidator: Hashable, Sendable {
    /// A strong entity tag, with its quotation marks.
    case entityTag(String)
    /// A `Last-Modified` that is strong by RFC 9110 §8.8.2.2, of a response without entity tag.
    case lastModified(String)
}

/// The validator of a partial body, sent unchanged in `If-Range` to resume it (RFC 9110 §13.1.5).
package enum PartialValidator: Hashable, Sendable {
    case entityTag(String)
    /// A `Last-Modified` that is strong by RFC 9110 §8.8.2.2, from a response without entity tag.
    case lastModified(String)
}

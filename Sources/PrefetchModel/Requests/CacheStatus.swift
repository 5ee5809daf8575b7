/// The reports of caches on a response's way.
package struct CacheStatus: Hashable, Sendable {
    /// Seconds, by `Age`; nil without a number.
    package let age: Int?
    /// The value of `X-Cache`, at most ``longestText`` characters; nil without the field.
    package let text: String?

    package static let longestText = 100

    package init(age: Int?, text: String?) {
        self.age = age
        self.text = text
    }

    /// Whether a cache on the way had the response.
    package var isHit: Bool { age ?? 0 > 0 || text?.lowercased().contains("hit") == true }
}

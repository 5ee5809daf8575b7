/// The lists by URL of a run, and the transfers for them, which no other counter has.
package struct ListCounts: Hashable, Sendable {
    package var fetched = 0
    /// Copies that the origin confirmed.
    package var notModified = 0
    /// Copies that were used without a request.
    package var stored = 0
    /// Copies that were used because the list could not be fetched.
    package var fallback = 0
    /// Lists that could not be fetched, without any copy.
    package var failed = 0
    /// Redirects and retries included.
    package var requests = 0
    package var bytesReceived = 0

    package init() {}

    /// The counts of lists by their names in output.
    package var bySource: [(name: String, count: Int)] {
        [
            ("fetched", fetched), ("not_modified", notModified), ("stored", stored),
            ("fallback", fallback), ("failed", failed),
        ]
    }
}

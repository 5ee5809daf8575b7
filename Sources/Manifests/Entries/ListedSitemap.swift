package import PrefetchModel

/// A sitemap that an index names.
package struct ListedSitemap: Sendable {
    package let url: RequestURL
    package let line: Int
}

extension EntryBatch {
    /// A batch of one bad entry, for a sitemap that cannot be read; `manifest` is its index.
    package init(
        manifest: String, unreadable sitemap: ListedSitemap, _ failure: Failure, isKnown: Bool
    ) {
        self.init(manifest: manifest)
        text = Array(sitemap.url.text.utf8).withUnsafeBufferPointer(LineExcerpt.make)
        records = [
            Record(
                line: sitemap.line, url: text.indices, key: text.indices, priority: .normal,
                problem: 0)
        ]
        problems = [Problem(failure, isKnown: isKnown)]
    }
}

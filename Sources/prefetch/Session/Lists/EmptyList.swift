import PrefetchModel

/// A list without an entry.
struct EmptyList: Sendable {
    let name: String
    /// The pages of sitemaps, which were skipped.
    let skippedPages: Int

    /// One line about several lists, and a hint.
    static func message(_ lists: [EmptyList]) -> (text: String, hint: String?) {
        let pages = lists.reduce(0) { $0 + $1.skippedPages }
        let names = lists.map(\.name).joined(separator: ", ")
        return pages == 0
            ? ("\(names): no entries", nil)
            : (
                "\(names): no entries: no image on \(counted(pages, "page"))",
                "--sitemap-pages reads the pages themselves"
            )
    }
}

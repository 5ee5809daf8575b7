/// A part of the lists that a command does not take.
package enum ListOmission: CaseIterable, Sendable {
    /// A line, row or element with an unreadable URL or field.
    case invalidEntry
    /// A URL of another scheme, which may be a misspelt one.
    case otherScheme
    case emptyURL
    /// The name of the only column of a table.
    case header
    /// A URL with the image in itself (`data:`), which is never in a cache.
    case dataURL
    case unreadableSitemap
    case sitemapLimit
    /// A list without an entry, unless the user allows them.
    case emptyList
    /// The rest of lists that a limit, a signal or an error has ended.
    case unread
    /// A page of a sitemap, without `--sitemap-pages`.
    case page
    /// An entry that `--include` or `--exclude` leaves out.
    case notSelected
    case otherShard

    /// Whether it may name images that the command does not know of. The URLs of the others are
    /// known, or name no image.
    package var hidesImages: Bool {
        switch self {
        case .invalidEntry, .otherScheme, .unreadableSitemap, .sitemapLimit, .emptyList, .unread:
            true
        case .emptyURL, .header, .dataURL, .page, .notSelected, .otherShard: false
        }
    }
}

/// The first part of lists that hides images.
///
/// Lists without one are whole. Commands that remove the images or files that no list names do so
/// only for whole lists, or with `--allow-partial`.
package struct ListGap: Hashable, Sendable {
    /// The list, and the line if there is one: `images.csv:7`.
    package let place: String
    package let message: String

    /// Returns nil for an omission that hides no image.
    package init?(_ omission: ListOmission, at place: @autoclosure () -> String, _ message: String)
    {
        guard omission.hidesImages else { return nil }
        self.place = place()
        self.message = message
    }

    package static let hint =
        "correct the list; --allow-partial removes what the readable part does not name"
}

extension ListGap: CustomStringConvertible {
    package var description: String { place.isEmpty ? message : "\(place): \(message)" }
}

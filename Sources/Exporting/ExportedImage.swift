package import CacheStorage
package import PrefetchModel
import Reporting

/// A stored variant of an image, under the URL that a list gives it.
package struct ExportedImage: DetailedEntry {
    /// The position of its entry in the lists, from 1.
    package let number: Int
    /// The URL as the list spells it, as an app requests it.
    package let url: String
    /// The URL as it is requested, without fragment and user information.
    package let normalizedURL: String
    package let key: String
    package let variant: String
    package let stored: StoredImage
    package let fetchedAt: Timestamp
    /// 0 for an image that must be validated at every use.
    package let expiresAt: Timestamp
    /// Empty unless the layout needs them. The list's own precede the stored ones.
    package var attributes: [EntryAttribute] = []
    /// The other columns of the list, a JSON object; nil without any.
    package var columns: [UInt8]?
    /// The program's own attributes, like placeholders; empty unless wanted.
    package var ownAttributes: [EntryAttribute] = []
    /// Nil unless the layout needs them.
    package var source: SourceDetails?

    func attribute(_ name: String) -> String? { attributes.text(of: name) }

    /// The URL for files that others read.
    package var shownURL: String { RedactedURL.maskingSecrets(in: url) }
}

/// An entry without a file in the export, and the reason.
package struct MissingEntry: DetailedEntry {
    package let number: Int
    /// The text of a line with a bad URL; nil without any.
    package var url: String?
    package var attributes: [EntryAttribute] = []
    /// As ``ExportedImage/columns``.
    package var columns: [UInt8]?
    /// Short, since reasons are counted: `HTTP 404`, `corrupt-image`.
    package var reason: String
    /// Whether the image was received, but is none that can be used.
    package var isUnusable = false

    package init(number: Int, url: String? = nil, reason: String) {
        self.number = number
        self.url = url
        self.reason = reason
    }

    package init(_ image: ExportedImage, reason: String, isUnusable: Bool = false) {
        self.init(number: image.number, url: image.url, reason: reason)
        attributes = image.attributes
        columns = image.columns
        self.isUnusable = isUnusable
    }
}

/// An entry with the list's columns, and attributes of list and cache.
package protocol DetailedEntry: Sendable {
    var columns: [UInt8]? { get }
    var attributes: [EntryAttribute] { get }
}

extension DetailedEntry {
    /// ``columns`` by their names.
    var listColumns: [JSONMember] { JSONMember.members(ofColumns: columns) }

    /// The columns and attributes, each name once. The list's columns precede its attributes, and
    /// these the stored ones, but a column without a value precedes nothing.
    var details: [JSONMember] {
        var places: [String: Int] = [:]
        var details: [JSONMember] = []
        for member in listColumns + attributes.map(JSONMember.init) {
            if let place = places[member.name] {
                if details[place].isNull || details[place].text.isEmpty { details[place] = member }
            } else {
                places[member.name] = details.count
                details.append(member)
            }
        }
        return details
    }

    /// The text of an attribute or column, without secrets of URLs; nil without it.
    package func detail(_ name: String) -> String? {
        details.text(of: name).map { RedactedURL.maskingSecrets(in: $0) }
    }
}

extension JSONMember {
    fileprivate init(_ attribute: EntryAttribute) {
        self.init(
            name: attribute.name, text: String(decoding: attribute.value, as: UTF8.self))
    }

    fileprivate static func members(ofColumns columns: [UInt8]?) -> [JSONMember] {
        guard let members = columns.map(members(of:)) ?? [] else {
            preconditionFailure("the columns are no JSON object")
        }
        return members
    }
}

extension ExportedImage {
    package init(
        _ item: CacheCatalog.Item, as variant: String, number: Int, url: String,
        normalizedURL: String
    ) {
        self.init(
            number: number, url: url, normalizedURL: normalizedURL, key: item.resource.key,
            variant: variant, stored: item.image, fetchedAt: item.download.fetchedAt,
            expiresAt: item.expiresAt)
    }
}

extension [EntryAttribute] {
    fileprivate func text(of name: String) -> String? {
        first { $0.name == name }.map { String(decoding: $0.value, as: UTF8.self) }
    }
}

extension [JSONMember] {
    /// The text of a member; nil without it, and for null.
    func text(of name: String) -> String? { first { $0.name == name && !$0.isNull }?.text }
}

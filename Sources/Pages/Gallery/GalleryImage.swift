package import PrefetchModel
import Reporting

package struct GalleryImage: Sendable {
    static let listedVariants = 12

    let url: String
    let host: String
    let fetchedAt: Timestamp
    /// Nil if it must be validated at every use.
    let expiresAt: Timestamp?
    let isFresh: Bool
    /// One or more; the first one is shown.
    package private(set) var variants: [ShownVariant] = []
    /// Made of its ThumbHash; nil without one.
    package var preview: PageImage?
    /// A file relative to the page; nil without one.
    package var thumbnail: String?

    package struct ShownVariant: Sendable {
        let name: String
        package let image: StoredImage
        let isSuperseded: Bool

        /// `webp, 100 × 67, 4.1 KiB`
        var details: String {
            [image.format.rawValue, sidesText(image), "\(image.size)"]
                .filter { !$0.isEmpty }.joined(separator: ", ")
        }

        var text: String {
            "\(clipped(name)): \(details)\(isSuperseded ? ", superseded" : "")"
        }
    }

    package init(
        url: String, host: String, fetchedAt: Timestamp, expiresAt: Timestamp?, isFresh: Bool
    ) {
        self.url = RedactedURL(url).description
        self.host = RedactedURL(host).description
        self.fetchedAt = fetchedAt
        self.expiresAt = expiresAt
        self.isFresh = isFresh
    }

    /// Adds a variant. The variant `main` in use is shown, else the first.
    package mutating func add(_ name: String, _ image: StoredImage, isSuperseded: Bool) {
        let variant = ShownVariant(name: name, image: image, isSuperseded: isSuperseded)
        if variant.name == VariantName.main.text, !variant.isSuperseded {
            variants.insert(variant, at: 0)
        } else {
            variants.append(variant)
        }
    }

    var name: String {
        let path = url.prefix { $0 != "?" && $0 != "#" }
        return clipped(path.split(separator: "/").last.map(String.init) ?? url)
    }

    /// The URL without its host, which the section names.
    var path: String {
        clipped(url.hasPrefix(host + "/") ? String(url.dropFirst(host.count)) : url)
    }

    func lines(at now: Timestamp) -> [String] {
        let age = durationText(max(.zero, now.timeSince(fetchedAt)))
        let expiry = expiresAt.map { expiryText($0, at: now) } ?? "validated at every use"
        return [
            variants[0].details, "\(age) old", "\(isFresh ? "fresh" : "stale"), \(expiry)",
        ]
    }
}

package import PrefetchModel
import Reporting

/// The pages of a gallery: values in, HTML out.
///
/// Each image shows its ThumbHash until its thumbnail, a file beside the page, has loaded.
package struct Gallery {
    /// Keeps a page within ``ReportPage/mostBytes``.
    package static let imagesPerPage = 200

    let cacheDirectory: String
    let images: Int
    /// The first page of each host, in the order of the pages.
    let hosts: [(host: String, images: Int, page: Int)]
    let now: Timestamp

    /// The hosts are in the order of the pages.
    package init(cacheDirectory: String, hosts: [(host: String, images: Int)], now: Timestamp) {
        self.cacheDirectory = cacheDirectory
        self.now = now
        var before = 0
        var rows: [(host: String, images: Int, page: Int)] = []
        for (host, images) in hosts {
            rows.append((host, images, before / Gallery.imagesPerPage + 1))
            before += images
        }
        self.hosts = rows
        images = before
    }

    var pages: Int { max(1, (images + Gallery.imagesPerPage - 1) / Gallery.imagesPerPage) }

    /// `index.html`, `page-2.html`
    package static func name(ofPage number: Int) -> String {
        number == 1 ? "index.html" : "page-\(number).html"
    }

    private static let generator = "prefetch gallery"

    /// Whether the beginning of a file is that of a page made here.
    package static func isOwn(_ beginning: [UInt8]) -> Bool {
        let text = String(decoding: beginning, as: UTF8.self)
        return text.hasPrefix("<!DOCTYPE html>\n<html ")
            && text.contains("<meta name=\"generator\" content=\"\(generator)\"/>")
    }

    /// The bytes that ``isOwn(_:)`` needs.
    package static let headBytes = 2048

    /// A page with these images, which are in the order of their hosts; the first page is 1.
    package func page(_ number: Int, of shown: [GalleryImage], isLast: Bool) -> [UInt8] {
        let title = "prefetch: images, page \(number) of \(pages)"
        return HTMLWriter.document(
            title: title, generator: Gallery.generator, imageSources: "'self' data:"
        ) { html in
            html.element("header") { header in
                header.element("h1", "prefetch gallery")
                header.element("p", ["class": "verdict"], groupedCount(images, "image"))
                header.element(
                    "p", ["class": "facts"],
                    "page \(number) of \(pages) · made \(minuteText(now)) · "
                        + "cache \(clipped(cacheDirectory))")
                writeNavigation(from: number, isLast: isLast, to: &header)
            }
            html.lineEnd()
            html.element("main") { main in
                if number == 1, hosts.count > 1 { writeHosts(to: &main) }
                var rest = shown[...]
                while let host = rest.first?.host {
                    let own = rest.prefix { $0.host == host }
                    rest = rest.dropFirst(own.count)
                    main.section(host) { section in
                        section.element("ul", ["class": "pictures"]) { list in
                            for image in own { write(image, to: &list) }
                        }
                    }
                }
                if shown.isEmpty {
                    main.section("No images") { $0.element("p", "The cache holds no image.") }
                }
            }
            html.element("footer") { footer in
                writeNavigation(from: number, isLast: isLast, to: &footer)
                footer.element("p", "Made by prefetch. All times are UTC.")
            }
        }
    }

    private func writeNavigation(
        from number: Int, isLast: Bool, to html: inout HTMLWriter
    ) {
        guard pages > 1 else { return }
        html.element("nav", ["aria-label": "Pages"]) { nav in
            let last = max(pages, number)
            for page in Set([1, number - 1, number, number + 1, last]).sorted()
            where page >= 1 && page <= (isLast ? number : last) {
                if page == number {
                    nav.element("b", ["aria-current": "page"], "\(page)")
                } else {
                    let name =
                        page == number - 1 ? "‹ \(page)" : page == number + 1 ? "\(page) ›" : ""
                    nav.element(
                        "a", ["href": Gallery.name(ofPage: page)],
                        name.isEmpty ? "\(page)" : name)
                }
            }
        }
    }

    private static let listedHosts = 200

    private func writeHosts(to html: inout HTMLWriter) {
        html.section("Hosts") { section in
            let largest = hosts.sorted { $0.images > $1.images }
                .prefix(Gallery.listedHosts)
            section.table(
                "Hosts by number of images",
                [.text("Host"), .number("Images"), .number("From page")],
                largest.map { row in
                    [
                        .long(row.host), TableCell(grouped(row.images)),
                        TableCell { cell in
                            let name = Gallery.name(ofPage: row.page)
                            cell.element("a", ["href": name], "\(row.page)")
                        },
                    ]
                })
        }
    }

    /// Writes the preview in the shape of the image, a little smaller: the sides of a ThumbHash are
    /// rounded, and the thumbnail must cover it.
    private func write(
        _ preview: PageImage, of image: GalleryImage, to frame: inout HTMLWriter
    ) {
        let shown = image.variants.first?.image
        guard let width = shown?.knownWidth, let height = shown?.knownHeight else {
            return frame.empty("img", ["src": preview.dataURL, "alt": ""])
        }
        let box = "0 0 \(width) \(height)"
        frame.element("svg", ["viewBox": box, "aria-hidden": "true"]) { svg in
            svg.empty(
                "image",
                [
                    "href": preview.dataURL, "x": "2%", "y": "2%", "width": "96%", "height": "96%",
                    "preserveAspectRatio": "none",
                ])
        }
    }

    private func write(_ image: GalleryImage, to html: inout HTMLWriter) {
        html.element("li") { item in
            item.element("div", ["class": "shot"]) { frame in
                if let preview = image.preview { write(preview, of: image, to: &frame) }
                if let thumbnail = image.thumbnail {
                    frame.empty(
                        "img",
                        [
                            "src": thumbnail, "alt": image.name,
                            "loading": "lazy", "decoding": "async",
                        ])
                } else if image.preview == nil {
                    frame.text("no preview")
                }
            }
            item.element("span", ["class": "name"], image.path)
            for line in image.lines(at: now) {
                item.element("span", ["class": "note"], line)
            }
            guard image.variants.count > 1 else { return }
            item.element("details") { details in
                details.element("summary", groupedCount(image.variants.count, "variant"))
                for variant in image.variants.prefix(GalleryImage.listedVariants) {
                    details.element("span", ["class": "note"], variant.text)
                }
            }
        }
        html.lineEnd()
    }
}

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

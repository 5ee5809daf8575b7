package import PrefetchModel

/// The `<picture>` element of an image with its files, to be copied into a page.
///
/// Browsers take the first `<source>` with a format that they know, and of it the width that the
/// page needs; the `<img>` has a format that all of them know, where there is one.
package struct PictureSnippet {
    package struct SnippetFile {
        /// Percent-encoded, relative to the page.
        package let url: String
        package let image: StoredImage

        package init(url: String, image: StoredImage) {
            self.url = url
            self.image = image
        }
    }

    /// Without signatures.
    package let url: String
    package let alternativeText: String
    package let colour: String?
    package let thumbHash: String?
    private let formats: [(format: ImageFormat, files: [SnippetFile])]

    /// The smaller formats first, as browsers take the first that they know.
    private static let order: [ImageFormat] = [.jpegXL, .avif, .webp]

    package init(
        url: String, alternativeText: String, colour: String?, thumbHash: String?,
        files: [SnippetFile]
    ) {
        self.url = url
        self.alternativeText = alternativeText
        self.colour = colour
        self.thumbHash = thumbHash
        func rank(_ format: ImageFormat) -> Int {
            PictureSnippet.order.firstIndex(of: format) ?? PictureSnippet.order.count
        }
        formats = Dictionary(grouping: files, by: \.image.format).map { format, files in
            (format, files.sorted { $0.image.widthInPixels < $1.image.widthInPixels })
        }.sorted { (rank($0.format), $0.format.rawValue) < (rank($1.format), $1.format.rawValue) }
    }

    /// A line of HTML.
    package var bytes: [UInt8] {
        var html = HTMLWriter()
        guard let last = formats.last, let largest = last.files.last else { return [] }
        html.element("picture") { html in
            for (format, files) in formats.dropLast() {
                html.empty(
                    "source",
                    [
                        "type": format.mediaType, "srcset": PictureSnippet.sources(files),
                        "sizes": PictureSnippet.sizes(files),
                    ])
            }
            html.empty(
                "img",
                [
                    "src": largest.url,
                    "srcset": last.files.count > 1 ? PictureSnippet.sources(last.files) : nil,
                    "sizes": PictureSnippet.sizes(last.files),
                    "width": largest.image.knownWidth.map(String.init),
                    "height": largest.image.knownHeight.map(String.init),
                    "alt": alternativeText, "loading": "lazy", "decoding": "async",
                    "style": colour.map { "background-color:\($0)" },
                    "data-thumbhash": thumbHash, "data-url": url,
                ])
        }
        html.lineEnd()
        return html.bytes
    }

    private static func sources(_ files: [SnippetFile]) -> String {
        guard files.count > 1 else { return files.first?.url ?? "" }
        return files.map { "\($0.url) \($0.image.widthInPixels)w" }.joined(separator: ", ")
    }

    /// Widths need the size in the page, which only the author knows.
    private static func sizes(_ files: [SnippetFile]) -> String? { files.count > 1 ? "100vw" : nil }
}

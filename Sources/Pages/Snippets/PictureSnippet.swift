package import PrefetchModel

/// The `<picture>` element of an image with its files, to be copied into a page.
///
/// Browsers take the first `<source>` with a format that they know, and of it the width that the
/// page needs. So JPEG XL, AVIF and WebP have a `<source>` unless a format after them is wider. The
/// `<img>` has the formats that all browsers know, and narrower WebP files.
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
    /// The files of a `<source>` or the `<img>`: of different widths, the widest last, or one.
    private struct Candidates {
        private(set) var files: [SnippetFile] = []
        /// An SVG has any width.
        private(set) var width = 0

        /// Adds a file, unless another has its width.
        mutating func add(_ file: SnippetFile) {
            let fileWidth = file.image.format == .svg ? Int.max : file.image.widthInPixels
            guard !files.isEmpty, fileWidth > 0, fileWidth < .max, width > 0, width < .max else {
                // Without widths, browsers could not choose.
                if files.isEmpty || fileWidth > width { (files, width) = ([file], fileWidth) }
                return
            }
            guard !files.contains(where: { $0.image.widthInPixels == fileWidth }) else { return }
            files.append(file)
            files.sort { $0.image.widthInPixels < $1.image.widthInPixels }
            width = max(width, fileWidth)
        }

        var sources: String? {
            guard files.count > 1 else { return nil }
            return files.map { "\($0.url) \($0.image.widthInPixels)w" }.joined(separator: ", ")
        }

        /// Widths need the size in the page, which only the author knows.
        var sizes: String? { files.count > 1 ? "100vw" : nil }
    }

    private var sources: [(format: ImageFormat, candidates: Candidates)] = []
    private var image = Candidates()

    /// The smaller formats first, as browsers take the first that they know.
    private static let order: [ImageFormat] = [.jpegXL, .avif, .webp]
    /// The other formats that browsers show.
    private static let shown: Set<ImageFormat> = [.jpeg, .png, .gif, .bmp, .icon, .svg]

    /// Makes the element of an entry's files; of several with one width, the first is taken.
    package init(
        url: String, alternativeText: String, colour: String?, thumbHash: String?,
        files: [SnippetFile]
    ) {
        self.url = url
        self.alternativeText = alternativeText
        self.colour = colour
        self.thumbHash = thumbHash
        let (order, shown) = (PictureSnippet.order, PictureSnippet.shown)
        for file in files where shown.contains(file.image.format) { image.add(file) }
        for format in order.reversed() {
            var candidates = Candidates()
            for file in files where file.image.format == format { candidates.add(file) }
            guard !candidates.files.isEmpty else { continue }
            if image.files.isEmpty {
                image = candidates
            } else if candidates.width >= max(image.width, sources.first?.candidates.width ?? 0) {
                sources.insert((format, candidates), at: 0)
            } else if format == .webp {
                for file in candidates.files { image.add(file) }
            }
        }
        // A page with a TIFF is not for browsers.
        if image.files.isEmpty { for file in files { image.add(file) } }
    }

    /// A line of HTML.
    package var bytes: [UInt8] {
        var html = HTMLWriter(keepsTexts: true)
        guard let largest = image.files.last else { return [] }
        html.element("picture") { html in
            for (format, candidates) in sources {
                html.empty(
                    "source",
                    [
                        "type": format.mediaType,
                        "srcset": candidates.sources ?? candidates.files[0].url,
                        "sizes": candidates.sizes,
                    ])
            }
            html.empty(
                "img",
                [
                    "src": largest.url, "srcset": image.sources,
                    "sizes": image.sizes,
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
}

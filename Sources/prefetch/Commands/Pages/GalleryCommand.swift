import ArgumentParser
import CacheStorage
import Pages
import PrefetchModel
import Upkeep

struct GalleryCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "gallery",
        abstract: "Make HTML pages of all images.",
        discussion: """
            Writes index.html, page-2.html and so on into a folder, with all images by host: \
            thumbnail, size, age, expiry and variants. Each page is at most 2 MB, without scripts. \
            Thumbnails are files in the folder `thumbnails`, and appear over the images' ThumbHashes.

            A second gallery in the same folder makes only new thumbnails, and removes pages and \
            thumbnails of the first that are not needed. Other files stay as they are.

            Example:
              prefetch gallery -o gallery

            Exit status: 0 done, 2 the cache cannot be read or the folder cannot be written, 64 \
            wrong usage.
            """)

    @Option(
        name: [.customShort("o", allowingJoined: true), .customLong("output")],
        help: .value("dir", "The folder; made if it is missing."),
        completion: .directory)
    var output: String

    @OptionGroup var cache: CacheOptions

    @Flag(name: .shortAndLong, help: "Print nothing but errors.")
    var quiet = false

    func run() throws {
        let signals = try SignalWatcher()
        // Noted as `signals.caught`.
        signals.hand { _ in }
        let catalog = try cache.catalog()
        let now = WallClock.now()
        var files = WrittenFiles()
        files.written = [WrittenFiles.Use(path: "\(output)/index.html", name: "--output")]
        try files.check(cache)
        let folder = try GalleryFolder(output)
        let gallery = Gallery(
            cacheDirectory: try cache.path(), hosts: try catalog.imagesByHost(), now: now)
        let previews = try Previews(of: catalog, at: now)
        var pages = 0
        var line = ProgressText(isWanted: !quiet)
        defer { line.clear() }
        func endIfInterrupted() {
            guard let signal = signals.caught else { return }
            line.clear()
            folder.discard()
            ProcessEnd.die(of: signal)
        }
        var writer = PageWriter(gallery: gallery, folder: folder, previews: previews)
        var selection = ListSelection()
        selection.order = .host
        try catalog.forEachItem(of: selection) { item in
            try writer.add(item, at: now)
            guard writer.pages > pages else { return }
            pages = writer.pages
            endIfInterrupted()
            line.show("prefetch: \(counted(pages, "page"))")
        }
        try writer.finish()
        endIfInterrupted()
        try folder.putInPlace()
        try folder.removeRest(pages: writer.pages, thumbnails: writer.thumbnails)
        line.clear()
        guard !quiet else { return }
        StandardError.write(
            "prefetch: \(counted(writer.images, "image")) on \(counted(writer.pages, "page")): "
                + printable("\(output)/\(Gallery.name(ofPage: 1))"))
    }

    /// Collects images and writes a page when the next image belongs to another one.
    private struct PageWriter {
        let gallery: Gallery
        let folder: GalleryFolder
        let previews: Previews
        var waiting: [(key: String, image: GalleryImage)] = []
        var pages = 0
        var images = 0
        var thumbnails: Set<ContentDigest> = []

        mutating func add(_ item: CacheCatalog.Item, at now: Timestamp) throws {
            // The variants of an image follow one another.
            if waiting.last?.key != item.resource.key { try begin(item, at: now) }
            waiting[waiting.count - 1].image.add(
                item.name ?? item.recipe, item.image, isSuperseded: item.isSuperseded)
        }

        private mutating func begin(_ item: CacheCatalog.Item, at now: Timestamp) throws {
            if waiting.count == Gallery.imagesPerPage { try write(isLast: false) }
            var image = GalleryImage(
                url: item.resource.url, host: item.resource.host,
                fetchedAt: item.download.fetchedAt,
                expiresAt: item.isValidatedAtEveryUse ? nil : item.expiresAt,
                isFresh: item.standing(at: now) == .fresh)
            let hash = item.attributes.first { $0.name == EntryAttribute.Own.thumbHash }?.text
            if let hash = hash.flatMap({ Placeholder.thumbHash(base64: $0) }) {
                image.preview = Previews.picture(ofThumbHash: hash).map {
                    PageImage($0, isBlurred: true)
                }
            }
            waiting.append((item.resource.key, image))
        }

        mutating func finish() throws {
            if pages == 0 || !waiting.isEmpty { try write(isLast: true) }
        }

        private mutating func write(isLast: Bool) throws {
            let shown = waiting.map { $0.image.variants[0].image }
            let unknown = shown.filter { !thumbnails.contains($0.digest) }
            let present = unknown.filter { folder.hasThumbnail($0.digest) }.map(\.digest)
            thumbnails.formUnion(present)
            let missing = unknown.filter { !thumbnails.contains($0.digest) }
            let made = previews.thumbnails(of: missing, workers: AvailableProcessors.count)
            for (image, bytes) in zip(missing, made) {
                guard let bytes, thumbnails.insert(image.digest).inserted else { continue }
                try folder.writeThumbnail(bytes, of: image.digest)
            }
            for (place, image) in shown.enumerated() where thumbnails.contains(image.digest) {
                waiting[place].image.thumbnail = GalleryFolder.thumbnail(image.digest)
            }
            pages += 1
            images += waiting.count
            try folder.write(
                gallery.page(pages, of: waiting.map(\.image), isLast: isLast), page: pages)
            waiting.removeAll(keepingCapacity: true)
        }
    }
}

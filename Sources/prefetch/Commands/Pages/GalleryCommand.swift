import ArgumentParser
import CacheStorage
import FileOutput
import Glibc
import Pages
import PrefetchModel
import Reporting
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

/// The folder of a gallery, in which other files stay as they are.
///
/// Pages are recognised by their head, and the folder of thumbnails by its `CACHEDIR.TAG`
/// (<https://bford.info/cachedir/>), which also keeps it out of backups. An empty file counts as
/// missing: a power cut may have left it.
final class GalleryFolder {
    private let path: String
    private let pages: OutputFolder
    private let pictures: OutputFolder
    /// Pages and thumbnails that are not in place yet.
    private let batch = ReplacingBatch()

    /// More files would be lost by a kill, and take memory.
    private static let largestBatch = 16_384
    private static let thumbnails = "thumbnails"
    private static let tag = """
        Signature: 8a477f597d28d172789f06886806bc55
        # Thumbnails of `prefetch gallery`, which makes them again.

        """

    /// Makes the folder if it is missing.
    ///
    /// - Throws: `UserError` if it holds other files under the names of a gallery.
    init(_ path: String) throws {
        self.path = path
        try FilePlace.check(folder: path)
        try GalleryFolder.make(path)
        let index = "\(path)/\(Gallery.name(ofPage: 1))"
        if !GalleryFolder.isMissing(index), !GalleryFolder.isOwnPage(index) {
            throw GalleryFolder.foreign(index)
        }
        let folder = "\(path)/\(GalleryFolder.thumbnails)"
        try GalleryFolder.make(folder)
        let tag = "\(folder)/CACHEDIR.TAG"
        pages = try ReplacingBatch.folder(path)
        pictures = try ReplacingBatch.folder(folder)
        let names = GalleryFolder.names(in: folder)
        let isNew = names.allSatisfy { $0.hasPrefix(".prefetch-") }
        if isNew || names.contains("CACHEDIR.TAG") && GalleryFolder.isMissing(tag) {
            try OutputFile.replace(tag, with: Array(GalleryFolder.tag.utf8))
        } else if (try? InputFile(tag).read(limit: 1024)) != Array(GalleryFolder.tag.utf8) {
            throw GalleryFolder.foreign(folder)
        }
    }

    private static func make(_ path: String) throws {
        guard mkdir(path, 0o777) != 0, errno != EEXIST else { return }
        throw UserError(
            printable("\(path): cannot make the folder: \(String(cString: strerror(errno)))"),
            hint: "name a folder in an existing one with --output")
    }

    private static func foreign(_ path: String) -> UserError {
        UserError(
            printable("\(path): not made by `prefetch gallery`, and left as it is"),
            hint: "name another folder with --output")
    }

    private static func isOwnPage(_ path: String) -> Bool {
        guard let head = try? InputFile(path).read(limit: Gallery.headBytes) else {
            return false
        }
        return Gallery.isOwn(head)
    }

    // MARK: Files

    /// The path of a thumbnail, relative to the pages.
    static func thumbnail(_ digest: ContentDigest) -> String { "\(thumbnails)/\(digest).jpg" }

    func hasThumbnail(_ digest: ContentDigest) -> Bool {
        let file = "\(path)/\(GalleryFolder.thumbnail(digest))"
        return access(file, R_OK) == 0 && !GalleryFolder.isMissing(file)
    }

    func writeThumbnail(_ bytes: [UInt8], of digest: ContentDigest) throws {
        try batch.add(
            bytes, as: "\(digest).jpg", in: pictures, "\(path)/\(GalleryFolder.thumbnail(digest))")
    }

    func write(_ html: [UInt8], page number: Int) throws {
        let name = Gallery.name(ofPage: number)
        let file = "\(path)/\(name)"
        if !GalleryFolder.isMissing(file), !GalleryFolder.isOwnPage(file) {
            throw GalleryFolder.foreign(file)
        }
        try batch.add(html, as: name, in: pages, file)
        if batch.count >= GalleryFolder.largestBatch { try putInPlace() }
    }

    func putInPlace() throws { try batch.commit() }

    func discard() { batch.discard() }

    private static func isMissing(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) != 0 || status.st_mode & S_IFMT == S_IFREG && status.st_size == 0
    }

    /// Removes the pages beyond a number, and all thumbnails but these.
    func removeRest(pages: Int, thumbnails kept: Set<ContentDigest>) throws {
        for name in GalleryFolder.names(in: path) {
            guard name.hasPrefix("page-"), name.hasSuffix(".html"),
                let number = Int(name.dropFirst(5).dropLast(5)), number > pages,
                Gallery.name(ofPage: number) == name,
                GalleryFolder.isOwnPage("\(path)/\(name)")
            else { continue }
            try GalleryFolder.remove("\(path)/\(name)")
        }
        let folder = "\(path)/\(GalleryFolder.thumbnails)"
        for name in GalleryFolder.names(in: folder) where name.hasSuffix(".jpg") {
            guard let digest = ContentDigest(hexadecimal: name.dropLast(4)),
                !kept.contains(digest)
            else { continue }
            try GalleryFolder.remove("\(folder)/\(name)")
        }
    }

    private static func remove(_ path: String) throws {
        guard unlink(path) != 0, errno != ENOENT else { return }
        throw UserError(printable("\(path): cannot remove: \(String(cString: strerror(errno)))"))
    }

    /// The names of all files; empty for a folder that cannot be read.
    private static func names(in folder: String) -> [String] {
        (try? InputFile.names(in: folder)) ?? []
    }
}

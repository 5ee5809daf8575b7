import FileOutput
import Glibc
import Pages
import PrefetchModel
import Reporting

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

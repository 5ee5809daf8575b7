import CXML
package import PrefetchModel

/// The format `sitemap`: a sitemap (<https://www.sitemaps.org/protocol.html>), parsed by expat.
///
/// - The images of pages are entries (`image:loc`), with the columns `page`, `caption` and `title`.
///   With ``ManifestOptions/readsPages`` so are the pages (`loc`).
/// - Videos are entries by their thumbnails (`video:thumbnail_loc`), and images without the
///   elements around them, too.
/// - ``SitemapRepair`` reads files that are not quite XML.
/// - Without ``ManifestOptions/baseURL``, relative URLs are resolved against the page of an image,
///   or else the sitemap's own URL, if it was read by one.
/// - A URL longer than ``maximumTextBytes`` makes a bad entry; longer captions are left out.
/// - The sitemaps of an index are ``sitemaps`` with ``ManifestOptions/followsIndexes``, else bad
///   entries.
final class SitemapFormat: LineFormat {
    private let name: String
    private let options: ManifestOptions
    private(set) var sitemaps: [ListedSitemap] = []
    private var urlBytes = 0
    /// The pages that are no entries.
    private(set) var skippedPages = 0
    private var reader: OpaquePointer?
    private let repair = SitemapRepair()
    /// The unusual forms so far.
    var notes: [(text: String, remedy: String)] { repair.notes }
    private var foreign = ForeignColumns()
    /// Valid during a call of the reader.
    private var entries: EntryAppender?
    private var failure: (any Error)?

    private static let maximumTextBytes = ForeignColumns.maximumBytes

    /// expat keeps a tag that is not complete in memory.
    private static let maximumMemory = 4 << 20

    /// The most sitemaps of an index, as in the protocol, and the bytes of their URLs.
    private static let maximumSitemaps = 50_000
    private static let maximumURLBytes = 16 << 20

    private static let names = (
        page: ForeignColumns.quoted("page"), caption: ForeignColumns.quoted("caption"),
        title: ForeignColumns.quoted("title")
    )

    var takesPieces: Bool { true }
    var readsByteOrderMark: Bool { true }

    init(name: String, options: ManifestOptions) {
        self.name = name
        self.options = options
    }

    deinit {
        if let reader { csitemap_free(reader) }
    }

    func take(_ line: ListLine, to entries: EntryAppender) throws {
        try read(line.bytes, isLast: false, entries)
    }

    func finish(_ entries: EntryAppender) throws {
        try read(UnsafeBufferPointer(start: nil, count: 0), isLast: true, entries)
    }

    private func read(
        _ bytes: UnsafeBufferPointer<UInt8>, isLast: Bool, _ entries: EntryAppender
    ) throws {
        if reader == nil {
            reader = csitemap_make(
                min(options.maximumLineBytes, SitemapFormat.maximumTextBytes),
                SitemapFormat.maximumMemory, sitemapEntryRead,
                Unmanaged.passUnretained(self).toOpaque())
        }
        guard let reader else {
            throw ManifestError(path: name, operation: .parse, message: "no memory for XML")
        }
        self.entries = entries
        defer { self.entries = nil }
        let text = repair.repaired(bytes, isLast: isLast)
        let result = text.withUnsafeBytes {
            csitemap_read(reader, $0.baseAddress, $0.count, isLast)
        }
        if let failure { throw failure }
        let message = String(cString: result.message)
        switch result.status {
        case CSITEMAP_OK: return
        case CSITEMAP_OTHER:
            throw ManifestError(
                path: name, operation: .recognise,
                message: "is XML, but not a sitemap: its root element is "
                    + "'\(LineExcerpt.text(of: message))'")
        default:
            throw ManifestError(
                path: name, operation: .parse,
                message: "line \(result.line), column \(result.column): \(message)",
                hint: notes.last?.remedy)
        }
    }

    fileprivate func add(_ entry: csitemap_entry) {
        guard let entries, failure == nil else { return }
        guard entry.kind != CSITEMAP_PAGE || options.readsPages else {
            skippedPages += 1
            return
        }
        let url = absolute(entry)
        do throws {
            try url.withUnsafeBufferPointer { url in
                if options.keepsColumns {
                    add(SitemapFormat.names.page, entry.page)
                    add(SitemapFormat.names.caption, entry.caption)
                    add(SitemapFormat.names.title, entry.title)
                }
                do {
                    try append(url, entry, to: entries)
                } catch let problem as LineProblem {
                    entries.appendBad(url, problem, columns: foreign.object, line: Int(entry.line))
                }
            }
        } catch {
            failure = error
        }
        for name in foreign.leftOut { entries.noteLeftOut(name, line: Int(entry.line)) }
        foreign.removeAll()
    }

    /// The URL of an entry, resolved if it is relative and there is a URL for it.
    private func absolute(_ entry: csitemap_entry) -> [UInt8] {
        let url = entry.url.array
        guard let entries, options.baseURL == nil, SitemapFormat.isRelative(url) else { return url }
        let own = options.sourceURL
        let page = entry.page.bytes == nil ? nil : entries.absolute(entry.page.array, own)
        return (page ?? own).flatMap { entries.absolute(url, $0)?.text.utf8 }.map(Array.init) ?? url
    }

    /// Whether a text is a relative URL: `a/1.jpg`, `/a/1.jpg`, `//host/1.jpg`. A host without its
    /// scheme, `www.example.com/1.jpg`, is a mistake.
    private static func isRelative(_ url: [UInt8]) -> Bool {
        let first = url.prefix { !"/?#".utf8.contains($0) }
        guard !url.isEmpty, !first.contains(UInt8(ascii: ":")) else { return false }
        return first.allSatisfy { $0 == UInt8(ascii: ".") } || first.count == url.count
            || !first.contains(UInt8(ascii: "."))
    }

    private func append(
        _ url: UnsafeBufferPointer<UInt8>, _ entry: csitemap_entry, to entries: EntryAppender
    ) throws {
        let isList = entry.kind == CSITEMAP_LIST
        guard !isList || options.followsIndexes else {
            throw LineProblem("another sitemap; download it, and name it instead")
        }
        guard !url.containsReplacement else {
            throw LineProblem("the URL has bytes that are not in the sitemap's encoding")
        }
        guard !entry.is_cut else {
            throw LineProblem("the URL is longer than \(ByteCount(SitemapFormat.maximumTextBytes))")
        }
        entries.examine(url, line: Int(entry.line))
        guard !isList else {
            guard sitemaps.count < SitemapFormat.maximumSitemaps,
                urlBytes + url.count <= SitemapFormat.maximumURLBytes
            else {
                throw LineProblem(
                    "more than \(SitemapFormat.maximumSitemaps) sitemaps in an index, or more "
                        + "than \(ByteCount(SitemapFormat.maximumURLBytes)) of their URLs")
            }
            urlBytes += url.count
            sitemaps.append(
                ListedSitemap(
                    url: try entries.url(ofList: url, unit: "element"), line: Int(entry.line)))
            return
        }
        var fields = EntryFields()
        fields.values.columns = foreign.object
        try entries.append(url, fields, unit: "element", line: Int(entry.line))
    }

    private func add(_ name: [UInt8], _ text: csitemap_text) {
        guard text.bytes != nil else { return }
        text.array.withUnsafeBufferPointer { foreign.add(quotedName: name, text: $0) }
    }
}

extension UnsafeBufferPointer<UInt8> {
    /// Whether it has U+FFFD.
    fileprivate var containsReplacement: Bool {
        contains(0xEF) && String(decoding: self, as: UTF8.self).unicodeScalars.contains("\u{FFFD}")
    }
}

extension csitemap_text {
    fileprivate var array: [UInt8] { Array(UnsafeRawBufferPointer(start: bytes, count: count)) }
}

private func sitemapEntryRead(
    _ entry: UnsafePointer<csitemap_entry>, _ context: UnsafeMutableRawPointer
) {
    Unmanaged<SitemapFormat>.fromOpaque(context).takeUnretainedValue().add(entry.pointee)
}

/// A sitemap that an index names.
package struct ListedSitemap: Sendable {
    package let url: RequestURL
    package let line: Int
}

extension EntryBatch {
    /// A batch of one bad entry, for a sitemap that cannot be read; `manifest` is its index.
    package init(
        manifest: String, unreadable sitemap: ListedSitemap, _ failure: Failure, isKnown: Bool
    ) {
        self.init(manifest: manifest)
        text = Array(sitemap.url.text.utf8).withUnsafeBufferPointer(LineExcerpt.make)
        records = [
            Record(
                line: sitemap.line, url: text.indices, key: text.indices, priority: .normal,
                problem: 0)
        ]
        problems = [Problem(failure, isKnown: isKnown)]
    }
}

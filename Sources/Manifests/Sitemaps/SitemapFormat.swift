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
    /// The images before the `loc` of their page.
    private var pending: [SitemapEntry] = []
    private var pendingBytes = 0
    /// Valid during a call of the reader.
    private var entries: EntryAppender?
    private var failure: (any Error)?

    private static let maximumTextBytes = ForeignColumns.maximumBytes

    /// More images before the `loc` of a page have none.
    private static let maximumPendingBytes = 4 << 20

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
        if result.status != CSITEMAP_OK { takePending(page: nil) }
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
                hint: repair.encodingNote?.remedy)
        }
    }

    fileprivate func take(_ given: csitemap_entry) {
        let entry = SitemapEntry(given)
        switch given.kind {
        case CSITEMAP_PAGE_END: takePending(page: entry.url)
        case CSITEMAP_IMAGE where given.awaits_page:
            pending.append(entry)
            pendingBytes += entry.byteCount
            if pendingBytes > SitemapFormat.maximumPendingBytes { takePending(page: nil) }
        case CSITEMAP_PAGE:
            if options.readsPages { add(entry) } else { skippedPages += 1 }
            takePending(page: entry.url)
        default: add(entry)
        }
    }

    private func takePending(page: [UInt8]?) {
        let images = pending
        (pending, pendingBytes) = ([], 0)
        for var image in images {
            image.page = page
            add(image)
        }
    }

    private func add(_ entry: SitemapEntry) {
        guard let entries, failure == nil else { return }
        do throws {
            try absolute(entry).withUnsafeBufferPointer { url in
                if options.keepsColumns {
                    add(SitemapFormat.names.page, entry.page)
                    add(SitemapFormat.names.caption, entry.caption)
                    add(SitemapFormat.names.title, entry.title)
                }
                do {
                    try append(url, entry, to: entries)
                } catch let problem as LineProblem {
                    entries.appendBad(url, problem, columns: foreign.object, line: entry.line)
                }
            }
        } catch {
            failure = error
        }
        for name in foreign.leftOut { entries.noteLeftOut(name, line: entry.line) }
        foreign.removeAll()
    }

    /// The URL of an entry, resolved if it is relative and there is a URL for it.
    private func absolute(_ entry: SitemapEntry) -> [UInt8] {
        let url = entry.url ?? []
        guard let entries, options.baseURL == nil, SitemapFormat.isRelative(url) else { return url }
        let own = options.sourceURL
        let page = entry.page.flatMap { entries.absolute($0, own) }
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
        _ url: UnsafeBufferPointer<UInt8>, _ entry: SitemapEntry, to entries: EntryAppender
    ) throws {
        let isList = entry.isList
        guard !isList || options.followsIndexes else {
            throw LineProblem("another sitemap; download it, and name it instead")
        }
        guard !url.containsReplacement else {
            throw LineProblem("the URL has bytes that are not in the sitemap's encoding")
        }
        guard !entry.isCut else {
            throw LineProblem("the URL is longer than \(ByteCount(SitemapFormat.maximumTextBytes))")
        }
        entries.examine(url, line: entry.line)
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
                    url: try entries.url(ofList: url, unit: "element"), line: entry.line))
            return
        }
        var fields = EntryFields()
        fields.values.columns = foreign.object
        try entries.append(url, fields, unit: "element", line: entry.line)
    }

    private func add(_ name: [UInt8], _ text: [UInt8]?) {
        text?.withUnsafeBufferPointer { foreign.add(quotedName: name, text: $0) }
    }
}

extension UnsafeBufferPointer<UInt8> {
    /// Whether it has U+FFFD.
    fileprivate var containsReplacement: Bool {
        contains(0xEF) && String(decoding: self, as: UTF8.self).unicodeScalars.contains("\u{FFFD}")
    }
}

/// The texts of a `csitemap_entry`; nil for elements that are missing.
private struct SitemapEntry {
    let isList: Bool
    let line: Int
    let isCut: Bool
    let url, caption, title: [UInt8]?
    var page: [UInt8]?

    init(_ entry: csitemap_entry) {
        isList = entry.kind == CSITEMAP_LIST
        line = Int(entry.line)
        isCut = entry.is_cut
        url = entry.url.array
        caption = entry.caption.array
        title = entry.title.array
        page = entry.page.array
    }

    var byteCount: Int {
        let fixed = MemoryLayout<SitemapEntry>.stride
        return [url, caption, title].reduce(fixed) { $0 + ($1?.count ?? 0) }
    }
}

extension csitemap_text {
    fileprivate var array: [UInt8]? {
        bytes.map { Array(UnsafeRawBufferPointer(start: $0, count: count)) }
    }
}

private func sitemapEntryRead(
    _ entry: UnsafePointer<csitemap_entry>, _ context: UnsafeMutableRawPointer
) {
    Unmanaged<SitemapFormat>.fromOpaque(context).takeUnretainedValue().take(entry.pointee)
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

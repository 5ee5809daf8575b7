import CacheStorage
import Glibc
import Manifests
import Pipeline
import PrefetchModel
import URLParsing

/// Several manifests, read in order, followed by the URLs among the arguments.
///
/// All files are opened before the first is read: a wrong name must not fail after hours.
/// ``open(by:)`` does the same for lists by URL. The sitemaps of an index follow it.
struct ManifestSequence: EntryReading {
    private struct QueuedList {
        enum ListPlace {
            case url(RequestURL, AddressRule?)
            /// The file of a list by URL lives as long as its reader.
            case open(ManifestReader, ListFile?)
        }

        let name: String
        let options: ManifestOptions
        var place: ListPlace
        /// The index that names it; nil for the user's own choice.
        var index: SitemapIndex?
        /// Its URL, and the rule for the sitemaps that it names.
        var origin: (url: RequestURL, rule: AddressRule?)?

        /// The request for it; nil for a list that is open.
        var request: ListRequest? {
            guard case .url(let url, let rule) = place else { return nil }
            let fields = options.hostDefaults[hostIn: url.text]?.headers ?? []
            return ListRequest(url, fields: fields, by: rule)
        }
    }

    /// An index of sitemaps, and a line of it.
    private struct SitemapIndex {
        let manifest: String
        let sitemap: ListedSitemap
        /// The user's own list that leads to it.
        let root: String
        /// 1 for a sitemap of the user's own index.
        let depth: Int
    }

    /// The lists that are not read yet; the last one is next.
    private var items: [QueuedList]
    private var opening: (any ListOpening)?
    /// The URLs of the lists so far, without credentials.
    private var visited: Set<String> = []
    var report: (@Sendable (ListEvent) -> Void)?
    /// Whether lists without an entry are complete, and replace their copies.
    var allowsEmptyLists = false
    private(set) var gap: ListGap?
    /// Whether the present list has given an entry, and whether that list or any before it in its
    /// index has.
    private var (hasBatch, hasEntries) = (false, false)
    /// The skipped pages and rows of that list, and of the earlier lists of its index.
    private var (skippedPages, skippedRows) = (0, 0)
    private var missingColumn: String?

    /// The names of the manifests, for messages and the run log. The URLs of lists are among them,
    /// without their secrets, the URLs of images are not.
    let names: [String]

    /// An index in an index is followed, and no further one: they do not nest
    /// (<https://www.sitemaps.org/protocol.html>).
    private static let maximumDepth = 2

    /// The most lists by URL of a run.
    private static let maximumSitemaps = 100_000

    /// The largest list by URL, after decompression.
    private static let maximumListBytes = 1 << 30

    /// The number of lists that are named before they are opened.
    private static let expectedLists = 16

    /// Takes paths, `-` for standard input, URLs of images, and lists of configuration files like
    /// `@shop`; a URL in `lists` is the URL of a list.
    init(
        arguments: [String], lists: [String] = [], options: ManifestOptions,
        configured: ConfiguredLists = ConfiguredLists()
    ) throws {
        if (arguments + lists).count(where: { $0 == "-" }) > 1 {
            throw UserError(.usage, "standard input can be read only once")
        }
        let urls = arguments.filter(ManifestSequence.isURL)
        let files = try (arguments.filter { !ManifestSequence.isURL($0) } + lists).flatMap {
            ConfiguredLists.isName($0)
                ? try configured.files(of: $0, options: options)
                : [(name: $0, options: options)]
        }
        items = try files.map { name, options in
            guard ManifestSequence.isURL(name) else {
                let reader = try ManifestReader(path: name, options: options)
                return QueuedList(name: name, options: options, place: .open(reader, nil))
            }
            let url = try ManifestSequence.url(
                of: name, hint: "a list is a file, or has an http or https URL")
            return QueuedList(name: "\(url)", options: options, place: .url(url, nil))
        }
        if !urls.isEmpty {
            let name = EntryBatch.nameOfArguments
            let reader = try ManifestReader(lines: urls, name: name, options: options)
            items.append(QueuedList(name: name, options: options, place: .open(reader, nil)))
        }
        names = items.map(\.name)
        items.reverse()
    }

    /// Opens lists for a command that sends nothing: those by URL are copies in the cache.
    init(
        arguments: [String], lists: [String] = [], options: ManifestOptions,
        configured: ConfiguredLists, copiesIn cache: CacheOptions, isQuiet: Bool,
        allowsEmptyLists: Bool = false
    ) throws {
        var options = options
        options.followsIndexes = true
        try self.init(
            arguments: arguments, lists: lists, options: options, configured: configured)
        self.allowsEmptyLists = allowsEmptyLists
        if !isQuiet { report = ListEvent.tellOfCopies }
        try open(by: StoredLists(try cache.existingDirectory()))
    }

    /// The number of lists that ``open(by:)`` opens.
    var unopenedLists: Int { items.count { $0.request != nil } }

    /// Opens the lists by URL, which must precede the first read.
    ///
    /// - Throws: `UserError` with status 2 if one cannot be fetched and has no copy.
    mutating func open(by opening: any ListOpening) throws(UserError) {
        self.opening = opening
        for number in items.indices.reversed() {
            guard case .url = items[number].place else { continue }
            opening.expect(requests(items[...number]))
            var item = items[number]
            let opened = Result { () throws(MissingList) in try open(&item, by: opening) }
            try opened.mapError { missing in
                UserError(
                    missing.isLate ? .cancelled : .failed, item.name, missing.failure.message,
                    hint: missing.failure.reason.isExclusion
                        ? nil : "the cache has no earlier copy to use in its place")
            }.get()
            items[number] = item
        }
    }

    private mutating func open(
        _ item: inout QueuedList, by opening: any ListOpening
    ) throws(MissingList) {
        guard let request = item.request else { return }
        var (name, options) = (item.name, item.options)
        options.sourceURL = request.url.withoutCredentials
        // Files of this machine are named by lists of the user alone.
        options.localSchemes.subtract([.file, .fileByFlag])
        let opened = try opening.open(request, allowsEmpty: allowsEmptyLists) {
            file, most throws(Failure) in
            try ManifestSequence.entries(of: file, name: name, options, most: most)
        }
        let reader = try Result { () throws(ManifestError) in
            try ManifestSequence.reader(of: opened.file, name: name, options)
        }.mapError { MissingList(Failure(.invalidEntry, $0.message)) }.get()
        visited.insert(request.url.withoutCredentials.text)
        item.place = .open(reader, opened.file)
        item.origin = (request.url, opened.ruleOfSitemaps)
        report?(.opened(name, opened))
    }

    /// Counts the entries and sitemaps of a list, up to `most`. A sitemap, or a compressed list, is
    /// read to its end, since it may have been cut at its origin. Without a valid entry it fails.
    private static func entries(
        of file: ListFile, name: String, _ options: ManifestOptions, most: Int
    ) throws(Failure) -> Int {
        guard file.rewind() else { throw Failure(.disk, "its file cannot be read") }
        var options = options
        options.shard = nil
        options.selection = EntrySelection()
        var count = 0
        var problem: String?
        do throws(ManifestError) {
            let reader = try reader(of: file, name: name, options)
            let isReadThrough = reader.format == .sitemap || reader.isCompressed
            while isReadThrough || count < most, let batch = try reader.nextBatch() {
                count += batch.records.count { $0.problem < 0 }
                if problem == nil, let bad = batch.records.first(where: { $0.problem >= 0 }) {
                    problem = "line \(bad.line): \(batch.problems[bad.problem].failure.message)"
                }
            }
            count += reader.sitemaps.count
            if problem == nil, reader.skipped.count > 0 {
                problem = "line \(reader.skipped.first): no URL"
            }
        } catch {
            throw Failure(.invalidEntry, error.message)
        }
        if count == 0, let problem { throw Failure(.invalidEntry, "no valid entry; \(problem)") }
        return count
    }

    /// The requests for the lists that are next, the first one first.
    private func requests(_ items: ArraySlice<QueuedList>) -> [ListRequest] {
        items.suffix(ManifestSequence.expectedLists).reversed().compactMap { item in
            let isTooDeep = (item.index?.depth ?? 0) > ManifestSequence.maximumDepth
            return isTooDeep ? nil : item.request
        }
    }

    private static func reader(
        of file: ListFile, name: String, _ options: ManifestOptions
    ) throws(ManifestError) -> ManifestReader {
        var options = options
        options.maximumBytes = maximumListBytes
        return try ManifestReader(descriptor: file.descriptor, name: name, options: options)
    }

    // MARK: Reading

    /// Whether every manifest is a regular file, which has an end.
    var isRegularFiles: Bool {
        items.allSatisfy { item in
            if case .open(let reader, _) = item.place { reader.isRegularFile } else { true }
        }
    }

    var sizeInBytes: Int? {
        items.reduce(0) { sum, item in
            if case .open(let reader, _) = item.place {
                sum + (reader.sizeInBytes ?? 0)
            } else {
                sum
            }
        }
    }

    mutating func nextBatch() throws -> EntryBatch? {
        while let item = items.last {
            guard case .open(let reader, _) = item.place else {
                if let failed = openSitemap(item) { return failed }
                continue
            }
            let shown = item.name == "-" ? "standard input" : item.name
            do throws(ManifestError) {
                if let batch = try reader.nextBatch() {
                    if !hasBatch, let format = reader.format {
                        report?(.format(shown, format.rawValue))
                    }
                    (hasBatch, hasEntries) = (true, true)
                    return batch
                }
            } catch {
                guard let index = item.index else { throw error }
                return failed(item, index, MissingList(Failure(.invalidEntry, error.description)))
            }
            end(item, reader, shown)
        }
        opening?.finish()
        opening = nil
        return nil
    }

    /// Opens the sitemap that is next; returns its entry if it cannot be read.
    private mutating func openSitemap(_ item: QueuedList) -> EntryBatch? {
        guard let opening, let index = item.index else {
            preconditionFailure("lists by URL are opened before the first read")
        }
        var item = item
        do throws(MissingList) {
            guard index.depth <= ManifestSequence.maximumDepth else {
                throw MissingList(
                    Failure(
                        .invalidEntry,
                        "more than \(ManifestSequence.maximumDepth) levels of indexes lead to it"))
            }
            opening.expect(requests(items[...]))
            try open(&item, by: opening)
            items[items.count - 1] = item
            return nil
        } catch {
            return failed(item, index, error)
        }
    }

    /// Ends a sitemap that cannot be read, and returns its entry.
    private mutating func failed(
        _ item: QueuedList, _ index: SitemapIndex, _ missing: MissingList
    ) -> EntryBatch {
        hasEntries = true
        note(.unreadableSitemap, at: item.name, missing.failure.message)
        remove(item)
        return EntryBatch(
            manifest: index.manifest, unreadable: index.sitemap, missing.failure,
            isKnown: missing.isKnown)
    }

    private mutating func note(_ omission: ListOmission, at place: String, _ message: String) {
        gap = gap ?? ListGap(omission, at: place, message)
    }

    /// Ends a list, and puts the sitemaps that it names in its place.
    private mutating func end(_ item: QueuedList, _ reader: ManifestReader, _ shown: String) {
        gap = gap ?? reader.gap
        if reader.otherShards > 0 {
            hasEntries = true
            report?(.otherShards(reader.otherShards))
        }
        let skipped = reader.skipped
        if skipped.count > 0 {
            report?(.skipped(skipped.count, place: "\(shown):\(skipped.first)"))
        }
        skippedRows += skipped.count
        missingColumn = reader.missingColumn
        for note in reader.notes { report?(.note("\(shown): \(note.text)", note.remedy)) }
        let depth = (item.index?.depth ?? 0) + 1
        let root = item.index?.root ?? shown
        let sitemaps = reader.sitemaps.filter {
            visited.count < ManifestSequence.maximumSitemaps
                && visited.insert($0.url.withoutCredentials.text).inserted
        }
        if visited.count >= ManifestSequence.maximumSitemaps, sitemaps.count < reader.sitemaps.count
        {
            let message = "more than \(ManifestSequence.maximumSitemaps) sitemaps in all"
            note(.sitemapLimit, at: root, message)
            report?(
                .note(
                    "\(root): \(message); the rest is left out",
                    "pass other indexes to other runs"))
        }
        skippedPages += reader.skippedPages
        remove(
            item,
            adding: sitemaps.reversed().map { sitemap in
                var url = sitemap.url
                if let origin = item.origin, origin.url.origin == url.origin {
                    url = url.withCredentials(of: origin.url)
                }
                return QueuedList(
                    name: "\(sitemap.url)", options: item.options,
                    place: .url(url, item.origin?.rule),
                    index: SitemapIndex(
                        manifest: item.name, sitemap: sitemap, root: root, depth: depth))
            })
    }

    /// Removes the present list. An index has the entries of its sitemaps.
    private mutating func remove(_ item: QueuedList, adding sitemaps: [QueuedList] = []) {
        items.removeLast()
        items += sitemaps
        hasBatch = false
        guard items.last?.index == nil else { return }
        if !hasEntries {
            let name = item.index?.root ?? (item.name == "-" ? "standard input" : item.name)
            if !allowsEmptyLists { note(.emptyList, at: name, "no entries") }
            report?(
                .empty(
                    EmptyList(
                        name: name, skippedPages: skippedPages, skippedRows: skippedRows,
                        missingColumn: missingColumn)))
        }
        (hasEntries, skippedPages, skippedRows) = (false, 0, 0)
    }

    // MARK: The names of lists, and hints about wrong ones

    /// Whether the argument has the form of a URL, with any scheme, and so isn't a file: with `://`
    /// or as `data:…,…`.
    static func isURL(_ argument: String) -> Bool {
        if argument.prefix(5).lowercased() == "data:", argument.contains(",") { return true }
        guard let separator = argument.firstRange(of: "://"),
            separator.lowerBound > argument.startIndex
        else { return false }
        return argument[..<separator.lowerBound].utf8.allSatisfy {
            $0.isLetter || $0.isDecimalDigit || $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "-")
                || $0 == UInt8(ascii: ".")
        }
    }

    /// - Throws: `UserError` with status 64 unless the text is an `http` or `https` URL.
    static func url(of text: String, hint: String? = nil) throws -> RequestURL {
        do {
            return try URLParser().parse(text.utf8)
        } catch {
            guard case .invalid(let failure) = error else { throw error }
            throw UserError(.usage, "\(RedactedURL(text))", failure.message, hint: hint)
        }
    }

    /// Whether the argument looks like a URL without scheme: `example.com/a.jpg`.
    private static func lacksScheme(_ argument: String) -> Bool {
        guard let slash = argument.firstIndex(of: "/") else { return false }
        let host = argument[..<slash]
        return host.contains(".") && !host.hasPrefix(".") && !host.hasSuffix(".")
    }

    static func hint(
        for error: ManifestError, _ configured: ConfiguredLists = ConfiguredLists()
    ) -> String? {
        if let hint = error.hint { return hint }
        if error.code == EMFILE { return "raise the limit of open files: ulimit -n 4096" }
        if error.code == ENOENT, error.operation == .open {
            if configured.has(error.path) { return "did you mean @\(error.path)?" }
            if let name = CommandArguments.subcommand(like: error.path, of: Prefetch.subcommands) {
                return "did you mean `prefetch \(name)`?"
            }
            if lacksScheme(error.path) { return "did you mean https://\(error.path)?" }
            return "name a list of URLs: a file, - for standard input, @NAME for one of a "
                + "configuration file, or --list URL"
        }
        return error.code == EISDIR
            ? "name a file in it, or pass its list on standard input with -" : nil
    }
}

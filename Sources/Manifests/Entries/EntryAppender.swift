import PrefetchModel
import URLParsing

/// Appends entries to a batch, for all formats of lists.
///
/// Not thread-safe.
final class EntryAppender {
    let options: ManifestOptions
    private let hasHostDefaults: Bool
    private let ignoresQuery: Bool
    private let parser: URLParser
    private var batch: EntryBatch
    /// Approximate memory of the batch's extras, which count towards its limit like its text.
    private var extrasBytes = 0
    /// The last host and its defaults: entries of a host often follow one another.
    private var lastHost: (name: [UInt8], port: Int?, defaults: HostDefaults?)?
    /// Nil to take all entries.
    private let shard: ShardFilter.Selector?
    /// Entries of other shards so far, bad lines among them.
    private(set) var otherShards = 0
    /// The first line so far that hides images.
    private(set) var gap: ListGap?
    var notes = ListNotes()

    init(_ parser: URLParser, manifest: String, options: ManifestOptions) {
        self.parser = parser
        self.options = options
        hasHostDefaults = !options.hostDefaults.isEmpty
        ignoresQuery = !options.ignoredQuery.isEmpty
        shard = options.shard?.makeSelector()
        batch = EntryBatch(manifest: manifest)
    }

    var isFull: Bool {
        batch.records.count + batch.otherKeys.count >= options.maximumBatchEntries
            || batch.text.count + extrasBytes >= options.maximumBatchBytes
    }

    var isEmpty: Bool { batch.records.isEmpty && batch.otherKeys.isEmpty }

    /// Removes and returns the entries so far.
    func take() -> EntryBatch {
        defer {
            batch = EntryBatch(manifest: batch.manifest)
            extrasBytes = 0
        }
        return batch
    }

    /// Looks for unusual forms of a URL in another format than the text one.
    func examine(_ url: UnsafeBufferPointer<UInt8>, line: Int) {
        notes.oddLines.examine(url: url, number: line)
    }

    /// Notes a column that ``ForeignColumns`` leaves out, by its quoted name.
    func noteLeftOut(_ column: [UInt8], line: Int) {
        notes.note(
            leftOut: String(decoding: column.dropFirst().dropLast(), as: UTF8.self), line: line)
    }

    /// Appends an entry of a canonical URL without any field.
    ///
    /// - Returns: false, with the batch unchanged, if the text isn't a canonical URL.
    func appendCanonical(_ url: UnsafeBufferPointer<UInt8>, line: Int) -> Bool {
        guard let start = url.baseAddress,
            parser.canonicalPrefix(start, count: url.count) == url.count
        else { return false }
        let range = appendText(url)
        let key = self.key(range)
        if isOfOtherShard(range, key: key) { return true }
        if let objection = options.selection.objection(to: url) {
            appendFailed(url: range, key: key, objection, columns: nil, line: line)
            return true
        }
        batch.records.append(
            EntryBatch.Record(
                line: line, url: range, key: key, priority: .normal,
                extras: appendExtras(nil, url: range), ignoresQuery: ignoresQuery))
        return true
    }

    /// Whether an entry belongs to another shard, and notes its key then.
    private func isOfOtherShard(_ url: Range<Int>, key: Range<Int>) -> Bool {
        guard let shard, let own = options.shard?.index else { return false }
        let found = batch.text.withUnsafeBytes { text in
            shard(UnsafeRawBufferPointer(rebasing: text[url])) {
                UnsafeRawBufferPointer(rebasing: text[key])
            }
        }
        if found == own { return false }
        otherShards += 1
        batch.otherKeys.append(key)
        return true
    }

    /// Appends an entry's own extras and the defaults of its host.
    ///
    /// - Returns: the index of the extras, -1 without any.
    private func appendExtras(_ own: EntryExtras?, url: Range<Int>) -> Int {
        let host = hasHostDefaults ? hostDefaults(for: batch.text[url]) : nil
        let list = options.listDefaults
        let mine = list.isEmpty ? own : list.adding(to: own)
        guard let extras = host?.adding(to: mine) ?? mine else { return -1 }
        extrasBytes += extras.approximateBytes
        batch.extras.append(extras)
        return batch.extras.count - 1
    }

    private func hostDefaults(for url: ArraySlice<UInt8>) -> HostDefaults? {
        let place = HostPattern.place(in: url)
        if let lastHost, lastHost.port == place.port, lastHost.name.elementsEqual(place.name) {
            return lastHost.defaults
        }
        let defaults = options.hostDefaults[hostIn: url]
        lastHost = (Array(place.name), place.port, defaults)
        return defaults
    }

    /// Appends an entry, after the checks of its fields together and of its URL; `unit` is the word
    /// for its place, as in ``LineProblem/check(url:_:)``. The batch is unchanged if it throws.
    func append(
        _ url: UnsafeBufferPointer<UInt8>, _ given: EntryFields, unit: String, line: Int
    ) throws {
        var fields = given
        let place: URLPlace
        do {
            try fields.check(in: options.variants)
            (place, fields.values.alternatives) = try appendURL(url, or: fields.otherURLs, unit)
        } catch let problem as LineProblem
            where fields.key != nil || !fields.otherURLs.isEmpty && problem.omission != .notSelected
        {
            // A key or another URL names an image, too.
            throw problem.hidingImages
        }
        let (urlRange, normalizedKey) = (place.url, place.key)
        let ignoresQuery = self.ignoresQuery && fields.key == nil
        let keyRange: Range<Int>
        if let key = fields.key {
            batch.text.removeSubrange(urlRange.upperBound...)
            keyRange = appendText(key)
        } else {
            keyRange = self.key(normalizedKey)
        }
        if isOfOtherShard(urlRange, key: keyRange) { return }
        if let objection = options.selection.objection(to: batch.text[urlRange]) {
            appendFailed(
                url: urlRange, key: keyRange, objection, columns: fields.values.columns, line: line)
            return
        }
        var extras = fields.extras
        if let spelling = place.spelling {
            extras = extras ?? .empty
            extras?.spelling = spelling
        }
        batch.records.append(
            EntryBatch.Record(
                line: line, url: urlRange, key: keyRange, priority: fields.priority ?? .normal,
                extras: appendExtras(extras, url: urlRange), ignoresQuery: ignoresQuery))
    }

    /// The ranges of an entry's URL and key, and its spelling.
    private typealias URLPlace = (url: Range<Int>, key: Range<Int>, spelling: String?)

    /// Appends the first URL that can be requested, and returns the further ones of these that are
    /// selected.
    ///
    /// - Throws: The problem of the first URL that is selected, if none can be requested.
    private func appendURL(
        _ url: UnsafeBufferPointer<UInt8>, or others: [[UInt8]], _ unit: String
    ) throws -> (URLPlace, alternatives: [RequestURL]) {
        var problem: LineProblem?
        func place(_ url: UnsafeBufferPointer<UInt8>) throws -> URLPlace? {
            try orProblem(of: url, unit, &problem) { url in
                let (range, key) = try parser.parse(lineURL: url) {
                    parser throws(URLParsingError) in
                    try parser.append(url.span, to: &batch.text)
                }
                return (range, key, spelling(of: url, normalized: range))
            }
        }
        // In place of an image, a `data:` URL is mostly a placeholder until a script replaces it.
        let isPlaceholder = url[...].hasDataScheme && !others.isEmpty
        var rest = others.sorted { !$0.hasDataScheme && $1.hasDataScheme }[...]
        var found = isPlaceholder ? nil : try place(url)
        if isPlaceholder { rest.append(Array(url)) }
        while found == nil, let next = rest.popFirst() {
            found = try next.withUnsafeBufferPointer { try place($0) }
        }
        guard let found else { throw problem ?? LineProblem.withoutURL(unit) }
        let alternatives = try rest.compactMap { text in
            try text.withUnsafeBufferPointer { bytes in
                try orProblem(of: bytes, unit, &problem) { bytes in
                    try parser.parse(lineURL: bytes) { parser throws(URLParsingError) in
                        try parser.parse(text)
                    }
                }
            }
        }
        return (found, alternatives.filter { options.selection.objection(to: $0) == nil })
    }

    /// Parses a URL; nil, and a problem, if it cannot be requested.
    private func orProblem<Parsed>(
        of url: UnsafeBufferPointer<UInt8>, _ unit: String, _ problem: inout LineProblem?,
        _ parse: (UnsafeBufferPointer<UInt8>) throws -> Parsed
    ) throws -> Parsed? {
        do {
            try LineProblem.check(url: url, unit)
            return try parse(url)
        } catch let found as LineProblem {
            if problem.map({ $0.isExclusion || $0.isSkipped }) ?? true {
                problem = options.selection.judged(found, of: url)
            }
            return nil
        }
    }

    /// Returns the text of an absolute URL that differs from the normalised one, if it is wanted.
    private func spelling(of url: UnsafeBufferPointer<UInt8>, normalized: Range<Int>) -> String? {
        guard options.keepsSpelling, !batch.text[normalized].elementsEqual(url) else { return nil }
        let scheme = url.prefix { $0 != UInt8(ascii: ":") }
        // A relative URL begins with a slash, or has another one before its colon.
        guard scheme.count < url.count, !scheme.contains(UInt8(ascii: "/")) else { return nil }
        return String(decoding: url, as: UTF8.self)
    }

    /// Returns the place of a key without the parameters that keys leave out.
    private func key(_ key: Range<Int>) -> Range<Int> {
        guard ignoresQuery, let shortened = options.ignoredQuery.removed(from: batch.text[key])
        else { return key }
        return appendText(shortened)
    }

    private func appendText(_ bytes: some Collection<UInt8>) -> Range<Int> {
        let start = batch.text.count
        batch.text.append(contentsOf: bytes)
        return start..<batch.text.count
    }

    /// Appends an entry that is invalid or excluded.
    private func appendFailed(
        url: Range<Int>, key: Range<Int>, _ failure: Failure, columns: [UInt8]?, line: Int
    ) {
        batch.records.append(
            EntryBatch.Record(
                line: line, url: url, key: key, priority: .normal, problem: batch.problems.count))
        batch.problems.append(EntryBatch.Problem(failure, columns: columns))
        extrasBytes += columns?.count ?? 0
    }

    /// Parses the URL of another list; `unit` as in ``append(_:_:unit:line:)``.
    func url(ofList text: UnsafeBufferPointer<UInt8>, unit: String) throws -> RequestURL {
        do {
            try LineProblem.check(url: text, unit)
            return try parser.parse(lineURL: text) { parser throws(URLParsingError) in
                try parser.parse(text)
            }
        } catch let problem as LineProblem {
            throw LineProblem(problem.failure, omission: .unreadableSitemap)
        }
    }

    /// Resolves a URL against another one; nil if it is none.
    func absolute(_ text: [UInt8], _ base: RequestURL?) -> RequestURL? {
        guard let base else { return try? parser.parse(text) }
        return try? parser.parse(text, relativeTo: base)
    }

    /// The problem of a line with a wrong field: that its URL is not selected, if so.
    private func judged(
        _ problem: LineProblem, of url: UnsafeBufferPointer<UInt8>
    ) -> LineProblem {
        let judged: Failure?
        do {
            judged = options.selection.objection(to: try parser.parse(url))
        } catch {
            judged = options.selection.judged(problem, of: url).failure
        }
        // It may have a key, which names an image.
        return LineProblem(judged ?? problem.failure, namesField: true, omission: problem.omission)
    }

    /// Appends an invalid line. Its key is its text, which may be a key in the cache. `url` is the
    /// part of the text that is the URL, if that alone identifies the line.
    func appendBad(
        _ text: UnsafeBufferPointer<UInt8>, url: UnsafeBufferPointer<UInt8>? = nil,
        _ given: LineProblem, columns: [UInt8]? = nil, line: Int
    ) {
        let problem = given.namesField ? judged(given, of: url ?? text) : given
        gap =
            gap
            ?? ListGap(problem.omission, at: "\(batch.manifest):\(line)", problem.failure.message)
        // One shard reports the bad lines.
        let isOfOther = options.shard.map { $0.index > 0 } ?? false
        if problem.isSkipped, !options.keepsEmptyRows {
            if !isOfOther { notes.skipped.note(line) }
            return
        }
        if isOfOther {
            otherShards += 1
            return
        }
        let key = appendText(
            text.isEmpty ? Array(EntryBatch.missingURL.utf8) : LineExcerpt.make(text))
        let shown = url.map { appendText(LineExcerpt.make($0)) } ?? key
        appendFailed(url: shown, key: key, problem.failure, columns: columns, line: line)
    }
}

extension EntryExtras {
    /// Approximate memory, including allocation headers.
    fileprivate var approximateBytes: Int {
        let blockHead = 32
        let stepBytes = MemoryLayout<Transformation>.stride
        var bytes = MemoryLayout<EntryExtras>.stride + blockHead
        bytes += (main.steps?.count ?? 0) * stepBytes
        bytes += (columns?.count ?? 0) + (spelling?.utf8.count ?? 0)
        for variant in ownVariants {
            bytes += MemoryLayout<RequestedVariant>.stride + 2 * blockHead
            bytes += variant.name.text.utf8.count + variant.recipeText.utf8.count
            bytes += variant.recipe.transformations.count * stepBytes
        }
        for attribute in attributes {
            bytes += MemoryLayout<EntryAttribute>.stride + blockHead
            bytes += attribute.name.utf8.count + attribute.value.count
        }
        for header in headers {
            bytes += MemoryLayout<HeaderField>.stride + blockHead
            bytes += header.name.utf8.count + header.value.utf8.count
        }
        for url in alternatives { bytes += url.text.utf8.count + blockHead }
        return bytes
    }
}

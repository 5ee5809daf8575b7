import CacheStorage
import Glibc
import Manifests
import Pipeline
import PrefetchModel

/// Several manifests, read in order, followed by the URLs among the arguments.
///
/// All files are opened before the first is read, so that a wrong name fails at once and not after
/// hours. ``open(by:)`` does the same for lists by URL. The sitemaps of an index follow it.
struct ManifestSequence: EntryReading {
    /// A list that is read, or will be.
    private struct Item {
        enum Place {
            case url(RequestURL, AddressRule?)
            /// The file of a list by URL lives as long as its reader.
            case open(ManifestReader, ListFile?)
        }

        let name: String
        let options: ManifestOptions
        var place: Place
        /// The index that names it; nil for the user's own choice.
        var index: Index?
        /// Its URL, and the rule for the sitemaps that it names.
        var origin: (url: RequestURL, rule: AddressRule?)?
    }

    /// An index of sitemaps, and a line of it.
    private struct Index {
        let manifest: String
        let sitemap: ListedSitemap
        /// The user's own list that leads to it.
        let root: String
        /// 1 for a sitemap of the user's own index.
        let depth: Int
    }

    /// The lists that are not read yet; the last one is next.
    private var items: [Item]
    /// Opens lists by URL.
    private var opening: (any ListOpening)?
    /// The URLs of the lists so far, without credentials.
    private var visited: Set<String> = []
    /// Receives, at the end of each manifest, the unusual forms of its lines and their remedies.
    var noting: (@Sendable (_ text: String, _ remedy: String) -> Void)?
    /// Receives the format of each manifest with its first entries.
    var findingFormat: (@Sendable (_ name: String, _ format: String) -> Void)?
    /// Receives the name of each manifest without an entry, at its end.
    var findingEmpty: (@Sendable (_ name: String) -> Void)?
    /// Receives each list that was opened by its URL.
    var findingList: (@Sendable (_ name: String, OpenedList) -> Void)?
    /// Whether the present list has given an entry, and whether that list or any before it in its
    /// index has.
    private var (hasBatch, hasEntries) = (false, false)

    /// The names of the manifests, for messages and the run log. The URLs of images are not among
    /// them, and those of lists have no secrets.
    let names: [String]

    /// An index in an index is followed, and no further one: they do not nest
    /// (<https://www.sitemaps.org/protocol.html>).
    private static let maximumDepth = 2

    /// The name of the list of URLs among the arguments.
    private static let nameOfURLs = "arguments"

    /// Takes paths, `-` for standard input, URLs of images, and lists of configuration files like
    /// `@shop`; `lists` may have URLs of lists in place of those of images.
    init(arguments: [String], lists: [String] = [], options: ManifestOptions) throws {
        if (arguments + lists).count(where: { $0 == "-" }) > 1 {
            throw CommandFailure(
                exitStatus: 64, message: "standard input can be read only once")
        }
        let urls = arguments.filter(ManifestSequence.isURL)
        let files = try (arguments.filter { !ManifestSequence.isURL($0) } + lists).flatMap {
            ConfiguredLists.isName($0)
                ? try ConfiguredLists.files(of: $0, options: options)
                : [(name: $0, options: options)]
        }
        do {
            items = try files.map { name, options in
                guard ManifestSequence.isURL(name) else {
                    let reader = try ManifestReader(path: name, options: options)
                    return Item(name: name, options: options, place: .open(reader, nil))
                }
                let url = try ManifestSequence.url(ofList: name)
                return Item(name: "\(url)", options: options, place: .url(url, nil))
            }
            if !urls.isEmpty {
                let name = ManifestSequence.nameOfURLs
                let reader = try ManifestReader(lines: urls, name: name, options: options)
                items.append(Item(name: name, options: options, place: .open(reader, nil)))
            }
        } catch let error as ManifestError {
            throw CommandFailure.unusable(
                error.description, hint: ManifestSequence.hint(for: error))
        }
        names = items.map(\.name)
        items.reverse()
    }

    /// Opens the lists by URL, which must precede the first read.
    ///
    /// - Throws: ``CommandFailure`` with status 2 if one cannot be fetched and has no copy.
    mutating func open(by opening: any ListOpening) throws(CommandFailure) {
        self.opening = opening
        for number in items.indices.reversed() {
            guard case .url = items[number].place else { continue }
            var item = items[number]
            do throws(Failure) {
                try open(&item, by: opening)
            } catch {
                throw CommandFailure.unusable(
                    "\(item.name): \(error.message)",
                    hint: error.reason.isExclusion
                        ? nil : "the cache has no earlier copy to use in its place")
            }
            items[number] = item
        }
    }

    private mutating func open(
        _ item: inout Item, by opening: any ListOpening
    ) throws(Failure) {
        guard case .url(let url, let rule) = item.place else { return }
        let (name, options) = (item.name, item.options)
        let fields = options.hostDefaults[hostIn: url.text]?.headers ?? []
        let opened = try opening.open(ListRequest(url, fields: fields, by: rule)) { file in
            do throws(Failure) {
                try ManifestSequence.check(file, name: name, options)
                return nil
            } catch {
                return error
            }
        }
        let reader = try ManifestSequence.reader(of: opened.file, name: name, options)
        visited.insert(url.withoutCredentials.text)
        item.place = .open(reader, opened.file)
        item.origin = (url, opened.ruleOfSitemaps)
        findingList?(name, opened)
    }

    /// Checks a new list before it replaces a copy. A sitemap, or a compressed list, is read to its
    /// end, since it may have been cut at its origin.
    private static func check(
        _ file: ListFile, name: String, _ options: ManifestOptions
    ) throws(Failure) {
        var reader = try reader(of: file, name: name, options)
        guard reader.format == .sitemap || reader.isCompressed else { return }
        do throws(ManifestError) {
            while try reader.nextBatch() != nil {}
        } catch {
            throw Failure(.invalidEntry, error.message)
        }
    }

    private static func reader(
        of file: ListFile, name: String, _ options: ManifestOptions
    ) throws(Failure) -> ManifestReader {
        do throws(ManifestError) {
            return try ManifestReader(
                descriptor: file.descriptor, name: name, options: options)
        } catch {
            throw Failure(.invalidEntry, error.message)
        }
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
            guard case .open(var reader, _) = item.place else {
                if let failed = openSitemap(item) { return failed }
                continue
            }
            let shown = item.name == "-" ? "standard input" : item.name
            do throws(ManifestError) {
                if let batch = try reader.nextBatch() {
                    if !hasBatch, let format = reader.format {
                        findingFormat?(shown, format.rawValue)
                    }
                    (hasBatch, hasEntries) = (true, true)
                    return batch
                }
            } catch {
                guard let index = item.index else { throw error }
                return failed(item, index, Failure(.invalidEntry, error.description))
            }
            end(item, reader, shown)
        }
        opening?.finish()
        opening = nil
        return nil
    }

    /// Opens the sitemap that is next; returns its entry if it cannot be read.
    private mutating func openSitemap(_ item: Item) -> EntryBatch? {
        guard let opening, let index = item.index else {
            preconditionFailure("lists by URL are opened before the first read")
        }
        var item = item
        do throws(Failure) {
            guard index.depth <= ManifestSequence.maximumDepth else {
                throw Failure(
                    .invalidEntry,
                    "more than \(ManifestSequence.maximumDepth) levels of indexes lead to it")
            }
            try open(&item, by: opening)
            items[items.count - 1] = item
            return nil
        } catch {
            return failed(item, index, error)
        }
    }

    /// Ends a sitemap that cannot be read, and returns its entry.
    private mutating func failed(
        _ item: Item, _ index: Index, _ failure: Failure
    ) -> EntryBatch {
        hasEntries = true
        remove(item)
        return EntryBatch(manifest: index.manifest, unreadable: index.sitemap, failure)
    }

    /// Ends a list, and puts the sitemaps that it names in its place.
    private mutating func end(_ item: Item, _ reader: ManifestReader, _ shown: String) {
        for note in reader.notes { noting?("\(shown): \(note.text)", note.remedy) }
        let depth = (item.index?.depth ?? 0) + 1
        let sitemaps = reader.sitemaps.filter {
            visited.insert($0.url.withoutCredentials.text).inserted
        }
        let root = item.index?.root ?? shown
        remove(
            item,
            adding: sitemaps.reversed().map { sitemap in
                var url = sitemap.url
                if let origin = item.origin, origin.url.origin == url.origin {
                    url = url.withCredentials(of: origin.url)
                }
                return Item(
                    name: "\(sitemap.url)", options: item.options,
                    place: .url(url, item.origin?.rule),
                    index: Index(
                        manifest: item.name, sitemap: sitemap, root: root, depth: depth))
            })
    }

    /// Removes the present list. An index has the entries of its sitemaps.
    private mutating func remove(_ item: Item, adding sitemaps: [Item] = []) {
        items.removeLast()
        items += sitemaps
        hasBatch = false
        guard items.last?.index == nil else { return }
        if !hasEntries {
            findingEmpty?(item.index?.root ?? (item.name == "-" ? "standard input" : item.name))
        }
        hasEntries = false
    }

    /// Like ``nextBatch()``, for commands other than `run`.
    ///
    /// - Throws: ``CommandFailure`` with status 2 if the list can't be read.
    mutating func nextBatchOfCommand() throws -> EntryBatch? {
        do {
            return try nextBatch()
        } catch let error as ManifestError {
            throw CommandFailure.unusable(
                error.description, hint: ManifestSequence.hint(for: error))
        }
    }
}

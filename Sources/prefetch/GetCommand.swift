import ArgumentParser
import CacheStorage
import Glibc
import Manifests
import PrefetchModel
import Reporting

/// `prefetch get URL`
struct GetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Print the path of a cached image.",
        discussion: """
            Exit status: 0 the path was printed, 1 the image is not in the cache or expired, 2 the \
            cache cannot be read.
            """)

    @Argument(help: ArgumentHelp("The image's URL, or its cache key.", valueName: "url"))
    var url: String

    @OptionGroup var cache: CacheOptions

    @Option(help: ArgumentHelp("Which variant; without it the newest.", valueName: "recipe"))
    var recipe: String?

    @Flag(help: "Accept an expired image.")
    var stale = false

    @Flag(help: "Print a JSON object instead of the path.")
    var json = false

    func run() throws {
        let now = WallClock.now()
        let shown = RedactedURL(url).description
        guard let catalog = try cache.catalogIfPresent() else {
            throw CommandFailure(
                exitStatus: 1, message: "\(shown): is not in the cache, which does not exist yet")
        }
        let variants = try variants(in: catalog).filter { recipe == nil || $0.recipe == recipe }
        guard let item = variants.first else {
            throw CommandFailure(exitStatus: 1, message: "\(shown): is not in the cache")
        }
        guard stale || now < item.expiresAt else {
            throw CommandFailure(
                exitStatus: 1, message: "\(shown): expired at \(item.expiresAt)",
                hint: "--stale accepts it all the same")
        }
        guard let path = catalog.wholeFile(of: item.image) else {
            throw CommandFailure(
                exitStatus: 1,
                message:
                    "\(shown): its content file \(item.image.relativePath) is missing or damaged")
        }
        var output = LineWriter(OutputFile(borrowing: STDOUT_FILENO, name: "standard output"))
        try writing {
            if json {
                var object = JSONObject(item, at: now)
                object.add("path", path)
                try output.write(object)
            } else {
                try output.write(line: path)
            }
            try output.finish()
        }
    }

    /// Looks the URL up as its canonical key, or, where the text is no URL, as a key given by the
    /// field `key` of a manifest.
    private func variants(in catalog: CacheCatalog) throws -> [CacheCatalog.Item] {
        do throws(StorageError) {
            let literal = try catalog.variants(of: url)
            guard literal.isEmpty, let key = canonicalKey else { return literal }
            return try catalog.variants(of: key)
        } catch {
            throw CommandFailure(error)
        }
    }

    private var canonicalKey: String? {
        do throws(EntryBatch.Problem) {
            return try URLNormalizer().canonical(url.utf8).key
        } catch {
            return nil
        }
    }
}

/// Carries out work on standard output; a reader that has gone ends the command quietly.
func writing(_ work: () throws -> Void) throws {
    do {
        try work()
    } catch let error as ReportingError {
        switch error {
        case .closedPipe: throw CommandFailure.closedPipe
        case .system: throw CommandFailure.unusable(error.description)
        }
    } catch let error as StorageError {
        throw CommandFailure(error)
    }
}

extension JSONObject {
    /// A variant as `get` and `list` print it.
    init(_ item: CacheCatalog.Item, at time: Timestamp) {
        self.init()
        add("key", item.key)
        add("url", item.url)
        add("recipe", item.recipe)
        add("format", item.image.format.rawValue)
        add("width", item.image.widthInPixels)
        add("height", item.image.heightInPixels)
        add("bytes", item.image.size)
        add("sha256", item.image.digest.description)
        add("source_bytes", item.sourceSize)
        add("source_format", item.sourceFormat)
        add("fetched_at", item.fetchedAt)
        add("expires_at", item.expiresAt)
        add("fresh", time < item.expiresAt)
    }
}

import ArgumentParser
import CacheStorage
import Glibc
import Pipeline
import PrefetchModel
import Reporting

/// `prefetch get URL`
struct GetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Print the path of a cached image.",
        discussion: """
            Exit status: 0 the path was printed, 1 the image is not in the cache or not fresh, 2 the \
            cache cannot be read.
            """)

    @Argument(help: ArgumentHelp("The image's URL, or its cache key.", valueName: "url"))
    var url: String

    @OptionGroup var cache: CacheOptions

    @Option(help: ArgumentHelp("Which variant; without it the newest.", valueName: "recipe"))
    var recipe: String?

    @Flag(
        help: "Accept an expired image, unless its origin forbids that (must-revalidate, no-cache)."
    )
    var stale = false

    @Flag(help: "Print a JSON object instead of the path.")
    var json = false

    func run() throws {
        let now = WallClock.now()
        let image = ImageName(url)
        let catalog = try cache.catalogOfImages()
        var output = LineWriter(OutputFile(borrowing: STDOUT_FILENO, name: "standard output"))
        try writing {
            let variant = try image.find { key in
                let variants = try catalog.variants(of: key)
                return variants.isEmpty ? nil : variants
            }?.first { recipe == nil || $0.recipe == recipe }
            guard let item = variant else { throw image.isNotInTheCache }
            try check(item, shown: image.shown, at: now)
            guard let path = catalog.wholeFile(of: item.image) else {
                throw CommandFailure(
                    exitStatus: 1,
                    message: """
                        \(image.shown): its content file \(item.image.relativePath) is missing or \
                        damaged
                        """)
            }
            if json {
                var object = JSONObject(
                    item, attributes: try catalog.attributes(of: item.resource), at: now)
                object.add("path", path)
                try output.write(object)
            } else {
                try output.write(line: path)
            }
            try output.finish()
        }
    }

    /// - Throws: with exit status 1 when the copy may not be used.
    private func check(_ item: CacheCatalog.Item, shown: String, at now: Timestamp) throws {
        let message: String
        switch item.standing(at: now) {
        case .fresh:
            return
        case .expired:
            message = "\(shown): expired at \(item.expiresAt)"
        case .validatedAtEveryUse:
            message = "\(shown): has to be validated at every use"
        case .fromTheFuture:
            message = "\(shown): was validated at \(item.validatedAt), which is in the future"
        }
        guard !item.forbidsStaleUse else {
            throw CommandFailure(
                exitStatus: 1,
                message: "\(message), and its origin forbids to use it stale",
                hint: "`prefetch run` validates it; its --ttl overrides what the origin says")
        }
        guard stale else {
            throw CommandFailure(
                exitStatus: 1, message: message, hint: "--stale accepts it all the same")
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
    init(_ item: CacheCatalog.Item, attributes: [EntryAttribute], at time: Timestamp) {
        self.init()
        add("key", item.resource.key)
        add("url", item.resource.url)
        add("final_url", item.finalURL.map { RedactedURL($0).description })
        add("content_type", item.contentType)
        add("redirects", item.redirects)
        add("recipe", item.recipe)
        add("format", item.image.format.rawValue)
        add("width", item.image.widthInPixels)
        add("height", item.image.heightInPixels)
        add("bytes", item.image.size)
        add("sha256", item.image.digest.description)
        add("source_bytes", item.sourceSize)
        add("source_format", item.sourceFormat)
        add("fetched_at", item.fetchedAt)
        add("expires_at", item.isValidatedAtEveryUse ? nil : item.expiresAt)
        add("fresh", item.standing(at: time) == .fresh)
        add("attributes", JSONObject(attributes))
    }

    /// Attributes by name: a text, or an object with the member `base64` for what is not UTF-8.
    init(_ attributes: [EntryAttribute]) {
        self.init()
        for attribute in attributes {
            if let text = attribute.text {
                add(attribute.name, text)
            } else {
                var object = JSONObject()
                object.add("base64", base64: attribute.value)
                add(attribute.name, object)
            }
        }
    }
}

extension EntryAttribute {
    /// The value as text, or nil when it is not UTF-8.
    var text: String? { String(validating: value, as: UTF8.self) }
}

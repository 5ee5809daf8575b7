import ArgumentParser
import CacheStorage
import Glibc
import Hashing
import Manifests
import PrefetchModel
import Reporting
import Upkeep

/// `prefetch get URL`
struct GetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Print the path of a cached image.",
        discussion: """
            An image that is not in the cache, or no longer fresh, is an error that says why: when a \
            URL failed, with what, and until when it is blacklisted.

            With --batch, lines may come one by one, as a coprocess writes them: each is answered \
            before the next one is waited for. Blank lines and comments get no answer. A line may also \
            be a cache key.

            Exit status: 0 every path was printed, 1 an image is not in the cache or not fresh, 2 the \
            cache or the list cannot be read, 64 wrong usage.

            Examples:
              cp "$(prefetch get https://example.com/hero.jpg)" public/
              prefetch get --variant web https://example.com/hero.jpg
              prefetch get --stale --json https://example.com/hero.jpg
              prefetch get --batch < images.txt | paste images.txt -
            """)

    @Argument(help: ArgumentHelp("The image's URL, or its cache key.", valueName: "url"))
    var url: String?

    @OptionGroup var cache: CacheOptions

    @Option(
        help: ArgumentHelp(
            """
            The variant to get, by the name that runs give it with --variant NAME=SPEC (default: \
            main, which their other flags describe).
            """,
            valueName: "name"))
    var variant: String?

    @Option(
        help: ArgumentHelp(
            """
            The recipe of the variant to get, as `list --json` names it (default: the one that the last run over \
            the image used by the variant's name).
            """,
            valueName: "recipe"))
    var recipe: String?

    @Flag(
        help:
            "Accept an image that is no longer fresh, unless its origin forbids it (must-revalidate, no-cache)."
    )
    var stale = false

    @Flag(
        name: .customLong("no-check"),
        help: "Do not read the file to compare it with its digest; only its size is checked.")
    var skipsCheck = false

    @Flag(help: "Print a JSON object per image instead of its path.")
    var json = false

    @Flag(
        help: """
            Read URLs, or a whole manifest, from standard input and answer each entry with one line: \
            the path, or `-` for an image that cannot be had.
            """)
    var batch = false

    @OptionGroup var input: InputOptions

    func validate() throws {
        guard (url == nil) == batch else {
            throw ValidationError(
                batch
                    ? "--batch reads standard input and takes no URL"
                    : "name a URL, or read a list with --batch")
        }
        guard recipe == nil || variant == nil else {
            throw ValidationError("--variant and --recipe both pick a variant: give one of them")
        }
        guard batch || input.format == .auto && input.baseURL == nil else {
            throw ValidationError("--format and --base-url are for --batch")
        }
    }

    func run() throws {
        guard let url else { return try answerBatch() }
        let now = WallClock.now()
        let image = ImageName(url)
        let catalog = try cache.catalogOfImages()
        let choice = try choice(from: catalog)
        var output = LineWriter(OutputFile(borrowing: STDOUT_FILENO, name: "standard output"))
        try writing {
            let variants = try image.find(in: catalog) { key in
                let variants = try catalog.variants(of: key)
                return variants.isEmpty ? nil : variants
            }
            let failure =
                try variants.map { try catalog.failure(of: $0[0].resource) }
                ?? image.failure(in: catalog)
            let cooling = try failure == nil ? [:] : catalog.coolingTimes(at: now)
            let item: CacheCatalog.Item
            let path: String
            do throws(Refusal) {
                guard let variant = try choice.chosen(of: variants ?? []) else {
                    var refusal = Refusal(absenceAfter: failure, at: now, cooling: cooling)
                    if failure == nil, UsageAdvice.isFile(image.text) {
                        refusal.hint =
                            "for the images of a list: prefetch get --batch < \(image.shown)"
                    }
                    throw refusal
                }
                var chosen = variant
                try check(chosen, failure: failure, at: now)
                path = try self.path(of: &chosen, in: catalog)
                item = chosen
            } catch {
                throw CommandFailure(
                    exitStatus: 1, message: "\(image.shown): \(error.message)", hint: error.hint)
            }
            if json {
                var object = JSONObject(
                    item, as: choice.name, attributes: try catalog.attributes(of: item.resource),
                    at: now)
                object.add("path", path)
                object.add("checked", !skipsCheck)
                try output.write(object)
            } else {
                try output.write(line: path)
            }
            try output.finish()
            catalog.noteAccess(to: [item], at: now)
        }
    }

    /// Why an image is not handed out; its URL is said by the caller.
    struct Refusal: Error {
        let message: String
        var hint: String?
    }

    /// The path of an image's file, which is read and compared with its digest unless that is not
    /// wanted.
    ///
    /// - Throws: when the file is missing or damaged, or cannot be read.
    func path(
        of item: inout CacheCatalog.Item, in catalog: CacheCatalog
    ) throws(Refusal) -> String {
        var path: String?
        do throws(StorageError) {
            path = try file(of: item, in: catalog)
            // A run may have replaced it since its row was read, or somebody may have removed the image.
            while path == nil, let now = try catalog.item(like: item), now.image != item.image {
                item = now
                path = try file(of: item, in: catalog)
            }
        } catch {
            throw Refusal(message: error.description, hint: error.hint)
        }
        guard let path else {
            throw Refusal(
                message: "its content file \(item.image.relativePath) is missing or damaged",
                hint:
                    "`prefetch verify --repair` finds whatever is wrong; the next run over its list downloads it again"
            )
        }
        return path
    }

    private func file(
        of item: CacheCatalog.Item, in catalog: CacheCatalog
    ) throws(StorageError) -> String? {
        skipsCheck
            ? catalog.wholeFile(of: item.image)
            : try catalog.checkedFile(of: item.image, hasher: SHA256Hasher())
    }

    /// `failure` is that of the last refresh, if it failed.
    ///
    /// - Throws: when the copy may not be used.
    func check(
        _ item: CacheCatalog.Item, failure: FailureRecord?, at now: Timestamp
    ) throws(Refusal) {
        var message: String
        switch item.standing(at: now) {
        case .fresh:
            return
        case .expired:
            message = "expired at \(item.expiresAt)"
        case .validatedAtEveryUse:
            message = "has to be validated at every use"
        case .fromTheFuture:
            message = "was validated at \(item.validatedAt), which is in the future"
        }
        if let failure { message += "; the last refresh \(failure.account)" }
        guard !item.forbidsStaleUse else {
            throw Refusal(
                message: "\(message), and its origin forbids using it stale",
                hint: "`prefetch run` validates it; its --ttl overrides what the origin says")
        }
        guard stale else {
            throw Refusal(message: message, hint: "--stale accepts it anyway")
        }
    }
}

extension GetCommand.Refusal {
    /// The image is not there, because of a failure if one is known.
    init(
        absenceAfter failure: FailureRecord?, at now: Timestamp, cooling: [String: Timestamp]
    ) {
        guard let failure else {
            self.init(message: "is not in the cache")
            return
        }
        let message = "is not in the cache: \(failure.account)"
        if let until = failure.blockEnd(at: now) {
            self.init(
                message: message + ", and is blacklisted until \(until)",
                hint: "`prefetch run --retry-failed URL` asks for it again now")
        } else if let until = cooling[failure.host] {
            self.init(
                message: message + ", and its host is left alone until \(until)",
                hint: "a run after that asks for it again")
        } else {
            self.init(message: message, hint: "the next run asks for it again")
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
    /// A variant as `get` and `list` print it; `name` is what it was asked for by, nil for the name
    /// that it is in use by.
    init(
        _ item: CacheCatalog.Item, as name: String? = nil, attributes: [EntryAttribute],
        at time: Timestamp
    ) {
        self.init()
        add("key", item.resource.key)
        add("url", item.resource.url)
        add("final_url", item.finalURL.map { RedactedURL($0).description })
        add("content_type", item.contentType)
        add("redirects", item.redirects)
        add("variant", name ?? item.name)
        add("recipe", item.recipe)
        add("format", item.image.format.rawValue)
        add("decoded", item.image.isDecoded)
        add("width", item.image.knownWidth)
        add("height", item.image.knownHeight)
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

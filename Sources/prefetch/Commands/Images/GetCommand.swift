import ArgumentParser
import Buckets
import CacheStorage
import Hashing
import Manifests
import PrefetchModel
import Reporting
import Sharding
import Upkeep

struct GetCommand: SearchingCommand {
    static let configuration = CommandConfiguration(
        commandName: "get",
        abstract: "Print the path of a cached image.",
        discussion: """
            For an image that is missing or stale, the error tells why: when the URL failed, the \
            reason, and how long it is blacklisted.

            With --batch a result is printed for each line before the next one is read, so a coprocess \
            can write them one by one. Blank lines and comments have no result. A line may also be a cache \
            key. Fields like resize= select the variant that they make with the last run's flags.

            Exit status: 0 every path was printed, 1 an image is missing or stale, 2 the cache or the \
            list cannot be read, 64 wrong usage; with --sink also 3 the --deadline has passed, 75 \
            another process holds the cache.

            Examples:
              cp "$(prefetch get https://example.com/hero.jpg)" public/
              prefetch get --variant web https://example.com/hero.jpg
              prefetch get --stale --json https://example.com/hero.jpg
              prefetch get --batch --json < images.txt | jq -r '[.url, .path] | @tsv'
            """)

    @Argument(help: .value("url", "The image's URL, or its cache key."))
    var url: String?

    @OptionGroup var cache: CacheOptions
    @OptionGroup var wanted: WantedVariant

    @Option(
        help: .value(
            "s3://bucket/prefix",
            """
            Get an image that the cache lacks from this bucket, which `run --sink` has written, into the \
            cache.
            """))
    var sink: ObjectLocation?

    @OptionGroup var bucket: Flags<BucketFlags>
    @OptionGroup var shards: ShardSource

    @Flag(
        help: """
            Accept a stale image, unless its origin forbids it (must-revalidate, no-cache).
            """
    )
    var stale = false

    @Flag(name: .customLong("no-check"), help: "Check only the file's size, not its digest.")
    var skipsCheck = false

    @Flag(help: "Print a JSON object per image instead of its path.")
    var json = false

    @Flag(
        help: """
            Read URLs or a whole manifest from standard input and print one line for each entry: \
            the path, or `-` for an image that is missing or stale.
            """)
    var batch = false

    @Flag(
        help: """
            With --batch: print the paths of images that may be used, and nothing for the others, \
            which then do not make the exit status 1.
            """)
    var existing = false

    @OptionGroup var input: Flags<InputFlags>

    func validate() throws {
        guard (url == nil) == batch else {
            throw ValidationError(
                batch
                    ? "--batch reads standard input and takes no URL"
                    : "name a URL, or read a list with --batch")
        }
        guard batch || !existing else { throw ValidationError("--existing needs --batch") }
        guard shards.caches == nil || sink == nil else {
            throw ValidationError("--caches and --sink cannot be combined")
        }
        guard sink == nil || !batch else {
            throw ValidationError("--sink takes one URL; `prefetch pull` gets all images")
        }
    }

    func run() throws {
        guard let url else { return try answerBatch() }
        let now = WallClock.now()
        let image = ImageName(argument: url).leavingOut(input.keys)
        if let sink { try fetch(image, from: sink) }
        let catalog = try catalog(for: image)
        let choice = try wanted.choice(from: catalog)
        let variants = try variants(of: image, in: catalog)
        let failure =
            try variants.map { try catalog.failure(of: $0[0].resource) }
            ?? image.failure(in: catalog)
        let cooling = try failure == nil ? [:] : catalog.coolingTimes(at: now)
        let (item, path) = try reporting(as: {
            $0 = UserError(.incomplete, image.shown, $0.description, hint: $0.hint)
        }) {
            guard let variant = try choice.chosen(of: variants ?? []) else {
                var refusal = UserError(absenceAfter: failure, at: now, cooling: cooling)
                if failure == nil, UsageAdvice.isFile(image.text) {
                    refusal.hint =
                        "to print the paths for a list: prefetch get --batch < \(image.shown)"
                }
                throw refusal
            }
            var chosen = variant
            try check(chosen, failure: failure, at: now)
            let path = try self.path(of: &chosen, in: catalog)
            return (chosen, path)
        }
        if json {
            var object = JSONObject(
                item, as: choice.name, attributes: try catalog.attributes(of: item.resource),
                at: now)
            object.add("path", path)
            object.add("checked", !skipsCheck)
            try LineWriter.print(object)
        } else {
            try LineWriter.print([path])
        }
        catalog.noteAccess(to: [item], at: now)
    }

    /// The cache to search: the shard that has the image, else the first one that could have it.
    private func catalog(for image: ImageName) throws -> CacheCatalog {
        guard let opened = try shards.open() else { return try cache.catalog() }
        var first: CacheCatalog?
        for shard in opened.shards(of: try image.canonicalKey) {
            let catalog = try opened.catalog(shard)
            if try variants(of: image, in: catalog) != nil { return catalog }
            first = first ?? catalog
        }
        guard let first else { return try opened.catalog(0) }
        return first
    }

    /// The variants of an image, newest first; nil without any.
    func variants(of image: ImageName, in catalog: CacheCatalog) throws -> [CacheCatalog.Item]? {
        try image.find(
            { key in
                let variants = try catalog.variants(of: key)
                return variants.isEmpty ? nil : variants
            }, keyOfURL: catalog.key(ofURL:))
    }

    /// The path of an image's file, compared with its digest unless `--no-check` was given.
    ///
    /// - Throws: `UserError` with status 1 if the file is missing or damaged, and ``StorageError``.
    func path(of item: inout CacheCatalog.Item, in catalog: CacheCatalog) throws -> String {
        var path = try file(of: item, in: catalog)
        // A run may have replaced or removed the image since its row was read.
        while path == nil, let now = try catalog.item(like: item), now.image != item.image {
            item = now
            path = try file(of: item, in: catalog)
        }
        guard let path else {
            throw UserError(
                .incomplete, "content file \(item.image.relativePath) is missing or damaged",
                hint: "`prefetch verify --repair`, then the next run downloads the image again"
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

    /// Checks freshness. `failure` is the failure of the last refresh.
    ///
    /// - Throws: `UserError` with status 1 if the copy must not be used.
    func check(
        _ item: CacheCatalog.Item, failure: FailureRecord?, at now: Timestamp
    ) throws(UserError) {
        var message: String
        switch item.standing(at: now) {
        case .fresh:
            return
        case .expired:
            message = "expired at \(item.expiresAt)"
        case .validatedAtEveryUse:
            message = "must be validated at every use"
        case .fromTheFuture:
            message = "validated at \(item.validatedAt), which is in the future"
        }
        if let failure { message += "; the last refresh \(failure.account)" }
        guard !item.forbidsStaleUse else {
            throw UserError(
                .incomplete, "\(message), and its origin forbids using it stale",
                hint: "`prefetch run` validates it; `run --ttl` overrides the origin")
        }
        guard stale else {
            throw UserError(.incomplete, message, hint: "--stale accepts it anyway")
        }
    }

    // MARK: `prefetch get --sink`

    /// Gets an image from a bucket into the cache, unless the cache has it and may use it.
    ///
    /// - Throws: `UserError` with status 1 if the bucket lacks it or it must not be used, 2
    ///   if the bucket cannot be read or the cache not be written, 75 if a run holds the cache.
    func fetch(_ image: ImageName, from location: ObjectLocation) throws {
        let now = WallClock.now()
        guard !isUsable(image, at: now) else { return }
        let storage = try BucketFlags.storage(location, bucket)
        let path = try cache.path()
        // Several of these commands may run in parallel.
        let held = HeldCache(path: path, lock: bucket.limited(.wait(.seconds(30))), isQuiet: true)
        let opened = try held.open(hint: "try again when its run has ended") {
            try OpenCache.openForRun(path: path, waiting: $0, at: now, whenHeld: $1)
        }
        try fetch(image, from: storage, into: opened, at: now)
    }

    /// Whether the cache has the wanted variant, and its freshness allows to use it.
    private func isUsable(_ image: ImageName, at now: Timestamp) -> Bool {
        do {
            let catalog = try cache.catalog()
            let variants = try self.variants(of: image, in: catalog)
            guard let item = try wanted.choice(from: catalog).chosen(of: variants ?? []) else {
                return false
            }
            try check(item, failure: nil, at: now)
            var found = item
            _ = try self.path(of: &found, in: catalog)
            return true
        } catch {
            // A cache that cannot be read cannot be written either, which is reported then.
            return false
        }
    }

    private func fetch(
        _ image: ImageName, from storage: ObjectStorage, into opened: OpenCache, at now: Timestamp
    ) throws {
        var refusal = UserError(
            .incomplete, image.shown, "neither in the cache nor in \(storage.location)")
        let isFound = try storage.findShards(
            of: try image.canonicalKey, by: ShardSelector.shards
        ) { shard in
            let remote = try storage.catalog(of: shard, for: opened.directory)
            do {
                return try store(
                    image, from: remote, of: "\(storage.location)/\(shard.database)", storage,
                    in: opened, at: now)
            } catch let error as UserError where error.kind == .incomplete {
                refusal.message = error.message
                refusal.hint = error.hint
                return false
            } catch let error as StorageError {
                // The server's error is the cause of the database's.
                throw remote.failure ?? error
            }
        }
        guard !isFound else { return }
        throw refusal
    }

    /// - Returns: false if the database lacks the image.
    private func store(
        _ image: ImageName, from remote: RemoteCatalog, of shard: String,
        _ storage: ObjectStorage,
        in opened: OpenCache, at now: Timestamp
    ) throws -> Bool {
        let catalog = remote.catalog
        guard let variants = try variants(of: image, in: catalog),
            let item = try wanted.choice(from: catalog).chosen(of: variants),
            let recipe = Recipe(canonicalText: item.recipe)
        else { return false }
        try check(item, failure: nil, at: now)
        guard let copy = try remote.copy(key: item.resource.key, recipe: item.recipe) else {
            return false
        }
        var validation = copy.validation
        let own = try CacheCatalog(opened).copies(of: [(item.resource.key, [])])[0]
        if let own, own.validation.validatedAt > validation.validatedAt {
            // The cache's row counts, and only one of the same source can have more variants.
            guard own.source.digest == copy.source.digest else {
                throw UserError(.incomplete, "the cache has a later image of it than \(shard)")
            }
            validation = own.validation
        }
        let name = item.name.flatMap { VariantName($0) } ?? .main
        let variant = RequestedVariant(name: name, recipe: recipe)
        var failure: (any Error)?
        var isWhole = false
        try opened.seed([variant], at: now) { () throws(StorageError) in
            opened.content.pin(item.image.digest)
            do {
                isWhole = try storage.get(ContentFile(of: item.image), into: opened.content)
            } catch {
                failure = error
            }
            guard isWhole else {
                opened.content.unpin(item.image.digest)
                return []
            }
            return [
                ImageChange(
                    key: item.resource.key, body: .new(copy.source, validation),
                    variants: [VariantChange(variant, image: item.image, createdAt: now)])
            ]
        }
        if let failure { throw failure }
        guard isWhole else {
            throw UserError(.incomplete, "its file in the bucket is missing or damaged")
        }
        return true
    }
}

extension UserError {
    /// The image is missing, because of the failure if there is one.
    init(absenceAfter failure: FailureRecord?, at now: Timestamp, cooling: [String: Timestamp]) {
        guard let failure else {
            self.init(.incomplete, "not in the cache")
            return
        }
        let message = "not in the cache: \(failure.account)"
        if let until = failure.blacklistEnd(at: now) {
            self.init(
                .incomplete, message + "; blacklisted until \(until)",
                hint: "`prefetch run --retry-failed URL` requests it now")
        } else if let until = cooling[failure.host] {
            self.init(
                .incomplete, message + "; no requests to its host until \(until)",
                hint: "a run after that requests it again")
        } else {
            self.init(.incomplete, message, hint: "the next run requests it again")
        }
    }
}

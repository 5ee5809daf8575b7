import Buckets
import CacheStorage
import PrefetchModel
import Sharding

// `prefetch get --sink`

extension GetCommand {
    /// Gets an image from a bucket into the cache, unless the cache has it and may use it.
    ///
    /// - Throws: `UserError` with status 1 if the bucket lacks it or it must not be used, 2
    ///   if the bucket cannot be read or the cache not be written, 75 if a run holds the cache.
    func fetch(_ image: ImageName, from location: ObjectLocation) throws {
        let now = WallClock.now()
        guard !isUsable(image, at: now) else { return }
        let storage = try bucket.storage(location)
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
        let index = SinkIndex(storage, for: opened.directory, shards: ShardSelector.shards)
        var refusal = UserError(
            .incomplete, image.shown, "neither in the cache nor in \(storage.location)")
        let isFound = try index.find(try image.canonicalKey) { shard in
            let remote = try index.catalog(of: shard)
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

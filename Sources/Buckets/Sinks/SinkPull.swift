package import CacheStorage
package import PrefetchModel
import Threading

/// Gets the shards of a sink: their databases, and the content files that a cache lacks and will
/// name. The cache can then merge them.
package struct SinkPull: Sendable {
    package struct Pulled: Sendable {
        /// The folders of the databases, for a merge.
        package var folders: [String] = []
        /// Shards with a missing or damaged database: the reasons.
        package var unreadable: [String] = []
        package var counts = SinkCounts()
        /// Files that the sink lacks or has under the name of other bytes.
        package var lost: Set<ContentDigest> = []
    }

    private let storage: ObjectStorage
    private let cache: OpenCache
    private let now: Timestamp
    private let tell: @Sendable (SinkCounts) -> Void

    /// Gets all complete shards. A stopped pull leaves whole files, which the next one finds.
    ///
    /// `tell` is called now and then, from several threads, with the counts so far.
    package static func download(
        from storage: ObjectStorage, into cache: OpenCache, at now: Timestamp,
        telling tell: @escaping @Sendable (SinkCounts) -> Void
    ) throws -> Pulled {
        let pull = SinkPull(storage: storage, cache: cache, now: now, tell: tell)
        let shards = try storage.shards()
        guard !shards.isEmpty else {
            throw UserError(
                .failed, "\(storage.location)", "no shard is complete there",
                hint: "`prefetch run --sink` makes shards/I-of-N/_DONE.json")
        }
        let folders = try PulledDatabases(in: cache.directory)
        var pulled = Pulled()
        for shard in shards {
            do {
                let path = try pull.database(of: shard, in: folders)
                try pull.checkDatabase(path)
                pulled.folders.append(path)
            } catch let error as ObjectStorageError where error.isOfOneObject {
                // The others are complete.
                pulled.unreadable.append(error.description)
            }
        }
        var rest = pulled.folders[...]
        while !rest.isEmpty {
            try pull.getContent(of: rest.prefix(OpenCache.sourcesAtOnce), &pulled)
            rest = rest.dropFirst(OpenCache.sourcesAtOnce)
        }
        return pulled
    }

    // MARK: Databases

    private func database(of shard: Shard, in folders: PulledDatabases) throws -> String {
        let name = shard.sinkName
        var former: ContentDigest?
        while true {
            let done = try storage.done(of: shard)
            if try folders.has(done.digest, of: name) { return folders.path(of: name) }
            var failure: (any Error)?
            let found = try folders.receive(name, done.digest) { file in
                do {
                    return try storage.download(done.database, to: file, size: done.size)
                } catch {
                    failure = error
                    return nil
                }
            }
            if let failure {
                // A run may have replaced it since its name was read.
                let isMissing = (failure as? ObjectStorageError)?.kind == .missing
                guard isMissing, former != done.digest else { throw failure }
                former = done.digest
                continue
            }
            guard found == done.digest else {
                throw ObjectStorageError(
                    kind: .damaged,
                    description: "\(storage.location)/\(done.database): "
                        + "its bytes differ from its name")
            }
            return folders.path(of: name)
        }
    }

    // MARK: Content

    /// - Throws: when the database of a shard is unusable, which does not concern the others.
    private func checkDatabase(_ path: String) throws {
        do {
            _ = try ContentFiles(of: CacheDirectory(path: path, access: .readOnly))
        } catch {
            throw ObjectStorageError(kind: .damaged, description: error.description)
        }
    }

    /// Gets the files that rows will name after the merge: the rows are decided first. A file that
    /// the sink lacks changes the decision, so it is made again without that file.
    private func getContent(of paths: ArraySlice<String>, _ pulled: inout Pulled) throws {
        let (storage, content, tell) = (storage, cache.content, tell)
        let lost = Monitor(pulled.lost)
        var known: Set<ContentDigest>
        repeat {
            known = lost.withLock { $0 }
            let unavailable = known
            let files = try cache.filesToMerge(paths, besides: unavailable, at: now)
            let copying = SinkCopying(files, counts: pulled.counts) { counts, _ in tell(counts) }
            pulled.counts = try copying.run(in: storage) { files in
                Set(
                    files.lazy.filter {
                        unavailable.contains($0.digest) || content.directory.hasWholeFile($0)
                    }.map(\.digest))
            } copy: { file in
                let isStored = try storage.get(file, into: content)
                if !isStored { lost.withLock { _ = $0.insert(file.digest) } }
                return isStored
            }
        } while lost.withLock({ $0 }) != known
        pulled.lost = known
    }
}

extension ObjectStorage {
    /// Gets a content file into a cache.
    ///
    /// - Returns: false if the sink lacks the file, or has other bytes under its name.
    package func get(_ file: ContentFile, into content: ContentStore) throws -> Bool {
        var failure: (any Error)?
        let isStored = try content.receive(file) { number in
            do {
                return try download(SinkLayout.content(file.digest), to: number, size: file.size)
            } catch {
                failure = error
                return nil
            }
        }
        guard let failure else { return isStored }
        guard (failure as? ObjectStorageError)?.isOfOneObject == true else { throw failure }
        return false
    }
}

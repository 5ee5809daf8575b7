package import CacheStorage
import Hashing
package import PrefetchModel
import Threading

/// Gets the shards of a sink: their databases, and the content files that a cache lacks and will
/// name. The cache can then merge them.
package struct SinkPull: Sendable {
    package struct Counts: Hashable, Sendable {
        package var downloaded = 0
        package var downloadedBytes = 0
        /// Files that the cache had.
        package var present = 0
        /// Files that the sink lacks, or whose bytes differ from their names.
        package var lost = 0
        /// Shards whose database is missing or damaged, with the reasons.
        package var unreadable: [String] = []
    }

    private let storage: ObjectStorage
    private let cache: OpenCache
    /// The wall clock.
    private let now: Timestamp
    private let progress: @Sendable (Counts) -> Void

    /// - Parameters:
    ///   - storage: the bucket.
    ///   - cache: the open cache.
    ///   - now: the wall clock.
    ///   - progress: called from several threads.
    package init(
        from storage: ObjectStorage, into cache: OpenCache, at now: Timestamp,
        progress: @escaping @Sendable (Counts) -> Void
    ) {
        self.storage = storage
        self.cache = cache
        self.now = now
        self.progress = progress
    }

    /// Gets all complete shards.
    ///
    /// A pull that was stopped leaves whole files, which the next one finds.
    ///
    /// - Returns: the folders of the databases, for a merge, and the counts.
    /// - Throws: when a shard cannot be read or this cache not be written.
    package func callAsFunction() throws(SinkFailure) -> (folders: [String], counts: Counts) {
        let client = try SinkFailure.ofRequests { () throws(ObjectStorageError) in
            try ObjectClient(storage)
        }
        let shards = try SinkFailure.ofRequests { () throws(ObjectStorageError) in
            try client.shards()
        }
        guard !shards.isEmpty else {
            throw SinkFailure(
                "\(storage.location): no shard is complete there",
                hint: "`prefetch run --sink` makes shards/I-of-N/_DONE.json")
        }
        let folders = try SinkFailure.ofCache { () throws(StorageError) in
            try PulledDatabases(in: cache.directory)
        }
        var paths: [String] = []
        var counts = Counts()
        for shard in shards {
            do throws(SinkFailure) {
                let path = try database(of: shard, in: folders, by: client)
                try checkDatabase(path)
                paths.append(path)
            } catch {
                // The others are complete.
                guard error.isOfOne else { throw error }
                counts.unreadable.append(error.message)
            }
        }
        var rest = paths[...]
        while !rest.isEmpty {
            try getContent(of: rest.prefix(OpenCache.sourcesAtOnce), &counts)
            rest = rest.dropFirst(OpenCache.sourcesAtOnce)
        }
        return (paths, counts)
    }

    /// Removes the databases, after the merge.
    package static func removeDatabases(in directory: CacheDirectory) {
        PulledDatabases.remove(in: directory)
    }

    // MARK: Databases

    private func database(
        of shard: Shard, in folders: PulledDatabases, by client: ObjectClient
    ) throws(SinkFailure) -> String {
        var former: ContentDigest?
        while true {
            let done = try SinkFailure.ofRequests { () throws(ObjectStorageError) in
                try client.done(of: shard)
            }
            let isThere = try SinkFailure.ofCache { () throws(StorageError) in
                try folders.has(done.digest, of: shard.sinkName)
            }
            if isThere { return folders.path(of: shard.sinkName) }
            var missing: ObjectStorageError?
            let found = try SinkFailure.ofCache { () throws(StorageError) -> ContentDigest? in
                try folders.receive(shard.sinkName, done.digest) { file in
                    do throws(ObjectStorageError) {
                        return try client.download(done.database, to: file, limit: done.size)
                    } catch {
                        missing = error
                        return nil
                    }
                }
            }
            if let missing {
                // A run may have replaced it since its name was read.
                if case .missing = missing.kind, former != done.digest {
                    former = done.digest
                    continue
                }
                try SinkFailure.ofRequests { () throws(ObjectStorageError) in throw missing }
            }
            guard found == done.digest else {
                throw SinkFailure(
                    "\(storage.location)/\(done.database): its bytes differ from its name",
                    isOfOne: true)
            }
            return folders.path(of: shard.sinkName)
        }
    }

    // MARK: Content

    /// - Throws: when the database of a shard is unusable, which does not concern the others.
    private func checkDatabase(_ path: String) throws(SinkFailure) {
        do throws(StorageError) {
            _ = try ContentFiles(of: CacheDirectory(path: path, access: .readOnly))
        } catch {
            throw SinkFailure(error.description, isOfOne: true)
        }
    }

    /// Gets the files that rows will name after the merge: the rows are decided first. A file that
    /// the sink lacks changes the decision, so it is made again without that file.
    private func getContent(
        of paths: ArraySlice<String>, _ counts: inout Counts
    ) throws(SinkFailure) {
        let lost = Monitor<Set<ContentDigest>>([])
        var known: Set<ContentDigest>
        repeat {
            known = lost.withLock { $0 }
            let (unavailable, now) = (known, now)
            let files = try SinkFailure.ofCache { () throws(StorageError) in
                try cache.filesToMerge(paths, besides: unavailable, at: now)
            }
            let work = SinkWork(files, counts: counts)
            try work.run(in: storage) { files, client throws(SinkFailure) in
                for file in files where !unavailable.contains(file.digest) {
                    guard !cache.content.hasWholeFile(file) else {
                        work.count { $0.present += 1 }
                        continue
                    }
                    let isStored = try client.get(file, into: cache.content)
                    if !isStored { lost.withLock { _ = $0.insert(file.digest) } }
                    work.count { counts in
                        if isStored {
                            counts.downloaded += 1
                            counts.downloadedBytes += file.size.bytes
                        } else {
                            counts.lost += 1
                        }
                    }
                }
                progress(work.counts)
            }
            counts = work.counts
        } while lost.withLock({ $0 }) != known
    }
}

extension ObjectClient {
    /// Gets a content file into a cache.
    ///
    /// - Returns: false if the sink lacks the file, or has other bytes under its name.
    func get(_ file: ContentFile, into content: ContentStore) throws(SinkFailure) -> Bool {
        var failure: ObjectStorageError?
        let isStored = try SinkFailure.ofCache { () throws(StorageError) in
            try content.receive(file) { number in
                do throws(ObjectStorageError) {
                    return try download(
                        SinkLayout.content(file.digest), to: number, limit: file.size)
                } catch {
                    failure = error
                    return nil
                }
            }
        }
        if let failure {
            switch failure.kind {
            case .missing, .damaged: return false
            case .cancelled, .other: break
            }
            try SinkFailure.ofRequests { () throws(ObjectStorageError) in throw failure }
        }
        return isStored
    }
}

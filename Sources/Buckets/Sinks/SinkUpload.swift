package import CacheStorage
import Hashing
package import PrefetchModel
import Reporting
import Threading
import Transfers

/// Copies a cache into a sink: the content files that the sink lacks, then the database, then the
/// shard's `_DONE.json`.
package struct SinkUpload: Sendable {
    private let storage: ObjectStorage
    private let shard: Shard
    /// A name that no content file of the sink follows; nil before the end of a listing.
    private let lastName = Monitor<String?>(nil)

    /// Copies the cache, which this process holds and does not change, with the file of the shards'
    /// plan and the run's summary for `_DONE.json`. `shard` is the cache's own. `tell` is called
    /// now and then, from several threads, with the counts so far and the number of files.
    ///
    /// - Throws: the first failure, after all threads have ended; without a new `_DONE.json`.
    package static func copy(
        _ directory: CacheDirectory, to storage: ObjectStorage, shard: Shard,
        plan: (bytes: [UInt8], digest: ContentDigest)?, at now: Timestamp, _ summary: RunSummary,
        telling tell: @escaping @Sendable (SinkCounts, _ files: Int) -> Void
    ) throws -> SinkCounts {
        let upload = SinkUpload(storage: storage, shard: shard)
        let copy = try DatabaseCopy.make(of: directory) { storage.isStopped }
        guard let copy else { throw ObjectStorageError(kind: .cancelled, description: "stopped") }
        let counts = try SinkCopying(copy.contentFiles, telling: tell).run(in: storage) { files in
            try upload.present(files)
        } copy: { file in
            try upload.send(file, of: copy)
        }
        guard counts.unusable == 0 else {
            let count = counts.unusable
            throw UserError(
                "\(count) content \(count == 1 ? "file is" : "files are") missing or damaged",
                hint: "`prefetch verify --repair`, then the next run downloads and copies them")
        }
        try upload.publish(copy, plan, at: now, summary)
        return counts
    }

    // MARK: Content

    /// The digests of the `files` that the sink has.
    ///
    /// Each page of the listing begins at the first file that is not decided. So there are never
    /// more pages than files, and about one for each batch where the sink has little else.
    private func present(_ files: [ContentFile]) throws -> Set<ContentDigest> {
        var present: Set<ContentDigest> = []
        var rest = files[...]
        var next: String?
        while let first = rest.first {
            let name = SinkLayout.content(first.digest)
            if let last = lastName.withLock({ $0 }), last.comesBefore(name) { break }
            // One digit less comes before the name.
            let page = try storage.list(
                SinkLayout.content, after: next ?? String(name.dropLast()),
                limit: min(1_000, max(64, 4 * rest.count)))
            var sizes: [ContentDigest: Int] = [:]
            for object in page.objects {
                // Other names are not ours.
                if let digest = SinkLayout.digest(ofContent: object.name) {
                    sizes[digest] = object.size
                }
            }
            let last = page.objects.last?.name ?? name
            // Other names may fill pages before the first file's.
            next = last.comesBefore(name) ? last : nil
            while let file = rest.first,
                page.isLast || !last.comesBefore(SinkLayout.content(file.digest))
            {
                // An object of another size is damaged, and sent again.
                if sizes[file.digest] == file.size.bytes {
                    present.insert(file.digest)
                }
                rest.removeFirst()
            }
            // Other shards may add files, which are then sent again.
            if page.isLast {
                lastName.withLock { known in
                    if known.map({ last.comesBefore($0) }) ?? true { known = last }
                }
            }
        }
        return present
    }

    /// - Returns: false if the file is missing or damaged.
    private func send(_ file: ContentFile, of copy: DatabaseCopy) throws -> Bool {
        do {
            return try copy.withContent(file) { number in
                try storage.put(
                    SinkLayout.content(file.digest),
                    .file(number, offset: 0, count: file.size.bytes),
                    digest: file.digest, mediaType: file.format.mediaType)
                return true
            } ?? false
        } catch let error as ObjectStorageError where error.kind == .damaged {
            return false
        }
    }

    // MARK: The database

    private func publish(
        _ copy: DatabaseCopy, _ plan: (bytes: [UInt8], digest: ContentDigest)?,
        at now: Timestamp, _ summary: RunSummary
    ) throws {
        // Without it (a first copy, or keys that may not read), databases replaced earlier stay.
        let former = try? storage.done(of: shard)
        if let (bytes, digest) = plan {
            try storage.put(
                SinkLayout.plan("\(digest)"), .bytes(bytes), digest: digest,
                mediaType: "application/json")
        }
        let digest = try copy.withFile { file in
            guard let digest = SHA256Hasher().digest(ofFile: file) else {
                throw ObjectStorageError(description: "the copy of the database cannot be read")
            }
            try storage.put(
                shard.database(digest), .file(file, offset: 0, count: copy.size.bytes),
                digest: digest,
                mediaType: "application/vnd.sqlite3")
            return digest
        }
        var replaced = former?.done.database.replaced ?? []
        if let former { replaced.append(SinkDone.Replaced(digest: former.digest, at: now)) }
        replaced.removeAll { $0.digest == digest }
        // Readers, and another attempt of the shard, may still use one that was replaced just now.
        let old = replaced.filter { SinkUpload.retention < now.timeSince($0.at) }
        replaced.removeAll(where: old.contains)
        let bytes = SinkDone(summary, digest: digest, size: copy.size, replaced: replaced).json
        try storage.put(
            shard.done, .bytes(bytes),
            digest: bytes.withUnsafeBytes { SHA256Hasher().digest(of: $0) },
            mediaType: "application/json")
        // Without the right, or after a stop, they stay.
        for database in old { try? storage.remove(shard.database(database.digest)) }
    }

    /// The time that a replaced database stays.
    private static let retention = Duration.seconds(3_600)
}

extension String {
    /// Whether it comes before another name in the order of a listing, by bytes.
    func comesBefore(_ other: String) -> Bool {
        utf8.lexicographicallyPrecedes(other.utf8)
    }
}

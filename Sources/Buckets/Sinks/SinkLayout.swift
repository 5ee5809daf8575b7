import CacheStorage
package import PrefetchModel
import Reporting

/// The names of objects below the prefix of a sink.
///
/// ```
/// content/ab/<sha256>             each content file of all shards, once
/// shards/3-of-8/<sha256>.sqlite   a shard's database
/// shards/3-of-8/_DONE.json        the summary of its last complete run, which names the database
/// plans/<sha256>.json             the plans of the shards
/// ```
///
/// A database is there before the `_DONE.json` that names it, and after the files that it names.
enum SinkLayout {
    /// Begins the names of all content files.
    static let content = "content/"
    static let shards = "shards/"
    static let doneFile = "_DONE.json"

    static func content(_ digest: ContentDigest) -> String {
        let name = digest.description
        return "\(content)\(name.prefix(2))/\(name)"
    }

    /// The digest in the name of a content file; nil for another name.
    static func digest(ofContent name: String) -> ContentDigest? {
        guard let slash = name.lastIndex(of: "/"),
            let digest = ContentDigest(hexadecimal: name[name.index(after: slash)...]),
            content(digest) == name
        else { return nil }
        return digest
    }

    static func plan(_ digest: String) -> String { "plans/\(digest).json" }
}

extension Shard {
    /// `3-of-8`
    var sinkName: String { "\(index)-of-\(count)" }
    private var folder: String { "\(SinkLayout.shards)\(sinkName)/" }
    var done: String { folder + SinkLayout.doneFile }

    func database(_ digest: ContentDigest) -> String { "\(folder)\(digest).sqlite" }

    /// The shard of a `_DONE.json` by its name; nil for another name.
    init?(done name: String) {
        let parts = name.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 3, "\(parts[0])/" == SinkLayout.shards,
            parts[2] == SinkLayout.doneFile
        else { return nil }
        let numbers = parts[1].split(separator: "-", omittingEmptySubsequences: false)
        guard numbers.count == 3, numbers[1] == "of", let index = Int(numbers[0]),
            let count = Int(numbers[2])
        else { return nil }
        self.init(index: index, count: count)
    }
}

/// A complete shard of a sink, by its `_DONE.json`.
package struct SinkShard: Sendable {
    let shard: Shard
    let done: SinkDone

    /// The digest of the plan of the shards; nil without one.
    var plan: String? { done.summary.shard?.plan }
    var digest: ContentDigest { done.database.digest }
    var size: ByteCount { done.database.size }
    /// The name of the database below the prefix.
    package var database: String { shard.database(digest) }
}

extension ObjectStorage {
    /// This program writes no larger summaries.
    private static let largestDone = ByteCount.mebibytes(4)
    /// A million objects of shards.
    private static let mostPages = 1_000

    /// The `_DONE.json` of a shard; an error of kind `missing` means that it is not complete.
    package func done(of shard: Shard) throws -> SinkShard {
        let bytes = try bytes(of: shard.done, limit: ObjectStorage.largestDone)
        guard let done = SinkDone(file: bytes), done.database.size.bytes <= ContentFile.largestSize
        else {
            throw ObjectStorageError(
                kind: .damaged,
                description: "\(location)/\(shard.done): not written by this program")
        }
        return SinkShard(shard: shard, done: done)
    }

    /// The complete shards of a sink, by number of shards and index.
    package func shards() throws -> [Shard] {
        var shards: [Shard] = []
        var last = SinkLayout.shards
        for number in 1... {
            guard number <= ObjectStorage.mostPages else {
                throw ObjectStorageError(
                    description: "\(location)/\(SinkLayout.shards): too many objects")
            }
            let page = try list(SinkLayout.shards, after: last, limit: 1_000)
            shards += page.objects.compactMap { Shard(done: $0.name) }
            guard !page.isLast, let next = page.objects.last else { break }
            last = next.name
        }
        return shards.sorted { ($0.count, $0.index) < ($1.count, $1.index) }
    }
}

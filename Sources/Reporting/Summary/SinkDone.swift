package import PrefetchModel

/// The `_DONE.json` of a shard in a bucket: the summary of its run, with the member `database`.
package struct SinkDone: Sendable {
    package var summary: RunSummary
    package var database: Database

    /// The copy of a shard's database.
    package struct Database: Sendable {
        package var digest: ContentDigest
        package var size: ByteCount
        /// Databases that are not removed yet.
        package var replaced: [Replaced]
    }

    /// A database that a later one has replaced.
    package struct Replaced: Hashable, Sendable {
        package var digest: ContentDigest
        package var at: Timestamp

        package init(digest: ContentDigest, at: Timestamp) {
            self.digest = digest
            self.at = at
        }
    }
}

extension SinkDone {
    package init(
        _ summary: RunSummary, digest: ContentDigest, size: ByteCount, replaced: [Replaced]
    ) {
        let database = Database(digest: digest, size: size, replaced: replaced)
        self.init(summary: summary, database: database)
    }

    /// Reads a file; nil for anything else.
    package init?(file: [UInt8]) {
        guard let read = SinkDone.read(file, type: "summary"), !read.isDamaged,
            let database = read.draft.database.database
        else { return nil }
        self.init(summary: read.draft.summary.summary, database: database)
    }
}

extension SinkDone: JSONRecord {
    package struct DoneDraft {
        var summary = RunSummary.Draft()
        var database = Database.Draft()
    }

    package static var emptyDraft: DoneDraft { DoneDraft() }
    package static var sample: SinkDone { SinkDone(summary: .sample, database: .sample) }

    package func visitMembers(_ members: inout some JSONVisitor, into draft: inout DoneDraft) {
        summary.visitMembers(&members, into: &draft.summary)
        members.record("database", database) { draft.database = $0 }
    }
}

extension SinkDone.Database: JSONRecord {
    package struct DatabaseDraft {
        var digest: ContentDigest?
        var size: ByteCount?
        var replaced: [SinkDone.Replaced.Draft] = []

        var database: SinkDone.Database? {
            guard let digest, let size else { return nil }
            var database = SinkDone.Database(digest: digest, size: size, replaced: [])
            for draft in replaced {
                guard let digest = draft.digest, let time = draft.at else { return nil }
                database.replaced.append(SinkDone.Replaced(digest: digest, at: time))
            }
            return database
        }
    }

    package static var emptyDraft: DatabaseDraft { DatabaseDraft() }
    package static let sample = SinkDone.Database(digest: .zero, size: ByteCount(0), replaced: [])

    package func visitMembers(_ members: inout some JSONVisitor, into draft: inout DatabaseDraft) {
        members.digest("sha256", digest) { draft.digest = $0 }
        members.add("bytes", size.bytes) { draft.size = ByteCount($0) }
        members.records("replaced", replaced) { draft.replaced = $0 }
    }
}

extension SinkDone.Replaced: JSONRecord {
    package typealias Draft = (digest: ContentDigest?, at: Timestamp?)

    package static var emptyDraft: Draft { (nil, nil) }
    package static let sample = SinkDone.Replaced(digest: .zero, at: Timestamp(milliseconds: 0))

    package func visitMembers(_ members: inout some JSONVisitor, into draft: inout Draft) {
        members.digest("sha256", digest) { draft.digest = $0 }
        members.time("at", at) { draft.at = $0 }
    }
}

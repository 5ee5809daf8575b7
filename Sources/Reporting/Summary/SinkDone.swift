package import PrefetchModel

/// The file `_DONE.json` of a shard in a bucket: the summary of its run, with the member
/// `database`.
package struct SinkDone: Sendable {
    package var summary: RunSummary
    package var database: Database

    package init(_ summary: RunSummary, _ database: Database) {
        self.summary = summary
        self.database = database
    }

    /// The copy of a shard's database.
    package struct Database: Sendable {
        package var digest: ContentDigest
        package var size: ByteCount
        /// Databases that are not removed yet.
        package var replaced: [Replaced]

        package init(digest: ContentDigest, size: ByteCount, replaced: [Replaced]) {
            self.digest = digest
            self.size = size
            self.replaced = replaced
        }
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

    /// Reads a file; nil for anything else.
    package init?(file: [UInt8]) {
        guard let draft = SinkDone.read(file, type: "summary"),
            let digest = draft.database.digest, let size = draft.database.size
        else { return nil }
        summary = draft.summary.summary
        database = Database(digest: digest, size: size, replaced: draft.database.replaced)
    }
}

extension SinkDone: JSONRecord {
    package struct Draft {
        var summary = RunSummary.Draft()
        var database = Database.Draft()
    }

    package static var emptyDraft: Draft { Draft() }
    package static var sample: SinkDone { SinkDone(.sample, .sample) }

    package func visitMembers(
        _ members: inout some JSONMemberVisitor, reading draft: inout Draft
    ) {
        summary.visitMembers(&members, reading: &draft.summary)
        members.record("database", database) { draft.database = $0 }
    }
}

extension SinkDone.Database: JSONRecord {
    package struct Draft {
        var digest: ContentDigest?
        var size: ByteCount?
        var replaced: [SinkDone.Replaced] = []
    }

    package static var emptyDraft: Draft { Draft() }
    package static let sample = SinkDone.Database(digest: .zero, size: ByteCount(0), replaced: [])

    package func visitMembers(
        _ members: inout some JSONMemberVisitor, reading draft: inout Draft
    ) {
        members.digest("sha256", digest) { draft.digest = $0 }
        members.number("bytes", size.bytes) { draft.size = ByteCount($0) }
        members.records("replaced", replaced) {
            draft.replaced = $0.compactMap { digest, at in
                digest.flatMap { digest in at.map { SinkDone.Replaced(digest: digest, at: $0) } }
            }
        }
    }
}

extension SinkDone.Replaced: JSONRecord {
    package typealias Draft = (digest: ContentDigest?, at: Timestamp?)

    package static var emptyDraft: Draft { (nil, nil) }
    package static let sample = SinkDone.Replaced(digest: .zero, at: Timestamp(milliseconds: 0))

    package func visitMembers(
        _ members: inout some JSONMemberVisitor, reading draft: inout Draft
    ) {
        members.digest("sha256", digest) { draft.digest = $0 }
        members.time("at", at) { draft.at = $0 }
    }
}

package import PrefetchModel

/// The result of a shard's run, read from a file.
package struct ShardSummary: Sendable {
    package let shard: ShardResult
    /// Why the run is not complete: `ended with status 2`; nil if every entry had its turn.
    package let end: String?
    /// The lines of the lists, with those of other shards.
    package let lines: Int

    /// A database that a later one has replaced in a sink, and when.
    package typealias ReplacedDatabase = (sha256: String, at: Timestamp)

    /// The database that the `_DONE.json` of a sink names, and those that it has replaced; nil if
    /// it names none.
    package static func database(
        in file: [UInt8]
    ) -> (sha256: String, bytes: Int, replaced: [ReplacedDatabase])? {
        let reader = JSONMembers()
        let members = file.withUnsafeBytes(reader.object)
        guard members["type"]?.text == "summary",
            let database = members["database"]?.members(by: reader),
            let digest = database["sha256"]?.text, let bytes = database["bytes"]?.integer
        else { return nil }
        let replaced = (database["replaced"]?.elements(by: reader) ?? []).compactMap { element in
            let members = element.members(by: reader)
            return members["sha256"]?.text.flatMap { digest in
                members["at"]?.time.map { (digest, $0) }
            }
        }
        return (digest, bytes, replaced)
    }

    /// Reads the output of `--summary json`, or the last line of a report.
    ///
    /// Nil if there is no summary, as in the report of a killed run, or it is not that of a shard.
    package init?(_ file: [UInt8]) {
        let texts = file.split(separator: UInt8(ascii: "\n"))
        guard let last = texts.last else { return nil }
        let reader = JSONMembers()
        let members = last.withUnsafeBytes(reader.object)
        guard members["type"]?.text == "summary", let status = members["exit_status"]?.integer,
            let shard = members["shard"]?.members(by: reader), let index = shard["index"]?.integer,
            let count = shard["count"]?.integer, let place = Shard(index: index, count: count)
        else { return nil }
        self.shard = ShardResult(place, plan: shard["plan"]?.text)
        lines = (members["entries"]?.integer ?? 0) + (shard["other_entries"]?.integer ?? 0)
        let cancelled = members["outcomes"]?.members(by: reader)["cancelled"]?.integer ?? 0
        if let limit = members["ended_by"]?.text {
            end = "was ended by --\(limit)"
        } else if status > 1 {
            end = "ended with status \(status)"
        } else {
            end = cancelled > 0 ? "has \(cancelled) cancelled entries" : nil
        }
    }
}

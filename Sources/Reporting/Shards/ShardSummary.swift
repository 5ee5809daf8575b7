package import PrefetchModel

/// The result of a shard's run, read from a file.
package struct ShardSummary: Sendable {
    package let shard: ShardResult
    package let exitStatus: Int

    /// Reads the output of `--summary json`, or the last line of a report.
    ///
    /// Nil if there is no summary, as in the report of a killed run, or it is not that of a shard.
    package init?(_ file: [UInt8]) {
        let lines = file.split(separator: UInt8(ascii: "\n"))
        guard let last = lines.last else { return nil }
        let reader = JSONMembers()
        let members = last.withUnsafeBytes(reader.object)
        guard members["type"]?.text == "summary", let status = members["exit_status"]?.integer,
            let shard = members["shard"]?.members(by: reader), let index = shard["index"]?.integer,
            let count = shard["count"]?.integer
        else { return nil }
        exitStatus = status
        self.shard = ShardResult(index: index, count: count, plan: shard["plan"]?.text)
    }
}

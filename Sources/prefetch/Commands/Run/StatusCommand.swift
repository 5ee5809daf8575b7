import ArgumentParser
import CacheStorage
import Glibc
import PrefetchModel
import Reporting

struct StatusCommand: SearchingCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show a running run from outside.",
        discussion: """
            Prints the process that holds the cache, the counts, rates and the time left of its run, \
            and the hosts with most responses. A run writes them once a second. Anyone who may \
            read the cache may watch.

            Exit status: 0 a process holds the cache, 1 none does, or there is no cache, 2 the cache \
            cannot be read, 64 wrong usage.

            Examples:
              prefetch status
              prefetch status --watch
              prefetch status --json | jq .entries_per_second
            """)

    @OptionGroup var cache: CacheOptions

    @Flag(help: "Print the status each second until the run ends.")
    var watch = false

    @Flag(help: "Print one JSON object, with --watch one each second.")
    var json = false

    func run() throws {
        let path = try cache.path()
        let directory = try CacheDirectory(path: path, access: .readOnly)
        guard try write(directory) else {
            throw UserError(.incomplete, "\(path): no run holds this cache")
        }
        while watch {
            sleep(1)
            guard try write(directory) else { return }
        }
    }

    /// Writes the status.
    ///
    /// - Returns: false if no process holds the cache.
    private func write(_ directory: CacheDirectory) throws -> Bool {
        guard let (holder, content) = StatusFile.read(in: directory) else { return false }
        let head =
            "held by pid \(holder.process) on \(printable(holder.host)) since \(holder.since)"
        try LineWriter.print(
            json
                ? [content?.json ?? JSONObject(holder).description]
                : [head] + (content?.text ?? []).map { printable($0) })
        return true
    }
}

extension JSONObject {
    /// The status of a holder that has written no progress: its run is young, or it is another
    /// command.
    fileprivate init(_ holder: LockHolder) {
        self.init()
        add("type", "status")
        add("schema_version", 1)
        add("pid", Int(holder.process))
        add("started_at", holder.since)
    }
}

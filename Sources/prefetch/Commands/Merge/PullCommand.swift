import ArgumentParser
import Buckets
import CacheStorage
import PrefetchModel
import Reporting
import Threading

struct PullCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pull",
        abstract: "Merge the caches of a bucket into this one.",
        discussion: """
            Gets the caches that `run --sink` has copied to a bucket: every shard with a _DONE.json, \
            and the content files that this cache lacks. Then merges them, as `prefetch merge` does. \
            Each file is compared with its digest. A pull that was interrupted goes on where it \
            stopped.

            Exit status: 0 pulled, 1 the bucket lacks files or a database is damaged, and everything \
            else was merged, 2 the bucket cannot be read or the cache not be used, 3 the --deadline \
            has passed, 64 wrong usage, 75 another process holds the cache.

            Examples:
              prefetch pull s3://images/main
              AWS_ENDPOINT_URL_S3=http://minio:9000 prefetch pull s3://images/main --cache-dir all
            """)

    @Argument(
        help: .value("s3://bucket/prefix", "The bucket and prefix, as in --sink."))
    var sink: ObjectLocation

    @OptionGroup var options: ChangeOptions
    @OptionGroup var bucket: Flags<BucketFlags>

    @Flag(help: "Print the result as one JSON object.")
    var json = false

    @Flag(name: .shortAndLong, help: "Print nothing but problems.")
    var quiet = false

    func run() throws {
        let start = ContinuousClock.now
        let path = try options.cache.path()
        let storage = try BucketFlags.storage(sink, bucket)
        let stop = Monitor(Stop())
        let (report, pulled): (MergeReport, SinkPull.Pulled)
        do {
            (report, pulled) = try pull(from: storage, to: path, stop)
        } catch let error as any ReportableError {
            if let signal = stop.withLock({ $0.signal }) { ProcessEnd.die(of: signal) }
            throw error
        }
        MergeText.tellDamage(report)
        for problem in pulled.unreadable {
            StandardError.message(problem, hint: "run that shard again with --sink")
        }
        let lost = report.lostFiles
        if lost > 0 {
            StandardError.message(
                "\(sink): \(counted(lost, "file")) \(lost == 1 ? "is" : "are") missing or damaged",
                hint:
                    "`prefetch run` downloads these images; `run --sink` sends missing files, and "
                    + "damaged ones after they are deleted from the bucket")
        }
        let counts = pulled.counts
        if json {
            var object = JSONObject(report, elapsed: .now - start)
            object.add("downloaded", counts.copied)
            object.add("bytes_downloaded", counts.copiedBytes)
            try LineWriter.print(object)
        } else if !quiet {
            let files = "\(counted(counts.copied, "file")) (\(ByteCount(counts.copiedBytes)))"
            StandardError.write(
                "prefetch: \(printable(path)): \(files) from \(sink); "
                    + "\(counted(report.images, "image")), \(report.added) new, "
                    + "\(report.updated) updated")
        }
        if !report.isComplete || !pulled.unreadable.isEmpty {
            throw UserError(.incomplete, "")
        }
    }

    private struct Stop {
        var signal: Int32?
        /// Whether the files are there. A merge changes all or nothing, and can be repeated.
        var isMerging = false
    }

    private func pull(
        from storage: ObjectStorage, to path: String, _ stop: Monitor<Stop>
    ) throws -> (MergeReport, SinkPull.Pulled) {
        let now = WallClock.now()
        let held = HeldCache(path: path, lock: bucket.limited(options.lock), isQuiet: quiet)
        let opened = try held.openForMerge(at: now)
        // Before, a signal ends the process, also while it waits for the cache.
        try SignalWatcher().hand(to: { signal in
            let isMerging = stop.withLock { stop in
                stop.signal = signal
                return stop.isMerging
            }
            if isMerging { ProcessEnd.die(of: signal) }
            storage.stop()
        })
        let ownsNote = try opened.beginAdoption(at: now)
        let isWanted = !quiet && StandardError.isCapableTerminal
        let pulled = try SinkPull.download(from: storage, into: opened, at: now) { counts in
            guard isWanted else { return }
            StandardError.write("prefetch: \(counted(counts.copied, "file")) downloaded")
        }
        let signal = stop.withLock { stop in
            stop.isMerging = true
            return stop.signal
        }
        if let signal { ProcessEnd.die(of: signal) }
        // Without any, a merge would rewrite the database for nothing.
        if pulled.folders.isEmpty, let first = pulled.unreadable.first {
            throw UserError(first, hint: "run that shard again with --sink")
        }
        var report = try opened.merge(
            pulled.folders, ownsNote: ownsNote, workers: max(1, AvailableProcessors.count - 1),
            waiting: held.lock.waiting, at: now)
        // The files of rows that lose were not requested.
        report.lostFiles = pulled.lost.count
        PulledDatabases.remove(in: opened.directory)
        return (report, pulled)
    }
}

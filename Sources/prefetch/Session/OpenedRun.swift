import Buckets
import CacheStorage
import Pipeline
import PrefetchModel
import Reporting
import Threading

/// A run with its open cache and outputs.
struct OpenedRun {
    let session: RunSession
    let configuration: RunConfiguration
    let cache: OpenCache
    let seed: SeedCache?
    let output: RunOutput

    private var command: RunCommand { session.command }
    private var reporter: RunReporter { output.reporter }

    /// Runs to the end, and copies the cache to the bucket.
    func execute() -> RunSummary {
        let opening: any ListOpening =
            command.processing.freshness.offline
            ? StoredLists(cache.directory)
            : ListFetcher(configuration, in: cache.directory, wallClock: WallClock.now)
        let control = RunControl()
        let stop = Monitor<Int32?>(nil)
        session.signals.hand(to: { [storage = session.storage] signal in
            stop.withLock { $0 = signal }
            control.stop(signal: signal)
            opening.cancel()
            storage?.stop()
        })
        let log = ListLog(output, command)
        var lists = session.lists
        lists.report = log.receive
        lists.allowsEmptyLists = command.result.allowsEmptyLists
        let startedAt = WallClock.now()
        do throws(UserError) {
            try lists.open(by: opening)
        } catch {
            var summary = RunSummary(
                error, startedAt: startedAt, opening.counts, in: output.cachePath)
            if let signal = stop.withLock({ $0 }) {
                summary.stop(by: signal)
            } else if command.showing.summary != .text {
                error.report()
            }
            return summary
        }
        var summary = run(lists, control)
        if let counts = opening.counts, counts != ListCounts() {
            summary.lists = counts
            summary.elapsed = WallClock.now().timeSince(startedAt)
            summary.startedAt = startedAt
        }
        log.conclude(&summary, session.shard?.result)
        if let storage = session.storage {
            command.copy(cache.directory, to: storage, of: session.shard, &summary, reporter)
            if let signal = stop.withLock({ $0 }) { summary.stop(by: signal) }
        }
        if let failure = summary.snapshotFailure, !command.showing.quiet {
            reporter.message("\(failure); no database snapshot was taken; the last one is kept")
        }
        return summary
    }

    private func run(_ lists: ManifestSequence, _ control: RunControl) -> RunSummary {
        tellOtherFlags()
        let run = Run(
            configuration: configuration, cache: cache, seed: seed, observer: reporter,
            control: control, wallClock: WallClock.now)
        session.signals.onStatusRequest { [reporter] in reporter.showStatus() }
        var summary = run(
            lists,
            readsAheadOfStarts: command.processing.order.order != .fifo && lists.isRegularFiles)
        output.status.remove()
        summary.seedCache = command.disk.seedCache
        if let failure = seed?.failure, !command.showing.quiet {
            reporter.message("--seed-cache: \(failure.description); not used any more")
        }
        return summary
    }

    private func tellOtherFlags() {
        // An error is dropped: the run itself finds damage, and has it repaired.
        guard !command.showing.quiet, !command.processing.responses.isWarmingOnly,
            let main = configuration.images.variants.first(where: { $0.name == .main }),
            let count = try? cache.log.imagesChanged(byMain: main.recipeText), count > 0
        else { return }
        reporter.message(
            "flags changed since the last run: listed images among \(counted(count, "image")) "
                + "will be made again, from stored originals or by a download")
    }
}

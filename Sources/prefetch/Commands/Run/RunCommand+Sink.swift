import Buckets
import CacheStorage
import Hashing
import Pipeline
import PrefetchModel
import Reporting
import Threading

// The copy of the cache in a bucket

extension RunCommand {
    /// The bucket, after a first request: wrong names and keys must fail before a run of hours.
    func openedSink(_ configuration: RunConfiguration) throws -> ObjectStorage? {
        guard let location = sink.sink else { return nil }
        let storage = try SinkFlags.storage(location, sink.credentials, configuration)
        _ = try storage.list("", after: "", limit: 1)
        return storage
    }

    /// Copies the cache after a complete run, and notes the result in the summary.
    func copy(
        _ cache: CacheDirectory, to storage: ObjectStorage, of shard: ShardChoice?,
        _ summary: inout RunSummary, _ reporter: RunReporter
    ) {
        var result = SinkResult(url: "\(storage.location)")
        defer { summary.sink = result }
        guard summary.exitStatus < 2, summary.endedBy == nil else {
            if summary.stoppedBySignal == nil {
                reporter.message("\(storage.location): not written, since the run is not complete")
            }
            return
        }
        let isVerbose = showing.verbose
        let upload = SinkUpload(to: storage, shard: shard?.shard ?? .whole) { counts, files in
            guard isVerbose else { return }
            reporter.message(
                "\(storage.location): \(counts.copied + counts.present) of \(files) files")
        }
        do {
            let counts = try upload.copy(
                cache, plan: shard?.planFile, at: WallClock.now(), summary)
            result.uploaded = counts.copied
            result.uploadedBytes = counts.copiedBytes
            result.present = counts.present
            result.isDone = true
        } catch let error as ObjectStorageError where error.kind == .cancelled {
            return
        } catch let error as ObjectStorageError where error.kind == .late {
            summary.endAtDeadline()
            reporter.message(error.description)
        } catch {
            let error = UserError(reporting: error)
            summary.exitStatus = 2
            summary.fatalMessage = error.description
            summary.fatalHint = error.hint
            // The text summary names it.
            if showing.summary != .text {
                reporter.message(error.description, hint: error.hint)
            }
        }
    }
}

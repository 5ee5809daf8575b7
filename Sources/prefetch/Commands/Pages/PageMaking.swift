import CacheStorage
import Hashing
import Pages
import PrefetchModel
import Reporting
import Upkeep

extension ReportPage {
    /// Makes the page of a run. Without `previous`, the run before it is looked for in the cache's
    /// log. `replaced` are the files of images that the run has replaced; nil after the run.
    init(
        _ record: RunRecord, after previous: PreviousRun?, cache catalog: CacheCatalog?,
        replaced: HeldFiles? = nil, at now: Timestamp
    ) throws(StorageError) {
        self.init(record, at: now)
        self.previous = previous
        var previews: Previews?
        if let catalog {
            let start = now.advanced(by: .zero - .seconds(ReportPage.growthDays * 86400))
            cache = try catalog.outlook(ofRunsSince: start)
            if previous == nil { self.previous = try ReportPage.run(before: record, in: catalog) }
            previews = try Previews(of: catalog, at: now)
        }
        for result in record.pictures.changed + record.pictures.new {
            addImages(of: result, previews, replaced)
        }
    }

    private mutating func addImages(
        of result: EntryResult, _ previews: Previews?, _ held: HeldFiles?
    ) {
        if let image = result.stored {
            add(
                previews?.thumbnail(of: image), orThumbHash: result.placeholder?.thumbHash,
                for: image.digest)
        }
        guard let replaced = result.replaced else { return }
        let bytes = held?.bytes(of: replaced.image, hasher: SHA256Hasher())
        let thumbnail =
            bytes.flatMap { previews?.thumbnail(of: replaced.image, bytes: $0) }
            ?? previews?.thumbnail(of: replaced.image)
        add(thumbnail, orThumbHash: replaced.thumbHash, for: replaced.image.digest)
    }

    private mutating func add(
        _ thumbnail: [UInt8]?, orThumbHash hash: [UInt8]?, for digest: ContentDigest
    ) {
        if let thumbnail {
            images.add(PageImage(thumbnail, isBlurred: false), for: digest)
        } else if let picture = hash.flatMap({ Previews.picture(ofThumbHash: $0) }) {
            images.add(PageImage(picture, isBlurred: true), for: digest)
        }
    }

    /// The last earlier run of the same lists that ended; nil if the log has none.
    private static func run(
        before record: RunRecord, in catalog: CacheCatalog
    ) throws(StorageError) -> PreviousRun? {
        guard let start = record.ending?.summary.startedAt else { return nil }
        // Whole seconds: a report has no milliseconds.
        let runs = try catalog.runs().drop {
            $0.startedAt.milliseconds / 1000 > start.milliseconds / 1000
        }
        guard let own = runs.first else { return nil }
        for run in runs.dropFirst() where run.manifest == own.manifest {
            if let counters = run.counters { return (run.startedAt, run.duration, counters) }
        }
        return nil
    }
}

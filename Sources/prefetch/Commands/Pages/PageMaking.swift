import CacheStorage
import Pages
import PrefetchModel
import Reporting
import Upkeep

extension ReportPage {
    /// Makes the page of a run.
    ///
    /// - Parameters:
    ///   - record: The results of the run.
    ///   - previous: The run before it; nil to look for one in the cache's log.
    ///   - catalog: The cache of the run; nil without it.
    ///   - now: The wall clock.
    /// - Throws: When the cache cannot be read.
    init(
        _ record: RunRecord, after previous: PreviousRun?, cache catalog: CacheCatalog?,
        at now: Timestamp
    ) throws(StorageError) {
        self.init(record, at: now)
        self.previous = previous
        var previews: Previews?
        if let catalog {
            let start = now.advanced(by: .zero - .seconds(CacheOutlook.days * 86400))
            cache = CacheOutlook(try catalog.outlook(ofRunsSince: start), at: now)
            if previous == nil { self.previous = try PreviousRun(before: record, in: catalog) }
            previews = try Previews(of: catalog, at: now)
        }
        for result in record.pictures.changed + record.pictures.new {
            addImages(of: result, previews)
        }
    }

    private mutating func addImages(of result: EntryResult, _ previews: Previews?) {
        if let image = result.stored {
            if let thumbnail = previews?.thumbnail(of: image) {
                images.add(PageImage(.jpeg, thumbnail, isBlurred: false), for: image.digest)
            } else {
                addPreview(result.placeholder?.thumbHash, for: image.digest)
            }
        }
        // The replaced file is removed soon after the download.
        if let replaced = result.replaced { addPreview(replaced.thumbHash, for: replaced.digest) }
    }

    private mutating func addPreview(_ hash: [UInt8]?, for digest: ContentDigest) {
        guard let hash, let picture = Previews.picture(ofThumbHash: hash) else { return }
        images.add(PageImage(.png, picture, isBlurred: true), for: digest)
    }
}

extension ReportPage.PreviousRun {
    /// The last earlier run of the same lists that ended; nil if the log has none.
    fileprivate init?(
        before record: RunRecord, in catalog: CacheCatalog
    ) throws(StorageError) {
        guard let start = record.ending?.summary.startedAt else { return nil }
        // Whole seconds: a report has no milliseconds.
        let runs = try catalog.runs().drop {
            $0.startedAt.milliseconds / 1000 > start.milliseconds / 1000
        }
        guard let own = runs.first else { return nil }
        for run in runs.dropFirst() where run.manifest == own.manifest {
            guard let counters = run.counters else { continue }
            self.init(startedAt: run.startedAt, elapsed: run.duration, counters: counters)
            return
        }
        return nil
    }
}

extension CacheOutlook {
    fileprivate init(_ outlook: CacheCatalog.Outlook, at now: Timestamp) {
        var expiries = ExpiryForecast(at: now)
        for (day, images) in outlook.expiries { expiries.note(day: day, count: images) }
        self.init(
            images: outlook.images, contentBytes: outlook.contentBytes, expiries: expiries,
            storedByDay: outlook.storedByDay)
    }
}

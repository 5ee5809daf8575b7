package import CacheStorage
package import HTTPSemantics
package import PrefetchModel
import Scheduling

/// How entries wait.
package struct QueueRules: Sendable {
    package var order: StartOrder = .fifo
    /// Entries that wait in memory; those that start last wait in a temporary file.
    package var capacity = 10_000
    /// Where that file is made; nil for the cache's own folder of temporary files.
    package var temporaryFolder: String?
}

/// How hosts are asked.
package struct HostRules: Sendable {
    /// Transfers at once.
    package var jobs = 32
    /// Transfers at once at one host.
    package var concurrency = 8
    /// The least time between two starts at one host.
    package var interval: Duration = .zero
    /// Retries of an entry that failed in a way that time may mend.
    package var maximumRetries = 3
    /// The longest wait before an entry's first retry; it doubles with each one, up to a minute.
    package var retryDelay: Duration = .seconds(1)
    /// A host that asks to be left alone for longer is given up in this run.
    package var longestRetryAfter: Duration = .seconds(300)
    /// A host that gives no answer for so long, or only answers of overload, is given up in this run.
    package var timeout: Duration = .seconds(60)

    var backoff: Backoff { Backoff(base: retryDelay) }

    var pacing: HostPacing.Rules {
        HostPacing.Rules(
            concurrency: concurrency, interval: interval, longestCoolDown: longestRetryAfter,
            backoff: backoff, patience: timeout)
    }
}

/// What one transfer may take, and where it may lead.
package struct TransferLimits: Sendable {
    package var connectTimeout: Duration = .seconds(10)
    package var stallTimeout: Duration = .seconds(15)
    package var totalTimeout: Duration = .seconds(300)
    package var maximumBodySize: ByteCount = .mebibytes(64)
    package var maximumRedirects = 10
    /// Follows redirects from https to http.
    package var allowsDowngrade = false
}

/// What is made of images, and what that may take.
package struct ImageRules: Sendable {
    /// What is made of each image, `main` among it.
    package var variants = VariantSet(main: Recipe())
    /// For the recipe `original`; the others decode.
    package var check = SourceCheck.decode
    /// Which are wanted.
    package var filter = ImageFilter()
    /// What becomes of formats that are not decoded.
    package var otherFormats = OtherFormats.store
    /// Whether what is shown before an image is loaded is made along with it.
    package var makesPlaceholders = true
    /// Width × height, from the header.
    package var maximumPixels = 100_000_000
    /// Processor time for decoding and encoding one image.
    package var maximumDecodeTime: Duration = .seconds(30)
    /// The budget over all stages: a quarter for bodies, the rest for pixels.
    package var memory: ByteCount = .mebibytes(256)

    package init() {}

    /// The share of ``memory`` for bodies that arrive or wait for a codec worker.
    var bodyBudget: ByteCount { MemoryShares.bodies(of: memory) }
    var pixelBudget: ByteCount { MemoryShares.pixels(of: memory) }

    /// What an entry asks for.
    func variants(of extras: EntryExtras?) -> VariantSet {
        variants.applying(extras)
    }
}

/// How long what is stored is used without asking.
package struct LifetimeRules: Sendable {
    /// How long images are fresh whatever their origins say; nil leaves it to them.
    package var forced: Duration?
    package var minimum: Duration?
    package var maximum: Duration?
    /// The lifetime when the origin says nothing, and the ceiling of heuristic ones.
    package var fallback: Duration = .seconds(7 * 86400)
    /// What expires within this time counts as stale.
    package var ahead: Duration = .zero
    package var refresh = RefreshMode.stale
    /// No network: what is not warm is left out.
    package var isOffline = false

    /// The rules of an entry: its own lifetime goes before the run's.
    package func rules(_ extras: EntryExtras?) -> Freshness.Rules {
        Freshness.Rules(
            forced: extras?.timeToLive ?? forced, minimum: minimum, maximum: maximum,
            defaultLifetime: fallback, ahead: ahead)
    }
}

/// How files and rows are written.
package struct StoringRules: Sendable {
    /// Whether content files get extended attributes.
    package var writesFileAttributes = false
    package var durability: MetadataWriter.Durability = .normal
    /// What the content files may take on the disk; nil for any.
    package var maximumSize: ByteCount?
    /// By which rules the run prunes at its end, at most once a day; nil for none.
    package var pruning: PruneRules?
    package var snapshots = SnapshotRule.daily
}

package import CacheStorage
import HTTPSemantics
import Hashing
package import PrefetchModel
import Scheduling
import Transfers

/// What one run is asked to do; every default is the command line's.
package struct RunConfiguration: Sendable {
    package var order: StartOrder = .fifo
    /// Entries that wait in memory; those that start last wait in a temporary file.
    package var queueCapacity = 10_000
    /// Where that file is made; nil for the cache's own folder of temporary files.
    package var temporaryFolder: String?
    /// Transfers at once.
    package var jobs = 32
    /// Transfers at once at one host.
    package var hostConcurrency = 8
    /// The least time between two starts at one host.
    package var hostInterval: Duration = .zero
    /// Retries of an entry that failed in a way that time may mend.
    package var maximumRetries = 3
    /// The longest wait before an entry's first retry; it doubles with each one, up to a minute.
    package var retryDelay: Duration = .seconds(1)
    /// A host that asks to be left alone for longer is given up in this run.
    package var longestRetryAfter: Duration = .seconds(300)
    /// A host that gives no answer for so long, or only answers of overload, is given up in this run.
    package var hostTimeout: Duration = .seconds(60)
    /// Threads that decode and encode.
    package var codecWorkers: Int
    private var fittedDescriptors: DescriptorBudget?
    /// What is made of each image, `main` among it.
    package var variants = VariantSet(main: Recipe())
    /// That of `main`.
    package var recipe: Recipe {
        get { variants.primary.recipe }
        set { variants.setPrimaryRecipe(newValue) }
    }
    /// For the recipe `original`; the others decode.
    package var check = SourceCheck.decode
    package var connectTimeout: Duration = .seconds(10)
    package var stallTimeout: Duration = .seconds(15)
    package var totalTimeout: Duration = .seconds(300)
    package var maximumBodySize: ByteCount = .mebibytes(64)
    /// Width × height, from the header.
    package var maximumPixels = 100_000_000
    /// Processor time for decoding and encoding one image.
    package var maximumDecodeTime: Duration = .seconds(30)
    /// The budget over all stages: a quarter for bodies, the rest for pixels.
    package var memory: ByteCount = .mebibytes(256)
    package var maximumRedirects = 10
    /// Follows redirects from https to http.
    package var allowsDowngrade = false
    /// How long images are fresh whatever their origins say; nil leaves it to them.
    package var lifetime: Duration?
    package var minimumLifetime: Duration?
    package var maximumLifetime: Duration?
    /// The lifetime when the origin says nothing, and the ceiling of heuristic ones.
    package var defaultLifetime: Duration = .seconds(7 * 86400)
    /// What expires within this time counts as stale.
    package var ahead: Duration = .zero
    package var refresh = RefreshMode.stale
    /// No network: what is not warm is left out.
    package var isOffline = false
    /// Asks for what is blocked, too.
    package var retriesFailed = false
    /// Whether content files get extended attributes.
    package var writesFileAttributes = false
    package var durability: MetadataWriter.Durability = .normal
    /// Failures that still count as success.
    package var tolerance: FailureTolerance = .count(0)
    package var countedFailures = CountedFailures.any
    package var userAgent: String
    /// What requests carry, and the way that they take.
    package var requests = RequestSettings()
    /// The manifests' names, for the run log.
    package var manifests: [String]

    /// There are as many codec workers as the caller sees cores.
    package init(userAgent: String, manifests: [String], codecWorkers: Int) {
        self.userAgent = userAgent
        self.manifests = manifests
        self.codecWorkers = codecWorkers
    }

    /// The share of ``memory`` for bodies that arrive or wait for a codec worker.
    ///
    /// Bodies and pixels have pools of their own: if a decode could take what bodies hold, all
    /// workers might wait for memory that only they can free.
    var bodyBudget: ByteCount { ByteCount(memory.bytes / 4) }
    var pixelBudget: ByteCount { ByteCount(memory.bytes - bodyBudget.bytes) }

    /// Threads that read manifests. Beyond a few of them, reading, which one does at a time, is what
    /// takes the time.
    var readers: Int { descriptors.readers }

    /// Folders of the content that are kept open.
    package var openFolders: Int { max(1, descriptors.folders) }

    /// Connections that are kept for the next transfers.
    var keptConnections: Int { max(1, descriptors.connections) }

    private var descriptors: DescriptorBudget {
        fittedDescriptors ?? DescriptorBudget(codecWorkers: codecWorkers, transfers: jobs)
    }

    /// The soft limit of open files to ask for: the usual 1 024 is for programs that use `select`, and
    /// a thousand transfers need more. Never less than there is.
    package static func openFiles(soft: UInt, hard: UInt) -> UInt {
        max(soft, min(hard, 65_536))
    }

    /// The least that ``fit(toDescriptors:)`` needs.
    package static let leastDescriptors = DescriptorBudget.least.total

    /// Asks for no more threads, transfers and open folders than there are files and sockets for.
    ///
    /// - Parameter available: how many the process may open beside those that it has.
    /// - Returns: false when that is too little for any run.
    package mutating func fit(toDescriptors available: Int) -> Bool {
        guard let fitted = descriptors.fitted(to: available) else { return false }
        fittedDescriptors = fitted
        codecWorkers = fitted.codecWorkers
        jobs = fitted.transfers
        return true
    }

    var backoff: Backoff { Backoff(base: retryDelay) }

    /// How each host is asked.
    var hostRules: HostPacing.Rules {
        HostPacing.Rules(
            concurrency: hostConcurrency, interval: hostInterval,
            longestCoolDown: longestRetryAfter, backoff: backoff, patience: hostTimeout)
    }

    /// The limits of each transfer.
    var transfers: TransferConfiguration {
        var settings = TransferConfiguration(userAgent: userAgent)
        settings.connectTimeout = connectTimeout
        settings.stallTimeout = stallTimeout
        settings.totalTimeout = totalTimeout
        settings.maximumBodySize = maximumBodySize
        settings.bodyBudget = bodyBudget
        settings.maximumIdleConnections = keptConnections
        settings.requests = requests
        settings.fingerprint = { "sha256:" + SHA256Hasher().digest(of: $0).description.prefix(16) }
        return settings
    }

    /// Whether a request of this run, with an entry's own fields, selects a stored response that
    /// varies as the text says.
    func matchesVary(userFields: [HeaderField] = []) -> @Sendable (String) -> Bool {
        let fields = transfers.requestFields(userFields: userFields)
        return { Vary.matches($0, request: fields) }
    }

    /// What an entry asks for.
    func variants(of extras: EntryExtras?) -> VariantSet {
        guard let extras, extras.changesVariants else { return variants }
        return variants.applying(extras)
    }

    /// The rules of an entry: its own lifetime goes before the run's.
    func freshness(_ extras: EntryExtras?) -> Freshness.Rules {
        Freshness.Rules(
            forced: extras?.timeToLive ?? lifetime, minimum: minimumLifetime,
            maximum: maximumLifetime, defaultLifetime: defaultLifetime, ahead: ahead)
    }
}

/// Which cached entries are asked for again.
package enum RefreshMode: String, CaseIterable, Sendable {
    /// Those that are not fresh any more.
    case stale
    /// All of them, with conditions: an origin that still has the same answers without a body.
    case all
    /// All of them, without conditions: each is downloaded, decoded and stored anew.
    case force
    /// None: what is stored is good, however old.
    case none

    /// Whether also what is fresh is asked for.
    var asksForFresh: Bool { self == .all || self == .force }
}

/// Which failures decide the exit status.
package enum CountedFailures: String, CaseIterable, Sendable {
    /// All of them, and what is blacklisted.
    case any
    /// Those that earlier runs did not have: neither what is blacklisted nor what failed again for the
    /// same reason.
    case new
}

/// How many failures a run may have and still exit with 0.
package enum FailureTolerance: Hashable, Sendable {
    case count(Int)
    /// 0…100 percent of the entries read.
    case percent(Double)

    package func accepts(failures: Int, of entries: Int) -> Bool {
        switch self {
        case .count(let limit): failures <= limit
        case .percent(let limit): Double(failures) * 100 <= limit * Double(entries)
        }
    }
}

/// How other threads reach a run.
package final class RunControl: Sendable {
    let mailbox = Mailbox()

    package init() {}

    /// Stops the run because of a signal: nothing more starts, what runs is finished or cancelled
    /// within ten seconds, and what is stored is committed. Any thread may call it.
    package func stop(signal: Int32) {
        mailbox.put(.stop(signal: signal))
    }
}

package import CacheStorage
import Codecs
import Decoding
import HTTPSemantics
import Hashing
package import PrefetchModel
import Scheduling
package import Transfers

/// The user's options for one run; the command line takes its defaults from here.
package struct RunConfiguration: Sendable {
    package var queue = QueueRules()
    package var entries = EntryChoiceRules()
    package var hosts = HostRules()
    package var limits = TransferLimits()
    package var redirects = RedirectRules()
    package var bodies = BodyRules()
    package var images = ImageRules()
    package var lifetimes = LifetimeRules()
    package var storing = StoringRules()
    package var exit = ExitRule()
    package var runLimits = RunLimits()
    package var retriesFailed = false
    package var userAgent: String
    package var requests = RequestSettings()
    package var manifests: [String]
    private var processors: ThreadBudget

    private enum ThreadBudget {
        /// As many codec workers as there are cores.
        case wanted(codecWorkers: Int)
        case fitted(DescriptorBudget)
    }

    /// Takes the number of cores as `codecWorkers`.
    package init(userAgent: String, manifests: [String], codecWorkers: Int) {
        self.userAgent = userAgent
        self.manifests = manifests
        processors = .wanted(codecWorkers: codecWorkers)
    }

    private var descriptors: DescriptorBudget {
        switch processors {
        case .wanted(let codecWorkers):
            DescriptorBudget(
                codecWorkers: codecWorkers,
                transfers: hosts.maximumJobs(bodyBudget: images.bodyBudget))
        case .fitted(let budget): budget
        }
    }

    package var codecWorkers: Int { descriptors.codecWorkers }
    /// The run's threads: readers, codecs, and one each for transfers, rows, copies and signals.
    package var threads: Int { descriptors.readers + descriptors.codecWorkers + 4 }

    /// Threads that read manifests. Reading is serial, so more than a few do not help.
    var readers: Int { descriptors.readers }

    package var openFolders: Int { max(1, descriptors.folders) }

    var keptConnections: Int { max(1, descriptors.connections) }

    /// Returns the soft limit of open files to set. The usual 1,024 is for programs that use
    /// `select`, and a thousand transfers need more. Never lower than the present limit.
    package static func openFiles(soft: UInt, hard: UInt) -> UInt {
        max(soft, min(hard, 65_536))
    }

    /// The minimum that ``fit(toDescriptors:)`` needs.
    package static let minimumDescriptors = DescriptorBudget.minimum.total

    /// Reduces threads, transfers and open folders to the files and sockets that the process may
    /// still open; false when these are too few for any run.
    package mutating func fit(toDescriptors available: Int) -> Bool {
        guard let fitted = descriptors.fitted(to: available) else { return false }
        processors = .fitted(fitted)
        return true
    }

    /// The limit of simultaneous transfers that memory and open files allow.
    package var maximumTransfers: Int { descriptors.transfers }
    /// The limit of simultaneous transfers, which may change during the run.
    var jobLimit: JobLimit { hosts.jobLimit(maximum: maximumTransfers) }

    /// The limit of the cache; nil also for a run that stores no images.
    var sizeLimit: ByteCount? { bodies.use == .stored ? storing.maximumSize : nil }

    package var transfers: TransferConfiguration {
        var settings = TransferConfiguration(userAgent: userAgent)
        settings.limits = limits
        settings.bodyBudget = images.bodyBudget
        settings.sharedBodies = images.sandbox == .off ? 0 : descriptors.sharedBodies
        settings.rateLimit = hosts.rateLimit
        settings.maximumIdleConnections = keptConnections
        settings.requests = requests
        settings.responses = bodies.responses
        settings.hosts = hosts.configurations.map(\.transfers)
        settings.accept = CodecLibraries.accept
        settings.fingerprint = { "sha256:" + SHA256Hasher().digest(of: $0).description.prefix(16) }
        return settings
    }

    /// The test whether a request of this run, with an entry's own fields, selects a stored
    /// response with a given `Vary`.
    func varyTest(userFields: [HeaderField] = []) -> VaryTest {
        let transfers = transfers
        let fields = transfers.requestFields(to: "", userFields: userFields)
        // Most tables of hosts change no field, and with one set of fields no URL matters.
        let others = hosts.configurations.values.map {
            $0.transfers.requestFields(to: "", userFields: userFields)
        }
        if others.allSatisfy({ $0 == fields }) {
            return VaryTest { Vary.matches($0, request: fields) }
        }
        return VaryTest { text, listed, final in
            let isForeign =
                RequestURL(normalized: listed).origin != RequestURL(normalized: final).origin
            return Vary.matches(
                text,
                request: transfers.requestFields(
                    to: final, userFields: userFields, isForeign: isForeign))
        }
    }

    /// The group of a listed URL: all in it have the same request fields.
    func varyGroup(of url: ArraySlice<UInt8>) -> Int {
        hosts.configurations.position(ofHostIn: url) ?? -1
    }

    /// Sets an automatic ``LifetimeRules/ahead`` from the history of these manifests in the cache;
    /// it stays nil without a regular one.
    ///
    /// Offline runs can refresh nothing, and a run that chooses its images by another rule needs
    /// none. A damaged history is ignored here: the run itself finds the damage and has it
    /// repaired.
    package mutating func setAhead(by cache: CacheCatalog, at now: Timestamp) {
        guard lifetimes.ahead == nil, !lifetimes.isOffline, lifetimes.refresh == .stale,
            !manifests.isEmpty,
            let starts = try? cache.starts(
                manifests: manifests, limit: RunInterval.consideredStarts - 1)
        else { return }
        lifetimes.ahead = RunInterval.expected(from: [now] + starts)
    }
}

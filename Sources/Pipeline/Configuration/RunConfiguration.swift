import Codecs
import HTTPSemantics
import Hashing
package import PrefetchModel
import Scheduling
package import Transfers

/// What one run is asked to do; every default is the command line's.
package struct RunConfiguration: Sendable {
    package var queue = QueueRules()
    package var hosts = HostRules()
    package var limits = TransferLimits()
    package var images = ImageRules()
    package var lifetimes = LifetimeRules()
    package var storing = StoringRules()
    package var exit = ExitRule()
    /// Asks for what is blacklisted, too.
    package var retriesFailed = false
    package var userAgent: String
    /// What requests carry, and the way that they take.
    package var requests = RequestSettings()
    /// The manifests' names, for the run log.
    package var manifests: [String]
    private var processors: Processors

    /// Threads, and the files that they may have open.
    private enum Processors {
        /// As many codec workers as there are cores.
        case wanted(codecWorkers: Int)
        case fitted(DescriptorBudget)
    }

    /// There are as many codec workers as the caller sees cores.
    package init(userAgent: String, manifests: [String], codecWorkers: Int) {
        self.userAgent = userAgent
        self.manifests = manifests
        processors = .wanted(codecWorkers: codecWorkers)
    }

    private var descriptors: DescriptorBudget {
        switch processors {
        case .wanted(let codecWorkers):
            DescriptorBudget(codecWorkers: codecWorkers, transfers: hosts.jobs)
        case .fitted(let budget): budget
        }
    }

    /// Threads that decode and encode.
    package var codecWorkers: Int { descriptors.codecWorkers }

    /// Threads that read manifests. Beyond a few of them, reading, which one does at a time, is what
    /// takes the time.
    var readers: Int { descriptors.readers }

    /// Folders of the content that are kept open.
    package var openFolders: Int { max(1, descriptors.folders) }

    /// Connections that are kept for the next transfers.
    var keptConnections: Int { max(1, descriptors.connections) }

    /// The soft limit of open files to ask for: the usual 1 024 is for programs that use `select`, and
    /// a thousand transfers need more. Never less than there is.
    package static func openFiles(soft: UInt, hard: UInt) -> UInt {
        max(soft, min(hard, 65_536))
    }

    /// The least that ``fit(toDescriptors:)`` needs.
    package static let minimumDescriptors = DescriptorBudget.minimum.total

    /// Asks for no more threads, transfers and open folders than there are files and sockets for.
    ///
    /// - Parameter available: how many the process may open beside those that it has.
    /// - Returns: false when that is too little for any run.
    package mutating func fit(toDescriptors available: Int) -> Bool {
        guard let fitted = descriptors.fitted(to: available) else { return false }
        processors = .fitted(fitted)
        hosts.jobs = fitted.transfers
        return true
    }

    /// The limits of each transfer.
    package var transfers: TransferConfiguration {
        var settings = TransferConfiguration(userAgent: userAgent)
        settings.connectTimeout = limits.connectTimeout
        settings.stallTimeout = limits.stallTimeout
        settings.totalTimeout = limits.totalTimeout
        settings.maximumBodySize = limits.maximumBodySize
        settings.bodyBudget = images.bodyBudget
        settings.maximumIdleConnections = keptConnections
        settings.requests = requests
        settings.accept = CodecLibraries.accept
        settings.fingerprint = { "sha256:" + SHA256Hasher().digest(of: $0).description.prefix(16) }
        return settings
    }

    /// Whether a request of this run, with an entry's own fields, selects a stored response that
    /// varies as the text says.
    func matchesVary(userFields: [HeaderField] = []) -> @Sendable (String) -> Bool {
        let fields = transfers.requestFields(userFields: userFields)
        return { Vary.matches($0, request: fields) }
    }
}

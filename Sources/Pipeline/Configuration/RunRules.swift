import CacheStorage
import EntryLifecycle
import PrefetchModel
import Scheduling
import Transfers

/// The configuration of a run with the rules that derive from it, and the folders that it uses.
///
/// A class: the coordinator would copy a value, with all of its references, for each entry.
final class RunRules: Sendable {
    let configuration: RunConfiguration
    let entries: EntryRules
    let requests: RequestBuilder
    /// The values of ``FailureSetting`` that are the same for nearly all entries.
    let failureSettings: FailureSettings
    let temporaryFolder: String
    let cacheDirectory: String

    init(_ configuration: RunConfiguration, temporaryFolder: String, cacheDirectory: String) {
        self.configuration = configuration
        let transfers = configuration.transfers
        entries = EntryRules(configuration, transfers)
        requests = RequestBuilder(configuration, transfers)
        failureSettings = FailureSettings(configuration)
        self.temporaryFolder = temporaryFolder
        self.cacheDirectory = cacheDirectory
    }

    /// The variants of an entry without fields of its own.
    var variants: VariantSet { configuration.images.variants }

    func variants(of extras: EntryExtras?) -> VariantSet { variants.applying(extras) }
}

extension EntryRules {
    init(_ configuration: RunConfiguration, _ transfers: TransferConfiguration) {
        self.init()
        freshness = { configuration.lifetimes.rules($0) }
        requestFields = {
            transfers.requestFields(to: $0.text, userFields: $1, isForeign: $2)
        }
        redirects = configuration.redirects
        redirects.keepsCookies = configuration.requests.cookieJar != nil
        isOffline = configuration.lifetimes.isOffline
        usesStoredCopies = configuration.lifetimes.refresh != .force
        redirects.followsMemory = !configuration.lifetimes.refresh.asksForFresh
        maximumBodyBytes = configuration.limits.maximumBodySize.bytes
        smallestPartBytes = PartialStore.smallestBody.bytes
        ignoredQuery = configuration.entries.ignoredQuery
        exclusions.robots = configuration.entries.robots
        if let objection = configuration.entries.objection { exclusions.objection = objection }
        storesImages = configuration.bodies.use == .stored
        responses = configuration.bodies.responses
        responsesByHost = configuration.hosts.configurations.map(\.bodies.responses)
    }
}

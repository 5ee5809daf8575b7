import PrefetchModel
import URLParsing

/// The values that all transfers of a loop share, on its thread.
struct TransferEnvironment {
    let configuration: TransferConfiguration
    let common: HostLimits
    private let hosts: [HostLimits]
    let budget: BodyBudget
    let waiting = WaitingTransfers()
    /// The limit of bytes per second; nil for none.
    let rate: ByteRate?
    let connections: OriginConnections
    let shared: SharedData
    let cookies: SharedCookies?
    let parser = URLParser()
    let watchdog = Watchdog()

    struct HostLimits {
        /// The value of ``TransferAttempt/hostSettings``.
        let number: Int?
        let configuration: TransferConfiguration
        let proxies: ProxyRules

        init(_ number: Int?, _ configuration: TransferConfiguration) {
            self.number = number
            self.configuration = configuration
            proxies = ProxyRules(configuration.requests.proxies)
        }
    }

    func settings(for attempt: TransferAttempt) -> HostLimits {
        attempt.hostSettings.map { hosts[$0] } ?? common
    }

    var shortestTimeout: Duration {
        ([common] + hosts).map(\.configuration.limits)
            .map { min($0.stallTimeout, $0.totalTimeout) }.min()
            ?? .zero
    }

    init(
        _ configuration: TransferConfiguration, _ budget: BodyBudget,
        _ connections: OriginConnections
    ) throws(UserError) {
        self.configuration = configuration
        self.connections = connections
        common = HostLimits(nil, configuration)
        hosts = configuration.hosts.values.enumerated().map(HostLimits.init)
        self.budget = budget
        rate = configuration.rateLimit.map(ByteRate.init)
        let jar = configuration.requests.cookieJar
        shared = try SharedData(hasCookies: jar != nil)
        cookies = if let jar { try SharedCookies(path: jar, in: shared) } else { nil }
    }
}

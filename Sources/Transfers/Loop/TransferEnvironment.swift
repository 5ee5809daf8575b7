internal import CCurl
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
    let cookies: CookieJar?
    let parser: URLParser
    let watchdog = Watchdog()

    /// The settings for one host.
    struct HostLimits {
        let configuration: TransferConfiguration
        let limits: ProgressLimits
        let proxies: ProxyRules

        init(_ configuration: TransferConfiguration) {
            self.configuration = configuration
            limits = ProgressLimits(configuration)
            proxies = ProxyRules(configuration.requests.proxies)
        }
    }

    /// The settings of an attempt's host.
    func settings(for attempt: TransferAttempt) -> HostLimits {
        attempt.hostSettings.map { hosts[$0] } ?? common
    }

    /// The shortest time-out of any host.
    var shortestTimeout: Duration {
        hosts.reduce(common.limits.shortestTimeout) { min($0, $1.limits.shortestTimeout) }
    }

    /// - Throws: when the cookie jar cannot be read or libcurl's URL parser cannot be set up.
    init(
        _ configuration: TransferConfiguration, _ budget: BodyBudget,
        _ connections: OriginConnections
    ) throws(UserError) {
        self.configuration = configuration
        self.connections = connections
        common = HostLimits(configuration)
        hosts = configuration.hosts.values.map(HostLimits.init)
        self.budget = budget
        rate = configuration.rateLimit.map(ByteRate.init)
        if let path = configuration.requests.cookieJar {
            shared = try SharedData(hasCookies: true)
            cookies = try CookieJar(path: path, in: shared)
        } else {
            shared = try SharedData(hasCookies: false)
            cookies = nil
        }
        do {
            parser = try URLParser()
        } catch {
            throw UserError(
                libcurl: "parser of URLs", CURLE_FAILED_INIT.rawValue, error.message)
        }
    }
}

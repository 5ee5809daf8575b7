internal import CCurl
import PrefetchModel
import URLParsing

/// The values that all transfers of a loop share, on its thread.
struct TransferEnvironment {
    let configuration: TransferConfiguration
    let limits: ProgressLimits
    let budget: BodyBudget
    let waiting = WaitingTransfers()
    /// The limit of bytes per second; nil for none.
    let rate: ByteRate?
    let connections: OriginConnections
    let shared: SharedData
    let cookies: CookieJar?
    let parser: URLParser
    let proxies: ProxyRules
    let watchdog = Watchdog()

    /// - Throws: when the cookie jar cannot be read or libcurl's URL parser cannot be set up.
    init(
        _ configuration: TransferConfiguration, _ budget: BodyBudget,
        _ connections: OriginConnections
    ) throws(TransferLoopError) {
        self.configuration = configuration
        self.connections = connections
        limits = ProgressLimits(configuration)
        self.budget = budget
        rate = configuration.bytesPerSecond.map(ByteRate.init)
        proxies = ProxyRules(configuration.requests.proxies)
        if let path = configuration.requests.cookieJar {
            shared = try SharedData(hasCookies: true)
            cookies = try CookieJar(path: path, in: shared)
        } else {
            shared = try SharedData(hasCookies: false)
            cookies = nil
        }
        do throws(URLParsingError) {
            parser = try URLParser()
        } catch {
            throw TransferLoopError(
                operation: "parser of URLs", code: Int32(CURLE_FAILED_INIT.rawValue),
                message: error.message)
        }
    }
}

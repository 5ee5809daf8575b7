import CacheStorage
import Codecs
import HTTPSemantics
import Hashing
import PrefetchModel
import Scheduling
import Transfers

/// The values of each ``FailureSetting`` in a run.
///
/// Possible secrets are kept as 32 bits of a digest: enough to notice a change, too few to verify a
/// guess.
struct FailureSettings: Sendable {
    private let configuration: RunConfiguration
    private let route: String
    private let authorities: String
    /// The recipes of an entry without variants of its own.
    private let recipes: String
    private let methods: String
    /// The request of an entry without fields and credentials of its own.
    private let request: String

    init(_ configuration: RunConfiguration) {
        self.configuration = configuration
        let requests = configuration.requests
        route = FailureSettings.digest([
            requests.proxies.http ?? "", requests.proxies.https ?? "", requests.proxies.exceptions,
            requests.hostAddresses.map(\.text).joined(separator: "\n"),
            "\(requests.addressFamily)", "\(requests.usesHTTP1Only)",
        ])
        authorities = FailureSettings.digest(
            [requests.authorityFingerprint]
                + [requests.clientCertificate?.fingerprint].compactMap(\.self))
        recipes = FailureSettings.recipes(configuration.images.variants)
        methods = FailureSettings.methods(configuration.images.variants)
        request = FailureSettings.digest(FailureSettings.texts(of: configuration))
    }

    /// Returns the values at the host in a URL or origin. Values of a host with settings of its own
    /// are made for each failure, since most runs have few.
    func at(hostIn url: some StringProtocol) -> FailureSettings {
        configuration.hosts.configurations[hostIn: url].map(FailureSettings.init) ?? self
    }

    /// Returns the value of a setting for an entry, as ``FailureConditions`` store it; `variants`
    /// are nil for the run's.
    func value(
        of setting: FailureSetting, url: RequestURL, extras: EntryExtras?, variants: VariantSet?
    ) -> String {
        switch setting {
        case .request: request(url, extras)
        case .cookies: configuration.requests.cookieFingerprint(of: url.host)
        case .route: route
        case .authorities: authorities
        case .insecure: FailureSettings.text(!configuration.requests.verifiesOrigins)
        case .connectTimeout: FailureSettings.text(configuration.limits.connectTimeout)
        case .stallTimeout: FailureSettings.text(configuration.limits.stallTimeout)
        case .totalTimeout: FailureSettings.text(configuration.limits.totalTimeout)
        case .maximumBodySize: "\(configuration.limits.maximumBodySize.bytes)"
        case .maximumCacheSize: "\(configuration.storing.maximumSize?.bytes ?? .max)"
        case .maximumPixels: "\(configuration.images.maximumPixels)"
        case .memory: "\(configuration.images.memory.bytes)"
        case .maximumDecodeTime: FailureSettings.text(configuration.images.maximumDecodeTime)
        case .maximumRedirects: "\(configuration.redirects.maximum)"
        case .allowsDowngrade: FailureSettings.text(configuration.redirects.allowsDowngrade)
        case .lifetime: FailureSettings.text(configuration.lifetimes.rules(extras).forced != nil)
        case .recipe:
            variants.map(FailureSettings.recipes) ?? recipes
        case .method:
            variants.map(FailureSettings.methods) ?? methods
        case .checksStructure: structureCheck(of: variants ?? configuration.images.variants)
        case .codecs: "\(CodecLibraries.decoders),\(CodecLibraries.colours)"
        case .otherFormats: configuration.images.otherFormats.rawValue
        case .minimumSize:
            "\(configuration.images.filter.minimumWidth)x\(configuration.images.filter.minimumHeight)"
        case .maximumAspect: configuration.images.filter.maximumAspect.map { "\($0)" } ?? "any"
        case .minimumBytes: "\(configuration.images.filter.minimumBytes.bytes)"
        case .robots: configuration.entries.robots.names.joined(separator: ",")
        case .acceptedStatuses:
            FailureSettings.text(configuration.bodies.responses.acceptedStatuses)
        case .acceptedTypes: FailureSettings.text(configuration.bodies.responses.acceptedTypes)
        case .blacklistedStatuses:
            FailureSettings.text(configuration.bodies.responses.blacklistedStatuses)
        case .bodyFilter:
            FailureSettings.text(
                (variants ?? configuration.images.variants).primary.recipe.bodyFilter)
        case .digest: extras?.sourceDigest.map { "\($0)" } ?? "any"
        case .files: files(of: url, extras)
        }
    }

    /// Returns the value for an entry of several lines, by its failed variants.
    func value(of setting: FailureSetting, failed: [RequestedVariant]) -> String? {
        let texts = failed.map { VariantSet($0) }
        return switch setting {
        case .recipe: FailureConditions.any(of: texts.map(FailureSettings.recipes))
        case .method: FailureConditions.any(of: texts.map(FailureSettings.methods))
        case .checksStructure: structureCheck(of: failed)
        default: nil
        }
    }

    /// The tags of the files among an entry's URLs.
    private func files(of url: RequestURL, _ extras: EntryExtras?) -> String {
        let urls = [url] + (extras?.alternatives ?? [])
        return urls.filter(\.isFile).map {
            LocalFile.tag(of: $0, below: configuration.requests.filesBelow) ?? "none"
        }.joined(separator: ",")
    }

    /// Whether sources are followed instead of decoded, since nothing is made of them.
    private func structureCheck(of variants: some Sequence<RequestedVariant>) -> String {
        FailureSettings.text(
            configuration.images.check == .structure
                && variants.allSatisfy { $0.recipe.encoding == .original })
    }

    /// The statuses that blacklist at once, if the user sets them, at the host in a URL or origin.
    func blacklistedStatuses(atHostIn url: some StringProtocol) -> StatusSet? {
        let own = configuration.hosts.configurations[hostIn: url] ?? configuration
        return own.bodies.responses.blacklistedStatuses
    }

    private func request(_ url: RequestURL, _ extras: EntryExtras?) -> String {
        let headers = extras?.headers ?? []
        let alternatives = extras?.alternatives ?? []
        guard !headers.isEmpty || !alternatives.isEmpty || url.credentials != nil else {
            return request
        }
        return FailureSettings.digest(
            FailureSettings.texts(of: configuration)
                + [url.credentials.map(String.init) ?? ""]
                + headers.flatMap { [$0.name.lowercased(), $0.value] }
                + alternatives.map(\.text))
    }

    private static func recipes(_ variants: VariantSet) -> String {
        variants.map(\.recipeText).sorted().joined(separator: ",")
    }

    private static func methods(_ variants: VariantSet) -> String {
        variants.map { variant in
            variant.recipeText.split(separator: ";")
                .filter { !$0.hasPrefix(SameRule.RecipeItem.quality.rawValue) }.joined(
                    separator: ";")
        }.sorted().joined(separator: ",")
    }

    private static func texts(of configuration: RunConfiguration) -> [String] {
        let requests = configuration.requests
        // The program's own user agent has its version, which would end the whole blacklist with
        // each update.
        let userAgent = configuration.userAgent
        return [
            userAgent.hasPrefix("prefetch/") ? "" : userAgent,
            requests.credentials.map { "\($0.user):\($0.password)" } ?? "",
            // Without the cookies: each run changes them.
            requests.netrcFingerprint, requests.cookieJar ?? "",
        ] + [requests.accept.map { "accept: \($0)" }].compactMap(\.self)
            + [requests.clientCertificate?.fingerprint].compactMap(\.self)
            + requests.fields.flatMap { [$0.name.lowercased(), $0.value] }
    }

    private static func digest(_ texts: [String]) -> String {
        // No text contains NUL, so different lists give different texts.
        let digest = SHA256Hasher().digest(of: texts.joined(separator: "\0"))
        return String(digest.leadingWords.0 >> 32, radix: 16)
    }

    private static func text(_ permission: Bool) -> String { permission ? "1" : "0" }
    private static func text(_ list: (some CustomStringConvertible)?) -> String {
        list.map { $0.description.isEmpty ? "-" : $0.description } ?? "-"
    }
    private static func text(_ limit: Duration) -> String { "\(limit.wholeMilliseconds)" }
}

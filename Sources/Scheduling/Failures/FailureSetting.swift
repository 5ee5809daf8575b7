package import PrefetchModel

/// A setting that a failure depended on. A run with a different value may succeed, so the blacklist
/// entry does not apply to it. The raw values are stored.
package enum FailureSetting: String, CaseIterable, Hashable, Sendable {
    /// The content of requests: fields, credentials, cookie and password files.
    case request
    /// The host's cookies when the run began.
    case cookies
    /// The route of requests: proxies, given addresses, IP and HTTP versions.
    case route
    case authorities
    case insecure
    case connectTimeout = "connect-timeout"
    case stallTimeout = "stall-timeout"
    case totalTimeout = "timeout"
    case maximumBodySize = "max-filesize"
    case maximumCacheSize = "max-size"
    case maximumPixels = "max-pixels"
    case memory
    case maximumDecodeTime = "max-decode-time"
    case maximumRedirects = "max-redirects"
    case allowsDowngrade = "allow-downgrade"
    /// Whether the user sets a lifetime, so that nothing is uncacheable.
    case lifetime = "ttl"
    /// Every setting that changes the stored bytes, and with them the memory for encoding.
    case recipe
    /// The recipe without the quality, which affects neither whether nor how fast an image is
    /// decoded.
    case method
    /// Whether only the source's structure is checked.
    case checksStructure = "check-structure"
    case codecs
    case otherFormats = "other-formats"
    /// The filters: one setting each, so that changing one does not affect the others.
    case minimumSize = "min-size"
    case maximumAspect = "max-aspect"
    case minimumBytes = "min-bytes"
    case robots
    /// The accepted statuses and media types, and the statuses that blacklist.
    case acceptedStatuses = "accept-status"
    case acceptedTypes = "accept-type"
    case blacklistedStatuses = "blacklist-status"
    /// The filter that turns bodies into images.
    case bodyFilter = "body-filter"
    /// The digest that the list gives for the source.
    case digest = "sha256"
    /// The files of `file:` URLs; empty for entries without any.
    case files

    /// Whether the value is a number and a smaller one is stricter: a failure under the larger one
    /// repeats under it. (Permissions are 0 or 1.) All other values have to be equal.
    var isLimit: Bool {
        switch self {
        case .request, .cookies, .route, .authorities, .recipe, .method, .codecs, .otherFormats,
            .minimumSize, .maximumAspect, .minimumBytes, .robots, .digest, .acceptedStatuses,
            .acceptedTypes, .blacklistedStatuses, .bodyFilter, .files:
            false
        case .insecure, .connectTimeout, .stallTimeout, .totalTimeout, .maximumBodySize,
            .maximumCacheSize, .maximumPixels, .memory, .maximumDecodeTime, .maximumRedirects,
            .allowsDowngrade, .lifetime, .checksStructure:
            true
        }
    }
}

extension FailurePolicy {
    /// Returns the settings that a failure of that reason depends on: the one table of them.
    package static func settings(of reason: FailureReason) -> [FailureSetting] {
        let own = ownSettings(of: reason)
        return own.isEmpty ? [] : own + [.files]
    }

    private static func ownSettings(of reason: FailureReason) -> [FailureSetting] {
        switch reason {
        // Never blacklisted, or blacklisted whatever the settings are.
        case .invalidEntry, .unsupportedScheme, .refusedAddress, .notSelected, .bodyFilter, .disk,
            .internal:
            []
        case .dns: [.route]
        case .connect: [.route, .connectTimeout]
        case .tls: [.route, .authorities, .insecure]
        case .timeout: [.route, .connectTimeout, .totalTimeout]
        case .stalled: [.route, .stallTimeout]
        case .interrupted: [.route]
        case .redirect: [.request, .cookies, .route, .maximumRedirects, .allowsDowngrade]
        case .httpStatus: [.request, .route, .acceptedStatuses, .blacklistedStatuses]
        case .tooLarge: [.request, .route, .maximumBodySize, .maximumCacheSize]
        case .notAnImage: [.request, .route, .codecs, .otherFormats, .acceptedTypes, .bodyFilter]
        case .corruptImage: [.request, .route, .codecs, .checksStructure, .digest, .bodyFilter]
        case .tooManyPixels:
            [.request, .route, .codecs, .checksStructure, .recipe, .maximumPixels, .memory]
        case .unsupportedImage:
            [
                .request, .route, .codecs, .checksStructure, .method, .maximumDecodeTime,
                .otherFormats,
            ]
        case .otherFormat: [.request, .route, .codecs, .otherFormats]
        case .belowMinimumSize: [.request, .route, .minimumSize]
        case .overMaximumAspect: [.request, .route, .maximumAspect]
        case .belowMinimumBytes: [.request, .route, .minimumBytes]
        case .robots: [.request, .route, .robots]
        case .uncacheable: [.request, .route, .lifetime]
        }
    }
}

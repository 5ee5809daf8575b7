package import PrefetchModel

/// What a failure depends on beside its origin: a run for which that is otherwise may do better, and is
/// not kept from asking. The raw values are texts that are stored.
package enum FailureSetting: String, CaseIterable, Hashable, Sendable {
    /// What requests carry: fields, credentials, the files of cookies and passwords.
    case request
    /// The way that requests take: proxies, given addresses, versions of IP and HTTP.
    case route
    /// Whom a run trusts: the authorities.
    case authorities
    /// Whether certificates are not verified.
    case insecure
    case connectTimeout = "connect-timeout"
    case stallTimeout = "stall-timeout"
    case totalTimeout = "timeout"
    case maximumBodySize = "max-filesize"
    case maximumPixels = "max-pixels"
    case memory
    case maximumDecodeTime = "max-decode-time"
    case maximumRedirects = "max-redirects"
    case allowsDowngrade = "allow-downgrade"
    /// Whether the user says how long images are fresh, so that nothing is uncacheable.
    case lifetime = "ttl"
    /// All that changes the stored bytes, and with it the memory that making them takes.
    case recipe
    /// The same but for the quality, which says nothing of what can be decoded and in what time.
    case method
    /// Whether a source's structure alone is checked.
    case checksStructure = "check-structure"
    /// The names and versions of the decoders.
    case codecs
    /// What becomes of formats that are not decoded.
    case otherFormats = "other-formats"
    /// Which images are wanted; each of them is a fact of its own, so that another one changes nothing.
    case minimumSize = "min-size"
    case maximumAspect = "max-aspect"
    case minimumBytes = "min-bytes"

    /// Whether the value is a number, and a run with a smaller one is stricter: what failed under the
    /// larger one fails under it, too. (Permissions are 0 or 1.) All others have to be the same.
    var isLimit: Bool {
        switch self {
        case .request, .route, .authorities, .recipe, .method, .codecs, .otherFormats,
            .minimumSize, .maximumAspect, .minimumBytes:
            false
        case .insecure, .connectTimeout, .stallTimeout, .totalTimeout, .maximumBodySize,
            .maximumPixels, .memory, .maximumDecodeTime, .maximumRedirects, .allowsDowngrade,
            .lifetime, .checksStructure:
            true
        }
    }
}

extension FailurePolicy {
    /// What a failure depends on: the one table of it.
    package static func settings(of reason: FailureReason) -> [FailureSetting] {
        switch reason {
        // Never blacklisted, or blacklisted whatever a run is like.
        case .invalidEntry, .unsupportedScheme, .refusedAddress, .disk, .internal: []
        case .dns: [.route]
        case .connect: [.route, .connectTimeout]
        case .tls: [.route, .authorities, .insecure]
        case .timeout: [.route, .connectTimeout, .totalTimeout]
        case .stalled: [.route, .stallTimeout]
        case .interrupted: [.route]
        case .redirect: [.request, .route, .maximumRedirects, .allowsDowngrade]
        case .httpStatus: [.request, .route]
        case .tooLarge: [.request, .route, .maximumBodySize]
        case .notAnImage: [.request, .route, .codecs, .otherFormats]
        case .corruptImage: [.request, .route, .codecs, .checksStructure]
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
        case .uncacheable: [.request, .route, .lifetime]
        }
    }
}

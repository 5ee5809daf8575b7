/// The explanations of failures and slow hosts, with the flags that may help: the one table for
/// messages about entries and for hints about hosts.
package enum Advice {
    package static func about(httpStatus: Int) -> String? {
        switch httpStatus {
        case 401: "credentials required, see --user, --netrc and --header"
        case 403: "access is denied; see --user, --netrc, --header and --user-agent"
        case 407: "the proxy requires credentials, see --proxy"
        case 429: "too many requests; see --host-concurrency and --host-interval"
        default: nil
        }
    }

    /// The advice about a URL with a signature that has expired.
    package static let expiredURL = "list the image by a new URL"

    /// Returns the advice about a host where images fail for this cause; nil if no flag helps.
    ///
    /// `isPaceRefused` tells whether 503 means the pace, see ``HostPace/Refusals``.
    package static func about(_ cause: HostFailures.Cause, isPaceRefused: Bool) -> String? {
        switch cause.reason {
        case .httpStatus where cause.httpStatus == 503: isPaceRefused ? refusals : unavailable
        case .httpStatus: cause.httpStatus.flatMap { about(httpStatus: $0) }
        case .dns, .connect:
            "`prefetch doctor --online` looks for the cause; see --resolve, --proxy"
        case .tls: "the certificate is not trusted or TLS fails; see --cacert and --insecure"
        case .timeout: "the host is slow or does not respond; see --connect-timeout and --timeout"
        case .stalled: "bodies stop arriving; see --stall-timeout and --host-concurrency"
        case .redirect: "see --max-redirects and --allow-downgrade"
        case .tooLarge: "see --max-filesize and --max-size"
        case .tooManyPixels: "see --max-pixels"
        case .notAnImage: "the host may expect other requests; see --header and --user-agent"
        case .unsupportedImage: "see --other-formats"
        case .uncacheable: "the host forbids storing (Cache-Control: no-store); see --ttl"
        case .bodyFilter: "the command of --body-filter fails; try it by hand on a body"
        case .invalidEntry, .unsupportedScheme, .refusedAddress, .interrupted, .corruptImage,
            .otherFormat, .belowMinimumSize, .overMaximumAspect, .belowMinimumBytes, .notSelected,
            .robots, .disk, .internal:
            nil
        }
    }

    /// The advice about a host that sends 429 or 503.
    package static let refusals = "the host refuses this pace; see --host-interval and --host-rate"

    private static let unavailable =
        "the host serves other images at this pace; the next run tries these again"

    package static func about(_ limit: HostPace.Limit) -> String {
        switch limit {
        case .settings: "see --host-concurrency, --jobs and --host-interval"
        case .latency:
            "more requests at once would wait at the host, whatever --host-concurrency is"
        case .refusals: refusals
        case .bandwidth: "bodies take most of the time; more requests at once gain little"
        case .codecs: "this machine encodes and stores more slowly; see --effort"
        }
    }
}

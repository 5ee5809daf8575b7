internal import CCurl
import Glibc
package import PrefetchModel

extension URLParser {
    /// A handle without a URL; the caller frees it.
    static func newHandle() throws(URLParsingError) -> OpaquePointer {
        if let handle = ccurl_url() { return handle }
        throw CurlLibrary.failure().map { .missingLibrary($0) } ?? problem(CURLUE_OUT_OF_MEMORY)
    }

    /// One part of a parsed URL; nil when libcurl returns `absent`, its code for a missing part.
    static func part(
        _ part: CURLUPart, of handle: OpaquePointer, flags: UInt32 = 0, absent: CURLUcode
    ) throws(URLParsingError) -> [UInt8]? {
        var text: UnsafeMutablePointer<CChar>?
        let status = ccurl_url_get(handle, part, &text, flags)
        defer { ccurl_free(text) }
        if status != CURLUE_OK, status == absent { return nil }
        guard status == CURLUE_OK, let text else { throw problem(status) }
        return Array(UnsafeRawBufferPointer(start: text, count: strlen(text)))
    }

    package static let missingScheme =
        "the scheme is missing (write https:// in front, or give --base-url)"

    /// A failure of libcurl's URL API, in words that repeat nothing of the URL.
    static func problem(_ code: CURLUcode) -> URLParsingError {
        let message =
            switch code {
            case CURLUE_UNSUPPORTED_SCHEME: "only http and https are supported"
            case CURLUE_BAD_SCHEME: missingScheme
            case CURLUE_NO_HOST: "the URL has no host"
            case CURLUE_BAD_HOSTNAME: "the host name is not valid"
            case CURLUE_BAD_IPV6: "the IPv6 address is not valid"
            case CURLUE_BAD_PORT_NUMBER: "the port is not a number within 0…65535"
            case CURLUE_BAD_SLASHES: "the scheme is not followed by two slashes"
            case CURLUE_BAD_USER, CURLUE_BAD_LOGIN, CURLUE_BAD_PASSWORD:
                "the user information is not valid"
            default: "not a valid URL (\(String(cString: ccurl_url_strerror(code))))"
            }
        return URLParsingError(
            code == CURLUE_UNSUPPORTED_SCHEME ? .unsupportedScheme : .invalidEntry, message)
    }
}

/// libcurl, loaded at its first use: a URL that has to be parsed, or a transfer.
///
/// Any thread may call it. A process tries to load it once.
package enum CurlLibrary {
    package static func load() throws(UserError) {
        if let failure = failure() { throw failure }
    }

    /// Loads it. Returns the error, nil without one.
    static func failure() -> UserError? {
        ccurl_load().map { reason in
            UserError(
                .failed, "cannot load libcurl", String(cString: reason),
                hint: "install libcurl 7.88 or newer (Debian's package is libcurl4)")
        }
    }
}

/// The reason why a text is not a URL.
package enum URLParsingError: ReportableError, Equatable {
    /// The text is not a URL that can be requested.
    case invalid(Failure)
    /// libcurl is needed to read the text and cannot be loaded.
    case missingLibrary(UserError)

    init(_ reason: FailureReason, _ message: String) {
        self = .invalid(Failure(reason, message))
    }

    package var userError: UserError {
        switch self {
        case .invalid(let failure): UserError(failure.message)
        case .missingLibrary(let missing): UserError(missing.description, hint: missing.hint)
        }
    }

    /// One line that repeats nothing of the text.
    package var message: String { userError.message }
    /// A remedy other than correcting the text.
    package var hint: String? { userError.hint }
}

/// A locale with UTF-8, for the calling thread only.
///
/// libidn2 reads international host names in the locale's encoding, and the process may run in the
/// C locale, as under cron.
package final class InternationalLocale {
    private let locale: locale_t?

    package init() {
        // Part of every glibc from Debian 12 on; without it international names are refused.
        locale = newlocale(1 << LC_CTYPE, "C.UTF-8", nil)
    }

    deinit {
        if let locale { freelocale(locale) }
    }

    package func run<Result, Failure: Error>(
        _ body: () throws(Failure) -> Result
    ) throws(Failure) -> Result {
        guard let locale else { return try body() }
        let previous = uselocale(locale)
        defer { uselocale(previous) }
        return try body()
    }
}

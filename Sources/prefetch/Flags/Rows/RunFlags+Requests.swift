import CacheStorage
import ConfigurationFiles
import Pipeline
import PrefetchModel

// Filters, requests, freshness

extension RunFlags {
    static let include = RunFlag<[String]>(
        repeatable: "include", .filters, value: "glob",
        help: """
            Only entries whose host, or whole URL if the pattern has a slash, matches: \
            *.example.com, */photos/*; repeatable.
            """)

    static let exclude = RunFlag<[String]>(
        repeatable: "exclude", .filters, value: "glob",
        help: "No entries that match likewise, even if --include does; repeatable.")

    static let robotsDirectives = RunFlag<String?>(
        "robots-directives", .filters, value: "names",
        help: """
            Exclude images whose origin sends one of these directives in X-Robots-Tag, like \
            noai,noimageai.
            """)

    static let minimumSize = RunFlag<DimensionsArgument?>(
        "min-size", .filters, value: "wxh",
        help: """
            Exclude images with a smaller width or height than this, like 256x256, after EXIF orientation is \
            applied.
            """)

    static let maximumAspect = RunFlag<Double?>(
        "max-aspect", .filters, value: "r",
        help: "Exclude images whose longer side is more than this many times the shorter one.")

    static let minimumBytes = RunFlag<SizeArgument?>(
        "min-bytes", .filters, value: "size",
        help: "Exclude images whose downloaded file is smaller.")

    static let header = RunFlag<[String]>(
        repeatable: "header", .requests, value: "name: value",
        help: """
            Header field for every request, or @FILE with one per line; 'Name:' removes a field. \
            Never sent cross-origin by a redirect.
            """, brief: "header field for every request, or @FILE",
        inProjects: .refusedWithSecrets)

    static let userAgent = RunFlag<String>(
        "user-agent", .requests, value: "text", default: defaults.userAgent,
        help: "Value of the User-Agent field.")

    static let user = RunFlag<String?>(
        "user", .requests, value: "name:password",
        help: """
            Credentials for every listed origin, or @FILE, which keeps them out of the process \
            list. Never sent cross-origin by a redirect.
            """, inProjects: .refused)

    static let netrc = RunFlag<Bool>(
        "netrc", .requests, help: "Read credentials from $NETRC, or else ~/.netrc.",
        inProjects: .refused)

    static let netrcFile = RunFlag<String?>(
        "netrc-file", .requests, value: "file", help: "Read credentials from this file.",
        inProjects: .refused)

    static let cookieJar = RunFlag<String?>(
        "cookie-jar", .requests, value: "file",
        help: "Read cookies from this file if it exists, and write them back at the end.",
        inProjects: .refused)

    static let proxy = RunFlag<String?>(
        "proxy", .requests, value: "url",
        help: """
            Proxy, or @FILE with it; '' uses none (default: $http_proxy, $https_proxy, $all_proxy).
            """, inProjects: .refused,
        environment: ["http_proxy", "https_proxy", "all_proxy", "ALL_PROXY"])

    static let noProxy = RunFlag<String?>(
        "noproxy", .requests, value: "list",
        help: "Hosts and networks to reach without a proxy (default: $no_proxy).",
        inProjects: .refused, environment: ["no_proxy", "NO_PROXY"])

    static let authorityFile = RunFlag<String?>(
        "cacert", .requests, value: "file",
        help: """
            Trust the certificates in this PEM file instead of the system's (default: \
            $CURL_CA_BUNDLE, else $SSL_CERT_FILE; a folder: $SSL_CERT_DIR).
            """, inProjects: .refused, environment: ["CURL_CA_BUNDLE", "SSL_CERT_FILE"])

    static let insecure = RunFlag<Bool>(
        "insecure", .requests,
        help: "Do not verify certificates: anyone on the network path can pose as the origin.",
        inProjects: .refused)

    static let certificate = RunFlag<String?>(
        "cert", .requests, value: "file",
        help: "Client certificate (PEM), with its key unless --key names it.",
        inProjects: .refused)

    static let certificateKey = RunFlag<String?>(
        "key", .requests, value: "file", help: "Private key of --cert (PEM, not encrypted).",
        inProjects: .refused)

    static let resolve = RunFlag<[String]>(
        repeatable: "resolve", .requests, value: "host:port:address,...",
        help: "Use these addresses for a host and port instead of DNS; repeatable.",
        inProjects: .refused)

    static let http1 = RunFlag<Bool>("http1.1", .requests, help: "Use only HTTP/1.1.")

    static let ipv4 = RunFlag<Bool>("ipv4", short: "4", .requests, help: "Use only IPv4.")

    static let ipv6 = RunFlag<Bool>("ipv6", short: "6", .requests, help: "Use only IPv6.")

    static let allowDowngrade = RunFlag<Bool>(
        "allow-downgrade", .requests, help: "Also follow redirects from https to http.",
        inProjects: .refused)

    static let allowLinkLocal = RunFlag<Bool>(
        "allow-link-local", .requests,
        help: "Allow link-local addresses, which include the metadata services of clouds.",
        inProjects: .refused)

    static let denyPrivate = RunFlag<Bool>(
        "deny-private", .requests,
        help: """
            Refuse loopback, private and link-local addresses, for lists you do not trust (SSRF).
            """, inProjects: .refused)

    static let refresh = RunFlag<RefreshMode>(
        "refresh", .freshness, value: "which", default: defaults.lifetimes.refresh,
        help: """
            Which cached images to request again: stale ones, all of them (with conditions), all \
            without conditions (force), or none, however old.
            """, brief: "cached images to request again: stale, all, …")

    static let ahead = RunFlag<OrAuto<DurationArgument>>(
        "ahead", .freshness, value: "duration",
        default: OrAuto(defaults.lifetimes.ahead.map { DurationArgument($0) }),
        help: """
            Treat images that expire within this time as stale, so that none expires before the \
            next run. 'auto' takes the time between the last runs of the same manifests, if they \
            were regular, else 0.
            """)

    static let lifetime = RunFlag<DurationArgument?>(
        "ttl", .freshness, value: "duration",
        help: "How long images are fresh, whatever the origin says, even no-store.",
        brief: "how long images are fresh, whatever the origin says")

    static let minimumLifetime = RunFlag<DurationArgument?>(
        "min-ttl", .freshness, value: "duration",
        help: """
            Shortest time that images are fresh, whatever the origin says, except for no-cache.
            """)

    static let maximumLifetime = RunFlag<DurationArgument?>(
        "max-ttl", .freshness, value: "duration",
        help: "Longest time that images are fresh, whatever the origin says.")

    static let defaultLifetime = RunFlag<DurationArgument>(
        "default-ttl", .freshness, value: "duration",
        default: DurationArgument(defaults.lifetimes.fallback),
        help: "How long images are fresh if the origin does not say.")

    static let checkFiles = RunFlag<FileCheck>(
        "check-files", .freshness, value: "when", default: .auto,
        help: """
            How to check that cached files exist: list changed folders (auto), compare the size of \
            every file (always), or trust the database (never). Missing files are downloaded again.
            """, inProjects: .refused)

    static let offline = RunFlag<Bool>(
        "offline", .freshness, help: "Make no requests; entries that are not warm are excluded.",
        brief: "make no requests; report fresh images", isConfigurable: false)

    static let retryFailed = RunFlag<Bool>(
        "retry-failed", .freshness,
        help: "Also request blacklisted URLs, and hosts that earlier runs gave up on.",
        brief: "also request blacklisted URLs", isConfigurable: false)
}

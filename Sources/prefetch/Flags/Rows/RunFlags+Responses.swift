import ConfigurationFiles
import Pipeline
import PrefetchModel

// Responses and their bodies

extension RunFlags {
    static let acceptStatus = RunFlag<StatusSet?>(
        "accept-status", .responses, value: "list",
        help: """
            Store images of these statuses, too, also in place of older ones: 404,500-502. Only with a \
            lifetime of the origin, or --ttl. none: no others.
            """)

    static let acceptType = RunFlag<MediaTypes?>(
        "accept-type", .responses, value: "list",
        help: "Accept only these values of Content-Type: image/*. Default */*: the bytes decide.")

    static let blacklistStatus = RunFlag<StatusSet?>(
        "blacklist-status", .responses, value: "list",
        help: """
            Statuses that blacklist a URL at once, or none; all others count as temporary. \
            Default: 4xx, with exceptions.
            """)

    static let method = RunFlag<RequestMethod>(
        "method", .responses, value: "method", default: .get,
        help: "Request only the heads of images (head): implies --no-store.")

    static let noStore = RunFlag<Bool>(
        "no-store", .responses,
        help: """
            Request every image and store nothing, to warm the caches of a CDN. The report has Age \
            and X-Cache.
            """)

    static let bodyFilter = RunFlag<BodyFilterArgument?>(
        "body-filter", .responses, value: "cmd",
        help: """
            Turn each body into an image first: base64, or a command that reads it on standard \
            input; or none. frames:CMD serves many bodies, each after its length (4 bytes, \
            big-endian).
            """, inProjects: .refused)
}

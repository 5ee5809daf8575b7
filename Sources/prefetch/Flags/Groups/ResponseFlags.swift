import ConfigurationFiles
import Manifests
import Pipeline
import PrefetchModel

/// Flags of `run` about accepted responses and their bodies.
struct ResponseFlags: FlagRows {
    static let flags = FlagTable(ResponseFlags())

    let acceptedStatuses = RunFlag<StatusSet?>(
        "accept-status", value: "list",
        help: """
            Store images of these statuses, too, also in place of older ones: 404,500-502. Only with a \
            lifetime of the origin, or --ttl. none: no others.
            """, inHosts: .likeRun, check: ValueCheck(mistake: ResponseFlags.mistake(inAccepted:))
    ) { $0.run.bodies.responses.acceptedStatuses = $1 }

    let acceptedTypes = RunFlag<MediaTypes?>(
        "accept-type", value: "list",
        help: "Accept only these values of Content-Type: image/*. Default */*: the bytes decide.",
        inHosts: .likeRun
    ) { $0.run.bodies.responses.acceptedTypes = $1 }

    let blacklistedStatuses = RunFlag<StatusSet?>(
        "blacklist-status", value: "list",
        help: """
            Statuses that blacklist a URL at once, or none; all others count as temporary. \
            Default: 4xx, with exceptions.
            """, inHosts: .likeRun
    ) { $0.run.bodies.responses.blacklistedStatuses = $1 }

    let method = RunFlag<RequestMethod>(
        "method", value: "method", default: .get,
        help: "Request only the heads of images (head): implies --no-store."
    ) {
        if $1 == .head { $0.run.warmOnly(.none) }
    }

    let storesNothing = RunFlag<Bool>(
        "no-store",
        help: """
            Request every image and store nothing, to warm the caches of a CDN. The report has Age \
            and X-Cache.
            """
    ) {
        if $1, $0.run.bodies.use != .none { $0.run.warmOnly(.dropped) }
    }

    let bodyFilter = RunFlag<BodyFilterArgument?>(
        "body-filter", value: "cmd",
        help: """
            Turn each body into an image first: base64, or a command that reads it on standard \
            input; or none. frames:CMD serves many bodies, each after its length (4 bytes, \
            big-endian).
            """, inProjects: .refused,
        inHosts: .entries {
            $0.bodyFilter = $1.filter
            $0.defaults.bodyFilter = $1.filter.map { .filtered($0.name) } ?? BodyFiltering.none
        }
    ) {
        guard let filter = $1.filter else { return }
        $0.run.bodies.filters[filter.name] = filter
        $0.run.images.variants.filter(by: filter.name)
    }

    /// The mistake in accepted statuses: one that never comes with an image.
    static func mistake(inAccepted statuses: StatusSet) -> String? {
        let isUnusable: (Int) -> Bool = { status in
            (100..<200).contains(status) || (300..<400).contains(status)
                || [204, 206].contains(status)
                || ResponseRules.withoutImage.contains(status) && statuses.names(status)
        }
        return (100...599).first { statuses.contains($0) && isUnusable($0) }.map {
            "takes no \($0): only 2xx, 4xx and 5xx without 204 to 206, "
                + "407, 429 and 503 can come with an image"
        }
    }
}

extension Flags<ResponseFlags> {
    /// Whether images are requested and not stored.
    var isWarmingOnly: Bool { self.storesNothing || self.method == .head }
}

extension RunConfiguration {
    fileprivate mutating func warmOnly(_ use: BodyUse) {
        bodies.use = use
        lifetimes.refresh = .force
        retriesFailed = true
    }
}

enum RequestMethod: String, CaseIterable {
    case get
    case head
}

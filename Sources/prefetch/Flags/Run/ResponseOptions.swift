import ArgumentParser
import Pipeline
import PrefetchModel

/// Flags of `run` about accepted responses and their bodies.
struct ResponseOptions: ParsableArguments {
    @Option(RunFlags.acceptStatus) var acceptedStatuses: StatusSet?
    @Option(RunFlags.acceptType) var acceptedTypes: MediaTypes?
    @Option(RunFlags.blacklistStatus) var blacklistedStatuses: StatusSet?
    @Option(RunFlags.method) var method: RequestMethod
    @Flag(RunFlags.noStore) var storesNothing: Bool
    @Option(RunFlags.bodyFilter) var bodyFilter: BodyFilterArgument?

    /// Whether images are requested and not stored.
    var isWarmingOnly: Bool { storesNothing || method == .head }

    func validate() throws {
        try acceptedStatuses.map(ResponseOptions.check)
    }

    /// - Throws: `ValidationError` for a status that never comes with an image.
    static func check(accepted statuses: StatusSet) throws {
        let isUnusable: (Int) -> Bool = { status in
            (100..<200).contains(status) || (300..<400).contains(status)
                || [204, 206].contains(status)
                || ResponseRules.withoutImage.contains(status) && statuses.names(status)
        }
        if let status = (100...599).first(where: { statuses.contains($0) && isUnusable($0) }) {
            throw ValidationError(
                "--accept-status takes no \(status): only 2xx, 4xx and 5xx without 204 to 206, "
                    + "407, 429 and 503 can come with an image")
        }
    }

    /// Changes the configuration after all other flags.
    func apply(to configuration: inout RunConfiguration) {
        configuration.bodies.responses.acceptedStatuses = acceptedStatuses ?? .none
        configuration.bodies.responses.acceptedTypes = acceptedTypes
        configuration.bodies.responses.blacklistedStatuses = blacklistedStatuses
        if let bodyFilter = bodyFilter?.filter {
            configuration.bodies.filters[bodyFilter.name] = bodyFilter
            configuration.images.variants.filter(by: bodyFilter.name)
        }
        guard isWarmingOnly else { return }
        configuration.bodies.use = method == .head ? .none : .dropped
        configuration.lifetimes.refresh = .force
        configuration.retriesFailed = true
    }
}

/// The method of requests for images.
enum RequestMethod: String, CaseIterable {
    case get
    case head
}

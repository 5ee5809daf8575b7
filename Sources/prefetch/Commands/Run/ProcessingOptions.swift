import ArgumentParser
import Pipeline
import PrefetchModel

/// Flags of `run` that make its configuration: the entries' order, requests, responses and
/// variants.
struct ProcessingOptions: ParsableArguments {
    @OptionGroup(title: FlagHeading.order.rawValue) var order: Flags<OrderFlags>
    @OptionGroup(title: FlagHeading.hosts.rawValue) var hosts: Flags<HostFlags>
    @OptionGroup(title: FlagHeading.limits.rawValue) var limits: Flags<TransferLimitFlags>
    @OptionGroup(title: FlagHeading.limits.rawValue) var imageLimits: Flags<ImageLimitFlags>
    @OptionGroup(title: FlagHeading.limits.rawValue) var runLimits: Flags<RunLimitFlags>
    @OptionGroup(title: FlagHeading.filters.rawValue) var filters: Flags<FilterFlags>
    @OptionGroup(title: FlagHeading.requests.rawValue) var requests: Flags<RequestFlags>
    @OptionGroup(title: FlagHeading.responses.rawValue) var responses: Flags<ResponseFlags>
    @OptionGroup(title: FlagHeading.freshness.rawValue) var freshness: Flags<FreshnessFlags>
    @OptionGroup(title: FlagHeading.encoding.rawValue) var storing: Flags<EncodingFlags>

    func validate() throws {
        guard responses.isWarmingOnly, freshness.offline || freshness.refresh == .none else {
            return
        }
        throw ValidationError(
            "--no-store and --method head request every image, and cannot be combined with "
                + "--offline or --refresh none")
    }

    /// The variants to store of each image, made of filtered bodies.
    func variantSet() throws -> VariantSet {
        var variants = try storing.combined.variantSet()
        if let filter = responses.bodyFilter?.filter { variants.filter(by: filter.name) }
        return variants
    }

    func apply(to settings: inout RunSettings) throws {
        try order.apply(to: &settings)
        try hosts.apply(to: &settings)
        try limits.apply(to: &settings)
        try imageLimits.apply(to: &settings)
        try runLimits.apply(to: &settings)
        try filters.apply(to: &settings)
        try requests.applyWithEnvironment(to: &settings)
        try freshness.apply(to: &settings)
        try storing.applyVariants(to: &settings)
        // They change variants and freshness.
        try responses.apply(to: &settings)
    }
}

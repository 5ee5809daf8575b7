import ArgumentParser
import Pipeline
import PrefetchModel

/// Flags of `put` and `import`, which store images by the rules of a run.
struct StoringOptions: ParsableArguments {
    /// The groups that take settings of configuration files.
    static let groups: [any FlagRows.Type] = [ImageLimitFlags.self, EncodingFlags.self]

    @Option(
        name: .customLong("ttl"),
        help: ArgumentHelp(
            """
            How long the images are fresh (default: \
            \(FreshnessFlags.flags.defaultLifetime.row.defaultText ?? ""), as if the origin did not say).
            """,
            valueName: "duration"))
    var lifetime: Duration?

    @OptionGroup(title: FlagHeading.limits.rawValue) var limits: Flags<ImageLimitFlags>
    @OptionGroup(title: FlagHeading.encoding.rawValue) var encoding: Flags<EncodingFlags>

    /// The variants to store of each image.
    var variants: VariantSet { get throws { try encoding.combined.variantSet() } }

    /// The rules of a run with the same flags.
    func configuration() throws -> RunConfiguration {
        var settings = RunSettings()
        try limits.apply(to: &settings)
        try encoding.applyVariants(to: &settings)
        settings.run.lifetimes.forced = lifetime
        return settings.run
    }
}

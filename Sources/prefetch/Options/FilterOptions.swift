import ArgumentParser
import Pipeline
import PrefetchModel

/// Flags of `run` about which images are wanted.
struct FilterOptions: ParsableArguments {
    @Option(
        name: .customLong("min-size"),
        help: ArgumentHelp(
            "Exclude images that are less wide or less high than this, upright: 256x256.",
            valueName: "wxh"))
    var minimumSize: DimensionsArgument?

    @Option(
        name: .customLong("max-aspect"),
        help: ArgumentHelp(
            "Exclude images whose longer side is more than this many times the shorter one.",
            valueName: "r"))
    var maximumAspect: Double?

    @Option(
        name: .customLong("min-bytes"),
        help: ArgumentHelp("Exclude images whose file, as it comes, is smaller.", valueName: "size")
    )
    var minimumBytes: SizeArgument?

    func validate() throws {
        if let maximumAspect, !(maximumAspect >= 1 && maximumAspect.isFinite) {
            throw ValidationError("--max-aspect must be at least 1")
        }
    }

    func apply(to configuration: inout RunConfiguration) {
        configuration.images.filter.minimumWidth = minimumSize?.width ?? 0
        configuration.images.filter.minimumHeight = minimumSize?.height ?? 0
        configuration.images.filter.maximumAspect = maximumAspect
        configuration.images.filter.minimumBytes = minimumBytes?.size ?? ByteCount(0)
    }
}

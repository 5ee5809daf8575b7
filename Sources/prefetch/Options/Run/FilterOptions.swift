import ArgumentParser
import Pipeline
import PrefetchModel

/// Flags of `run` that exclude images.
struct FilterOptions: ParsableArguments {
    @Option(RunFlags.minimumSize) var minimumSize: DimensionsArgument?
    @Option(RunFlags.maximumAspect) var maximumAspect: Double?
    @Option(RunFlags.minimumBytes) var minimumBytes: SizeArgument?

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

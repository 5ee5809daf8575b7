import ArgumentParser
import Manifests
import Pipeline
import PrefetchModel

/// Flags of `run` that exclude images.
struct FilterOptions: ParsableArguments {
    @Option(RunFlags.include) var included: [String]
    @Option(RunFlags.exclude) var excluded: [String]
    @Option(RunFlags.robotsDirectives) var robotsDirectives: String?
    @Option(RunFlags.minimumSize) var minimumSize: DimensionsArgument?
    @Option(RunFlags.maximumAspect) var maximumAspect: Double?
    @Option(RunFlags.minimumBytes) var minimumBytes: SizeArgument?

    func validate() throws {
        _ = try selection
        if let robotsDirectives {
            var rules = EntryChoiceRules()
            guard rules.follow(robotsDirectives: robotsDirectives) else {
                throw ValidationError(
                    "--robots-directives takes names separated by commas, like noai,noimageai")
            }
        }
        if let maximumAspect, !(maximumAspect >= 1 && maximumAspect.isFinite) {
            throw ValidationError("--max-aspect must be at least 1")
        }
    }

    /// The entries that the patterns select.
    var selection: EntrySelection {
        get throws {
            func patterns(
                _ texts: [String], _ flag: String
            ) throws -> [EntrySelection.Pattern] {
                try texts.map { text in
                    guard let pattern = EntrySelection.Pattern(text) else {
                        throw ValidationError(
                            "\(flag) takes a pattern like *.example.com or */photos/*, in ASCII; "
                                + "URLs have international names as xn--…, and spaces as %20")
                    }
                    return pattern
                }
            }
            var selection = EntrySelection()
            selection.included = try patterns(included, "--include")
            selection.excluded = try patterns(excluded, "--exclude")
            return selection
        }
    }

    func apply(to configuration: inout RunConfiguration) {
        if let robotsDirectives {
            _ = configuration.entries.follow(robotsDirectives: robotsDirectives)
        }
        configuration.images.filter.minimumWidth = minimumSize?.width ?? 0
        configuration.images.filter.minimumHeight = minimumSize?.height ?? 0
        configuration.images.filter.maximumAspect = maximumAspect
        configuration.images.filter.minimumBytes = minimumBytes?.size ?? ByteCount(0)
    }
}

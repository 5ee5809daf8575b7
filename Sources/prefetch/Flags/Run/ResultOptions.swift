import ArgumentParser
import Pipeline

/// Flags of `run` about its exit status.
struct ResultOptions: ParsableArguments {
    @Flag(RunFlags.dryRun) var isDryRun: Bool
    @Option(RunFlags.failOn) var countedFailures: CountedFailures
    @Option(RunFlags.maximumFailures) var tolerance: ToleranceArgument
    @Flag(RunFlags.allowEmpty) var allowsEmptyLists: Bool
    @Option(RunFlags.lock) var lock: LockArgument

    func apply(to configuration: inout RunConfiguration) {
        configuration.exit.counted = countedFailures
        configuration.exit.tolerance = tolerance.tolerance
        configuration.exit.allowsEmptyLists = allowsEmptyLists
    }
}

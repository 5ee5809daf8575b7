import ArgumentParser
import Pipeline

extension CountedFailures: ExpressibleByArgument {}

/// Flags of `run` about its exit status.
struct ResultOptions: ParsableArguments {
    @Option(
        name: .customLong("fail-on"),
        help: ArgumentHelp(
            """
            Which failures make the exit status 1. With new, blacklisted URLs do not count, and \
            neither do entries that fail again for the same reason.
            """, valueName: "which"))
    var countedFailures: CountedFailures = .any

    @Option(
        name: .customLong("max-failures"),
        help: ArgumentHelp(
            """
            How many of the failures that --fail-on counts, or what share of all entries, are \
            tolerated with exit status 0.
            """, valueName: "n|p%"))
    var tolerance = ToleranceArgument(.count(0))

    @Option(
        help: ArgumentHelp(
            """
            If another run holds the cache: fail (exit 75), skip (exit 0), wait, or wait=DURATION.
            """, valueName: "what"))
    var lock: LockArgument = .fail

    func apply(to configuration: inout RunConfiguration) {
        configuration.exit.counted = countedFailures
        configuration.exit.tolerance = tolerance.tolerance
    }
}

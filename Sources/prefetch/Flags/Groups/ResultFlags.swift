import ConfigurationFiles
import Pipeline

/// Flags of `run` about its exit status.
struct ResultFlags: FlagRows {
    static let flags = FlagTable(ResultFlags())

    let isDryRun = RunFlag<Bool>(
        "dry-run", short: "n",
        help: "Show what the run would do, like `prefetch plan`; --summary json prints JSON.",
        isConfigurable: false)

    let countedFailures = RunFlag<CountedFailures>(
        "fail-on", value: "which", sets: \.run.exit.counted,
        help: """
            Which failures make the exit status 1. With new, blacklisted URLs do not count, and \
            neither do entries that fail again for the same reason.
            """, brief: "failures that make the exit status 1")

    let tolerance = RunFlag<FailureTolerance>(
        "max-failures", value: "n|p%", sets: \.run.exit.tolerance,
        help: """
            How many of the failures that --fail-on counts, or what share of all entries, are \
            tolerated with exit status 0.
            """)

    let allowsEmptyLists = RunFlag<Bool>(
        "allow-empty",
        help: """
            Exit with 0 if a list has no entry. Otherwise that is status 1, since the command that \
            writes the list may have failed.
            """
    ) { $0.run.exit.allowsEmptyLists = $1 }

    let lock = RunFlag<LockArgument>(
        "lock", value: "what", default: .fail,
        help: """
            If another process holds the cache: fail (exit 75), skip (exit 0), wait, or wait=DURATION. \
            Waiting commands get it in no fixed order.
            """, brief: "if the cache is in use: fail, skip or wait")
}

/// The limits of a whole run. At the first one that is reached, nothing more starts.
package struct RunLimits: Sendable {
    /// The most entries that are requested; nil for any number.
    package var entries: Int?
    /// The end of the run; nil for none. Starts end earlier, so that running transfers can finish;
    /// unfinished ones are cancelled.
    package var deadline: ContinuousClock.Instant?
    /// Whether the first failure that decides the exit status ends the run.
    package var endsAtFailure = false

    package init() {}

    /// The time for the decode and commit of the last transfers.
    private static let commitTime = Duration.milliseconds(500)

    /// The time at which starts end; nil without a deadline. `start` is the run's, and
    /// `transferTime` a long time that a transfer may take.
    func lastStart(
        start: ContinuousClock.Instant, transferTime: Duration
    ) -> ContinuousClock.Instant? {
        guard let deadline else { return nil }
        // A short run spends most of its time on work.
        return deadline - min(transferTime + RunLimits.commitTime, max(.zero, deadline - start) / 4)
    }
}

import ArgumentParser
import Glibc
import Pipeline
import PrefetchModel
import Reporting

/// Flags of `run` about its start and its end.
struct RunLimitOptions: ParsableArguments {
    @Option(RunFlags.entryLimit) var entries: Int?
    @Option(RunFlags.deadline) var deadline: DurationArgument?
    @Option(RunFlags.until) var until: TimeOfDayArgument?
    @Flag(RunFlags.failFast) var endsAtFailure: Bool
    @Option(RunFlags.jitter) var jitter: DurationArgument?

    func validate() throws {
        if let entries, entries < 1 { throw ValidationError("--limit must be at least 1") }
        if let deadline, deadline.duration <= .zero {
            throw ValidationError("--deadline must be more than 0")
        }
    }

    /// The limits of a run of the process that has started now.
    func limits() -> RunLimits {
        let left = [deadline?.duration, until?.timeLeft(at: WallClock.now())]
            .compactMap(\.self).min()
        var limits = RunLimits()
        limits.entries = entries
        limits.deadline = left.map { ContinuousClock.now + $0 }
        limits.endsAtFailure = endsAtFailure
        return limits
    }

    /// Waits for a random time, at most until the deadline; signals end the process.
    func waitForStart(_ limits: RunLimits, telling tell: (String) -> Void) {
        guard let jitter, jitter.duration > .zero else { return }
        let start = ContinuousClock.now
        var time = start + jitter.duration * Double.random(in: 0...1)
        if let deadline = limits.deadline { time = min(time, deadline) }
        tell("waits \(durationText(time - start)) (--jitter)")
        while case let left = time - ContinuousClock.now, left > .zero {
            // Whole milliseconds, at least one.
            usleep(UInt32(min(1000, max(1, Int(left / .milliseconds(1))))) * 1000)
        }
    }
}

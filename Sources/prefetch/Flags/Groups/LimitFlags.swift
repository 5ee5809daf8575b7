import ConfigurationFiles
import Decoding
import Glibc
import Pipeline
import PrefetchModel
import Reporting

/// Flags of `run` about the time and the pace of transfers.
struct TransferLimitFlags: FlagRows {
    static let flags = FlagTable(TransferLimitFlags())

    let connectTimeout = RunFlag<Duration>(
        "connect-timeout", value: "duration", sets: \.run.limits.connectTimeout,
        help: "Time limit for name resolution, connection and TLS handshake.", inHosts: .likeRun,
        check: .positive)

    let stallTimeout = RunFlag<Duration>(
        "stall-timeout", value: "duration", sets: \.run.limits.stallTimeout,
        help: "Longest time without receiving a byte.", inHosts: .likeRun, check: .positive)

    let timeout = RunFlag<Duration>(
        "timeout", value: "duration", sets: \.run.limits.totalTimeout,
        help: "Time limit per transfer; time in the queue does not count.",
        brief: "time limit per transfer", inHosts: .likeRun, check: .positive)

    let rate = RunFlag<ByteCount?>(
        "limit-rate", value: "size",
        help: """
            Bytes received per second over all transfers, at least 1KiB; hosts share it equally.
            """, check: .atLeast(ByteCount(1024), "1KiB")
    ) { $0.run.hosts.bytesPerSecond = $1 }
}

/// Flags of `run` and `put` about the bytes, pixels, processor time and memory of an image.
struct ImageLimitFlags: FlagRows {
    static let flags = FlagTable(ImageLimitFlags())

    let maximumBodySize = RunFlag<ByteCount>(
        "max-filesize", value: "size", sets: \.run.limits.maximumBodySize,
        help: "Largest response body.", check: .atLeast(ByteCount(1), "1"))

    let maximumPixels = RunFlag<Int>(
        "max-pixels", value: "n", sets: \.run.images.maximumPixels,
        help: "Largest image, as width × height.", check: .atLeast(1))

    let maximumDecodeTime = RunFlag<Duration>(
        "max-decode-time", value: "duration", sets: \.run.images.maximumDecodeTime,
        help: "Most processor time per image, for decoding and encoding together.",
        check: .positive)

    let memory = RunFlag<ByteCount>(
        "memory", value: "size", sets: \.run.images.memory,
        help: "Memory for response bodies (a quarter) and pixels (the rest); at least 16MiB.",
        check: .atLeast(.mebibytes(16), "16MiB"))

    let sandbox = RunFlag<SandboxMode>(
        "sandbox", value: "mode", sets: \.run.images.sandbox,
        help: """
            Decode images in processes that can only compute: behind the walls that this machine \
            has, only if it has all, or not.
            """, inProjects: .refused)
}

/// Flags of `run` about redirects, its start and its end.
struct RunLimitFlags: FlagRows {
    static let flags = FlagTable(RunLimitFlags())

    let maximumRedirects = RunFlag<Int>(
        "max-redirects", value: "n", sets: \.run.redirects.maximum,
        help: "Most redirects per entry.", check: .atLeast(0))

    let entries = RunFlag<Int?>(
        "limit", value: "n",
        help: "Request at most N entries. The rest is left, with exit status 3.",
        check: .atLeast(1))

    let deadline = RunFlag<Duration?>(
        "deadline", value: "duration",
        help: """
            Time limit of the run, waiting for the cache included. Nothing starts shortly before it, \
            and the rest is left, with exit status 3.
            """, check: .positive)

    let until = RunFlag<TimeOfDayArgument?>(
        "until", value: "hh:mm",
        help: "As --deadline, as a local time: the next 06:00.", replaces: ["deadline"])

    let endsAtFailure = RunFlag<Bool>(
        "fail-fast",
        help: "End the run at the first failure that decides the exit status.")

    let jitter = RunFlag<Duration?>(
        "jitter", value: "duration",
        help:
            "Wait for a random time up to this before the run, so that machines do not start together."
    )
}

extension Flags<RunLimitFlags> {
    func limits() -> RunLimits {
        let left = [self.deadline, self.until?.timeLeft(at: WallClock.now())]
            .compactMap(\.self).min()
        var limits = RunLimits()
        limits.entries = self.entries
        limits.deadline = left.map { ContinuousClock.now + $0 }
        limits.endsAtFailure = self.endsAtFailure
        return limits
    }

    /// Waits for a random time, at most until the deadline; signals end the process.
    func waitForStart(_ limits: RunLimits, telling tell: (String) -> Void) {
        guard let jitter = self.jitter, jitter > .zero else { return }
        let start = ContinuousClock.now
        var time = start + jitter * Double.random(in: 0...1)
        if let deadline = limits.deadline { time = min(time, deadline) }
        tell("waits \(durationText(time - start)) (--jitter)")
        while case let left = time - ContinuousClock.now, left > .zero {
            // Whole milliseconds, at least one.
            usleep(UInt32(min(1000, max(1, Int(left / .milliseconds(1))))) * 1000)
        }
    }
}

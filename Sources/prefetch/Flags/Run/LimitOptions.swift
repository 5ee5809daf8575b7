import ArgumentParser
import Pipeline
import PrefetchModel

/// Flags of `run` about the time, redirects and image size that an entry may take.
struct LimitOptions: ParsableArguments {
    @Option(RunFlags.connectTimeout) var connectTimeout: DurationArgument
    @Option(RunFlags.stallTimeout) var stallTimeout: DurationArgument
    @Option(RunFlags.timeout) var timeout: DurationArgument
    @Option(RunFlags.limitRate) var rate: SizeArgument?
    @OptionGroup var images: ImageLimitOptions
    @Option(RunFlags.maximumRedirects) var maximumRedirects: Int

    func validate() throws {
        let durations = [
            ("--connect-timeout", connectTimeout), ("--stall-timeout", stallTimeout),
            ("--timeout", timeout),
        ]
        for (name, value) in durations { try LimitOptions.check(value, name) }
        if let rate, rate.size.bytes < 1024 {
            throw ValidationError("--limit-rate must be at least 1KiB")
        }
        guard maximumRedirects >= 0 else {
            throw ValidationError("--max-redirects must be at least 0")
        }
    }

    static func check(_ timeout: DurationArgument, _ flag: String) throws {
        guard timeout.duration > .zero else {
            throw ValidationError("\(flag) must be more than 0")
        }
    }

    func apply(to configuration: inout RunConfiguration) {
        configuration.limits.connectTimeout = connectTimeout.duration
        configuration.limits.stallTimeout = stallTimeout.duration
        configuration.limits.totalTimeout = timeout.duration
        configuration.limits.bytesPerSecond = rate?.size
        images.apply(to: &configuration)
        configuration.limits.maximumRedirects = maximumRedirects
    }
}

import ArgumentParser
import Pipeline
import PrefetchModel

/// Flags of `run` and `put` about the bytes, pixels, processor time and memory of an image.
struct ImageLimitOptions: ParsableArguments {
    @Option(RunFlags.maximumBodySize) var maximumBodySize: SizeArgument
    @Option(RunFlags.maximumPixels) var maximumPixels: Int
    @Option(RunFlags.maximumDecodeTime) var maximumDecodeTime: DurationArgument
    @Option(RunFlags.memory) var memory: SizeArgument

    static let names = Set(
        [
            RunFlags.maximumBodySize.row, RunFlags.maximumPixels.row,
            RunFlags.maximumDecodeTime.row,
            RunFlags.memory.row,
        ].map(\.name))

    func validate() throws {
        let positive = [
            ("--max-pixels", maximumPixels), ("--max-filesize", maximumBodySize.size.bytes),
        ]
        for (name, value) in positive where value < 1 {
            throw ValidationError("\(name) must be at least 1")
        }
        guard memory.size >= .mebibytes(16) else {
            throw ValidationError("--memory must be at least 16MiB")
        }
        guard maximumDecodeTime.duration > .zero else {
            throw ValidationError("--max-decode-time must be more than 0")
        }
    }

    func apply(to configuration: inout RunConfiguration) {
        configuration.limits.maximumBodySize = maximumBodySize.size
        configuration.images.maximumPixels = maximumPixels
        configuration.images.maximumDecodeTime = maximumDecodeTime.duration
        configuration.images.memory = memory.size
    }
}

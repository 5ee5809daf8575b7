import CodecFuzzing
import Foundation
import PrefetchModel
import SeededRandom
import Testing
import Threading

@testable import Codecs

/// All work on an image ends when it is cancelled or its time limit is reached.
@Suite(.serialized, .timeLimit(.minutes(15))) struct InterruptionTests {
    /// One path through the codecs.
    struct Path: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let source: Source
        let recipe: Recipe
        /// The memory of the structure check; nil for decoding.
        var memoryBytes: Int?

        func run(
            _ limits: CodecLimits = CodecLimits(), _ cancellation: Cancellation? = nil
        ) throws -> Result<ProcessedImage, CodecError> {
            try source.bytes.withUnsafeBytes { source in
                let header = try Codecs.header(of: source)
                return Result { () throws(CodecError) in
                    if let memoryBytes {
                        return try checkedStructure(
                            of: source, header: header, limits: limits, memoryBytes: memoryBytes,
                            cancellation: cancellation)
                    }
                    return try process(
                        source, header: header, recipe: recipe, limits: limits,
                        cancellation: cancellation)
                }
            }
        }
    }

    enum Source: CaseIterable {
        case jpeg, turnedJPEG, progressiveJPEG, png, turnedPNG, animation

        private static let all = try? Dictionary(
            uniqueKeysWithValues: allCases.map { ($0, try $0.make()) })

        var bytes: [UInt8] { Source.all?[self] ?? [] }

        private func make() throws -> [UInt8] {
            let (width, height) = (1536, 1024)
            var numbers = SplitMix(seed: 7)
            let samples = (0..<width * height * 3).map { place in
                UInt8(truncatingIfNeeded: place / 3000 + Int(numbers.next() & 7))
            }
            let jpeg = try Pixels(width: width, height: height, samples: samples).jpeg(quality: 95)
            switch self {
            case .jpeg: return jpeg
            case .turnedJPEG:
                return Array(jpeg[..<2]) + JPEGFile.orientationSegment(6) + Array(jpeg[2...])
            case .progressiveJPEG: return HandmadeJPEG.emptyScans(100, side: 2048)
            case .png, .turnedPNG:
                let png = try stored(jpeg, Recipe(encoding: .png), effort: .fast).bytes
                guard self == .turnedPNG else { return png }
                let turned = PNGFile.chunk(.eXIf, ExifOrientation.minimalTIFF(6))
                return Array(png[..<33]) + turned + Array(png[33...])
            case .animation:
                let png = try stored(jpeg, Recipe(encoding: .png), effort: .fast).bytes
                return try Source.animation(of: png, frames: 6)
            }
        }

        /// An animation that repeats the still image.
        private static func animation(of png: [UInt8], frames: UInt32) throws -> [UInt8] {
            func bytes(_ value: UInt32) -> [UInt8] {
                [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
            }
            let chunks = try png.withUnsafeBytes { try PNGFile($0) }.chunks
            let image = try #require(chunks.first { $0.type == .IDAT })
            let control = Array(png[16..<24]) + [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 10, 0, 0]
            var animation = PNGFile.chunk(.acTL, bytes(frames) + bytes(0))
            for frame in 0..<frames {
                animation += PNGFile.chunk(.fcTL, bytes(2 * frame) + control)
                animation += PNGFile.chunk(.fdAT, bytes(2 * frame + 1) + png[image.data])
            }
            let end = png.count - PNGFile.endBytes
            var file = Array(png[..<33])
            file += animation.prefix(20)
            file += png[33..<end]
            file += animation.dropFirst(20)
            file += png[end...]
            return file
        }
    }

    static let paths: [Path] = {
        func recipe(_ encoding: Recipe.Encoding, _ effort: EncodingEffort = .balanced) -> Recipe {
            var recipe = Recipe(encoding: encoding, quality: 50)
            recipe.effort = effort
            return recipe
        }
        var small = recipe(.jpeg)
        small.maximumStoredBytes = 1000
        // At a quarter of the size.
        var thumbnail = recipe(.jpeg)
        thumbnail.transformations = [.resize(.fit(width: 128, height: 128))]
        var paths = [
            Path(testDescription: "JPEG to JPEG", source: .jpeg, recipe: recipe(.same)),
            Path(testDescription: "JPEG turned", source: .turnedJPEG, recipe: recipe(.same)),
            Path(testDescription: "JPEG decoded", source: .jpeg, recipe: recipe(.original)),
            Path(testDescription: "scans", source: .progressiveJPEG, recipe: recipe(.same)),
            Path(testDescription: "JPEG made small", source: .jpeg, recipe: small),
            Path(testDescription: "JPEG made a thumbnail", source: .jpeg, recipe: thumbnail),
            Path(testDescription: "PNG to JPEG", source: .png, recipe: recipe(.jpeg)),
            Path(testDescription: "PNG made a small JPEG", source: .png, recipe: small),
            Path(testDescription: "PNG turned", source: .turnedPNG, recipe: recipe(.png, .fast)),
            Path(testDescription: "PNG decoded", source: .png, recipe: recipe(.original)),
            Path(testDescription: "animation", source: .animation, recipe: recipe(.same)),
            Path(
                testDescription: "structure of a PNG", source: .png, recipe: recipe(.original),
                memoryBytes: .max),
            Path(
                testDescription: "structure of a PNG by its rows", source: .png,
                recipe: recipe(.original), memoryBytes: 0),
            Path(
                testDescription: "structure of an animation", source: .animation,
                recipe: recipe(.original), memoryBytes: .max),
        ]
        if EncodedImageFormat.webp.isMade {
            paths.append(Path(testDescription: "to WebP", source: .png, recipe: recipe(.webp)))
            paths.append(
                Path(testDescription: "to the smallest", source: .jpeg, recipe: recipe(.auto)))
        }
        for effort in EncodingEffort.allCases {
            paths.append(
                Path(
                    testDescription: "JPEG to PNG, \(effort)", source: .jpeg,
                    recipe: recipe(.png, effort)))
            paths.append(
                Path(
                    testDescription: "PNG to PNG, \(effort)", source: .png,
                    recipe: recipe(.png, effort)))
        }
        return paths
    }()

    @Test(arguments: paths)
    func cancelledWorkDoesNotStart(path: Path) throws {
        let cancellation = Cancellation()
        cancellation.cancel()
        try #require(!path.source.bytes.isEmpty)
        let begin = ThreadClock.now
        #expect(throws: CodecError.cancelled) { try path.run(CodecLimits(), cancellation).get() }
        #expect(ThreadClock.now - begin < .milliseconds(10))
    }

    /// The minimum processor time of the whole path.
    private func time(of path: Path) throws -> Duration {
        try #require(!path.source.bytes.isEmpty)
        var least = Duration.seconds(1000)
        for _ in 0..<2 {
            let begin = ThreadClock.now
            _ = try path.run().get()
            least = min(least, ThreadClock.now - begin)
        }
        return least
    }

    /// Work ends soon after the time limit, wherever it is reached.
    @Test(arguments: paths)
    func everyStepEndsAtTimeLimit(path: Path) throws {
        let whole = try time(of: path)
        for percent in [2, 25, 50] {
            var limits = CodecLimits()
            limits.maximumTime = whole * percent / 100
            let begin = ThreadClock.now
            let result = try path.run(limits)
            let spent = ThreadClock.now - begin
            // The same work may take less time on a busy machine.
            guard spent > limits.maximumTime else { continue }
            #expect(
                throws: CodecError.limitExceeded(
                    "more processor time than --max-decode-time allows"),
                "\(percent) % of \(whole)"
            ) { try result.get() }
            #expect(
                spent - limits.maximumTime < .milliseconds(600),
                "\(percent) % of \(whole): \(spent)"
            )
        }
    }

    private struct Progress {
        var clock: clockid_t?
        var end: (result: Result<ProcessedImage, any Error>, time: Duration)?

        /// The processor time of the thread.
        var spent: Duration {
            guard let clock else { return .zero }
            var time = timespec()
            clock_gettime(clock, &time)
            return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
        }
    }

    /// Cancels in the middle of the work, from another thread.
    @Test(arguments: paths)
    func anotherThreadCancelsRunningWork(path: Path) throws {
        let whole = try time(of: path)
        // If this thread wakes too late, work of a few milliseconds is already done.
        for _ in 0..<100 {
            let (result, time) = cancelled(path, after: whole / 3)
            if case .success = result { continue }
            #expect(throws: CodecError.cancelled, "\(time) of \(whole)") { try result.get() }
            #expect(time < whole / 3 + .milliseconds(700), "\(time) of \(whole)")
            return
        }
        Issue.record("never cancelled")
    }

    /// The result of the work and its processor time, if it is cancelled after `share` of that
    /// time.
    private func cancelled(
        _ path: Path, after share: Duration
    ) -> (Result<ProcessedImage, any Error>, Duration) {
        let cancellation = Cancellation()
        let progress = Monitor(Progress())
        Thread.detachNewThread {
            var clock = clockid_t()
            pthread_getcpuclockid(pthread_self(), &clock)
            progress.update { $0.clock = clock }
            let begin = ThreadClock.now
            let result = Result { try path.run(CodecLimits(), cancellation).get() }
            let time = ThreadClock.now - begin
            progress.update { $0.end = (result, time) }
        }
        // Under the mutex, while the thread is alive.
        progress.wait { (progress, now) -> Monitor<Progress>.Decision<Void> in
            let isMidway = progress.end != nil || progress.spent > share
            return isMidway ? .ready(()) : .wait(until: now + .milliseconds(1))
        }
        cancellation.cancel()
        return progress.wait { progress, _ in
            progress.end.map { .ready($0) } ?? .wait(until: nil)
        }
    }
}

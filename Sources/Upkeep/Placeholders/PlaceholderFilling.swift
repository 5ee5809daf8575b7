package import CacheStorage
import Codecs
import Decoding
import Hashing
import Pipeline
package import PrefetchModel
import Threading

/// Adds missing placeholders: decodes stored files on several threads, and commits batch by batch,
/// so that finished work is kept whenever it is stopped.
package struct PlaceholderFilling: Sendable {
    package struct FillingProgress: Sendable {
        package fileprivate(set) var made = 0
        /// The number of files that are damaged, unreadable or cannot be decoded.
        package fileprivate(set) var failed = 0
        /// The number of images of a format that is not decoded.
        package fileprivate(set) var skipped = 0
        /// The number of images without a placeholder at the start.
        package let total: Int

        package var done: Int { made + failed + skipped }
    }

    package typealias FailedImage = (key: String, message: String)

    private enum FillingOutcome: Sendable {
        case made(Placeholder), skipped, failed(FailedImage)
    }

    /// The images of one commit: at most a second's work.
    private static let batchSize = 256

    private let cache: OpenCache
    private let crashes: CrashLog
    private let workers: Int
    private let processor: BudgetedImageProcessor

    package init(_ cache: OpenCache, workers: Int, at now: Timestamp) throws(StorageError) {
        self.cache = cache
        self.workers = workers
        let rules = ImageRules()
        let limits = CodecLimits(
            maximumPixels: rules.maximumPixels, maximumTime: rules.maximumDecodeTime)
        processor = BudgetedImageProcessor(
            DecodingRules(header: HeaderRules(limits: limits, memory: rules.memory)),
            sandbox: .auto)
        crashes = try CrashLog(directory: cache.directory, at: now)
    }

    /// Makes all placeholders. `report` is called on this thread with each batch's failures.
    package func run(_ report: (FillingProgress, [FailedImage]) -> Void) throws(StorageError)
        -> FillingProgress
    {
        let result = Result { () throws(StorageError) in try makeAll(report) }
        try crashes.end()
        return try result.get()
    }

    private func makeAll(
        _ report: (FillingProgress, [FailedImage]) -> Void
    ) throws(StorageError) -> FillingProgress {
        var progress = FillingProgress(total: try cache.placeholders.count())
        var last: Int64 = 0
        while true {
            let batch = try cache.placeholders.candidates(
                after: last, limit: PlaceholderFilling.batchSize)
            guard let end = batch.last else { return progress }
            last = end.resource
            var made: [(resource: Int64, Placeholder)] = []
            var failures: [FailedImage] = []
            let results = batch.parallelMap(workers: workers, name: "placeholder") {
                [self] candidate in
                make(candidate, hasher: SHA256Hasher())
            }
            for (candidate, result) in zip(batch, results) {
                switch result {
                case .made(let placeholder): made.append((candidate.resource, placeholder))
                case .skipped: progress.skipped += 1
                case .failed(let failure): failures.append(failure)
                }
            }
            try cache.checkHold()
            try cache.placeholders.put(made)
            progress.made += made.count
            progress.failed += failures.count
            report(progress, failures)
        }
    }

    private func make(
        _ candidate: PlaceholderStore.LackingImage, hasher: borrowing SHA256Hasher
    ) -> FillingOutcome {
        func failure(_ message: String) -> FillingOutcome {
            .failed((candidate.key, message))
        }
        let image = candidate.image
        let isUndecoded = CodecLibraries.isSandboxed(image.format) && !image.isDecoded
        guard image.format.isDecoded, !isUndecoded else { return .skipped }
        if let crash = crashes.crash(of: image.digest) { return failure(crash.description) }
        switch cache.directory.bytes(of: image, hasher: hasher) {
        case .damaged: return failure("\(image.relativePath) is missing or damaged")
        case .unreadable(let error): return failure(error.description)
        case .whole(let bytes):
            let result = Result {
                try bytes.withUnsafeBytes { try processor.perform(.placeholder, on: $0) }
            }
            do {
                try crashes.note(result, of: image.digest)
                return try result.get().placeholder.map { .made($0) } ?? .skipped
            } catch {
                return failure("\(image.relativePath): \(error)")
            }
        }
    }
}

import Codecs
import Glibc
import PrefetchModel
import Synchronization
import Threading

/// The lower limit of a cold run. Reads, decodes and re-encodes every image of a list as a run
/// does, on all processors, and discards the results. No network, no digests, no rows.
final class LimitBench: Sendable {
    private let paths: [String]
    private let recipe: Recipe
    private let contents: @Sendable (String) -> [UInt8]
    private let next = Atomic(0)
    private let failures = Atomic(0)

    /// `contents` reads a file by its path.
    init(_ paths: [String], quality: Int, contents: @escaping @Sendable (String) -> [UInt8]) {
        self.paths = paths
        self.contents = contents
        recipe = Recipe(quality: quality)
    }

    /// - Returns: the number of images without a result.
    /// - Throws: when the system cannot start a thread.
    func run() throws(UserError) -> Int {
        var threads: [OwnedThread] = []
        for number in 0..<max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) {
            threads.append(try OwnedThread(name: "limit \(number)") { self.work() })
        }
        for thread in threads { thread.join() }
        return failures.load(ordering: .relaxed)
    }

    private func work() {
        while case let number = next.add(1, ordering: .relaxed).oldValue, number < paths.count {
            // Failures are only counted: they invalidate the figure anyway. The other modes report
            // the reason.
            let isMade = contents(paths[number]).withUnsafeBytes { bytes in
                guard let header = try? header(of: bytes),
                    let entry = try? ImageProcessor.process(
                        bytes, header: header, recipes: [recipe]),
                    case .success? = entry.results.first
                else { return false }
                return true
            }
            if !isMade { failures.add(1, ordering: .relaxed) }
        }
    }
}

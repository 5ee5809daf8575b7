import Codecs
import Glibc
import PrefetchModel
import Synchronization
import Threading

/// What a cold run cannot do without: every image of a list read from its file, decoded and encoded again as a run does
/// it, on all processors at once, and nothing kept. No network, no digests, no rows.
final class LimitBench: Sendable {
    private let paths: [String]
    private let recipe: Recipe
    private let contents: @Sendable (String) -> [UInt8]
    private let next = Atomic(0)
    private let failures = Atomic(0)

    /// `contents` reads the file of a path.
    init(
        _ paths: [String], quality: Int, contents: @escaping @Sendable (String) -> [UInt8]
    ) {
        self.paths = paths
        self.contents = contents
        recipe = Recipe(quality: quality)
    }

    /// - Returns: how many images there is no result of.
    /// - Throws: when the system has no room for a thread.
    func run() throws(ThreadError) -> Int {
        var threads: [OwnedThread] = []
        for number in 0..<max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) {
            threads.append(try OwnedThread(name: "limit \(number)") { self.work() })
        }
        for thread in threads { thread.join() }
        return failures.load(ordering: .relaxed)
    }

    private func work() {
        while case let number = next.add(1, ordering: .relaxed).oldValue, number < paths.count {
            // Only counted, since the figure is of no use then; the other ways say what is wrong with a file.
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

package import CacheStorage
import PrefetchModel
import Threading

/// Compares a cache's content files with their names and with the rows that name them, and rows with each other.
///
/// Beside a run it tells no false tales: whatever looks wrong is looked at again, and a file without a row counts
/// only while nobody holds the cache.
package struct CacheVerification: Sendable {
    /// Something that is not as it should be.
    package struct Finding: Hashable, Sendable {
        package enum Kind: String, Sendable {
            /// The database cannot be read as a whole.
            case database
            /// A row's file is not there, has another size, or something else has its place.
            case missing
            /// A file's bytes are others than its name says.
            case damaged
            /// A file is not of the format or the size in pixels that its row says.
            case mismatch
            /// A file cannot be read.
            case unreadable
            /// A file that no row names.
            case orphan
            /// Something in `content` that is no content file of ours; it is left alone.
            case stranger
            /// The table `freshness` does not say what it is a copy of.
            case freshness
            /// A body that broke off is gone or damaged.
            case partial
        }

        package let kind: Kind
        /// Below the cache directory; nil where it is about rows alone.
        package var path: String?
        /// Of images that it is about.
        package var keys: [String] = []
        package let message: String
        /// Whether a repair has mended it.
        package var isMended = false
    }

    /// How far it is, or was.
    package struct Totals: Sendable {
        package fileprivate(set) var files = 0
        /// Of files that were read.
        package fileprivate(set) var bytes = 0
        package fileprivate(set) var filesRead = 0
        package fileprivate(set) var findings = 0
        package fileprivate(set) var mended = 0
        /// Then nothing else was looked at.
        package fileprivate(set) var isDatabaseDamaged = false
        /// Of 256.
        package fileprivate(set) var folders = 0

        fileprivate mutating func tell(_ finding: Finding, _ report: (Event) -> Void) {
            findings += 1
            if finding.isMended { mended += 1 }
            report(.finding(finding))
        }
    }

    /// Each of these is handed over on the calling thread.
    package enum Event: Sendable {
        case finding(Finding)
        case progress(Totals)
    }

    private let inspection: CacheInspection
    /// Nil where nothing is mended.
    private let cache: OpenCache?
    private let sample: Double
    private let workers: Int

    /// - Parameters:
    ///   - catalog: the cache, which is only read.
    ///   - sample: the share of files whose bytes are read, chosen by chance; 1 for all.
    ///   - workers: threads, 1 or more.
    /// - Throws: when the cache's folders cannot be opened.
    package init(
        reading catalog: CacheCatalog, sample: Double, workers: Int
    ) throws(StorageError) {
        inspection = try CacheInspection(catalog)
        cache = nil
        self.sample = sample
        self.workers = workers
    }

    /// The same for a cache that is open for writing, in which what is found is mended.
    ///
    /// - Throws: as the other.
    package init(
        repairing cache: OpenCache, sample: Double, workers: Int
    ) throws(StorageError) {
        inspection = try CacheInspection(cache)
        self.cache = cache
        self.sample = sample
        self.workers = workers
    }

    /// Looks at everything.
    ///
    /// - Throws: when the cache cannot be read, or what is found cannot be mended.
    package func run(_ report: (Event) -> Void) throws(StorageError) -> Totals {
        var totals = Totals()
        do throws(StorageError) {
            try inspection.findDamage()
        } catch {
            guard error.isDamage else { throw error }
            // Nothing else that it says can be believed.
            totals.isDatabaseDamaged = true
            totals.tell(Finding(kind: .database, path: nil, message: error.message), report)
            return totals
        }
        for name in try inspection.strangeNames() {
            let path = "content/\(name)"
            totals.tell(
                Finding(kind: .stranger, path: path, message: "is no folder of content files"),
                report)
        }
        try checkFolders(&totals, report)
        for finding in try freshnessFindings() { totals.tell(finding, report) }
        for finding in try partialFindings() { totals.tell(finding, report) }
        report(.progress(totals))
        return totals
    }

    // MARK: Files

    private func checkFolders(
        _ totals: inout Totals, _ report: (Event) -> Void
    ) throws(StorageError) {
        let work = Monitor(Work())
        let step: @Sendable () -> Void = {
            var check = FolderCheck(
                inspection: inspection, sample: sample, isHolder: cache != nil)
            while let folder = work.update({ $0.takeNext() }) {
                let result = Result { () throws(StorageError) in try check.run(folder) }
                work.update { $0.results.append(result) }
            }
        }
        var threads: [OwnedThread] = []
        for number in 0..<max(workers, 1) {
            // Fewer will do.
            guard let thread = try? OwnedThread(name: "verify \(number)", step) else { break }
            threads.append(thread)
        }
        if threads.isEmpty { step() }
        defer {
            work.update { $0.next = Work.end }
            for thread in threads { thread.join() }
        }
        for _ in CacheInspection.folders {
            let result = work.wait { work, _ in
                work.results.popLast().map { .ready($0) } ?? .wait(until: nil)
            }
            let found = try result.get()
            totals.files += found.files
            totals.filesRead += found.filesRead
            totals.bytes += found.bytes
            totals.folders += 1
            for finding in try mended(found.problems) { totals.tell(finding, report) }
            report(.progress(totals))
        }
    }

    private struct Work {
        static let end = CacheInspection.folders.count

        var next = 0
        var results: [Result<FolderCheck.Found, StorageError>] = []

        mutating func takeNext() -> UInt8? {
            guard next < Work.end else { return nil }
            defer { next += 1 }
            return UInt8(next)
        }
    }

    /// What a repair has made of them.
    private func mended(_ problems: [FolderCheck.Problem]) throws(StorageError) -> [Finding] {
        guard let cache else { return problems.map(\.finding) }
        try cache.dropImages(problems.compactMap(\.wrongImage))
        var findings: [Finding] = []
        for problem in problems {
            var finding = problem.finding
            if let image = problem.wrongImage {
                finding.isMended = !cache.directory.isTaken(image)
            } else if finding.kind == .orphan, let path = finding.path {
                finding.isMended = try cache.removeOrphan(path)
            }
            findings.append(finding)
        }
        return findings
    }

    // MARK: Rows

    private func partialFindings() throws(StorageError) -> [Finding] {
        let damaged = try inspection.damagedPartials()
        guard !damaged.isEmpty else { return [] }
        if let cache {
            for key in damaged { try cache.partials.discard(key: key) }
        }
        // A run may have taken one meanwhile. Rows that cannot be read stay for the next run.
        let left = Set(try inspection.damagedPartials())
        return damaged.filter { cache != nil || left.contains($0) }.map { key in
            Finding(
                kind: .partial, keys: [key],
                message: "the part of its body that had come is gone or damaged",
                isMended: !left.contains(key))
        }
    }

    private func freshnessFindings() throws(StorageError) -> [Finding] {
        let found = try inspection.freshnessFindings()
        guard !found.isEmpty else { return [] }
        if let cache { try cache.rebuildFreshness() }
        var findings = found.keys.map { key in
            Finding(
                kind: .freshness, keys: [key], message: "its freshness is not what its row says",
                isMended: cache != nil)
        }
        if found.strayRows > 0 {
            findings.append(
                Finding(
                    kind: .freshness,
                    message: "rows of freshness that no image has: \(found.strayRows)",
                    isMended: cache != nil))
        }
        return findings
    }
}

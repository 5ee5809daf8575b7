package import CacheStorage
package import PrefetchModel
import Threading

/// Compares a cache's content files with their names and with the rows that name them, and rows with each other.
///
/// Beside a run it raises no false alarm: whatever looks wrong is looked at again, and a file without a row counts
/// only while nobody holds the cache.
///
/// The 256 folders of content files are taken in their order, so that one that is stopped can go on later.
package struct CacheVerification: Sendable {
    /// What is looked at, and for how long.
    package struct Extent: Sendable {
        /// The share of files whose bytes are read, chosen at random; 1 for all.
        package var sample = 1.0
        /// Only the bytes of files that were stored or changed at this time or later are read; nil for all. It is the
        /// file system's time of change, which nobody sets.
        package var changedSince: Timestamp?
        /// When it stops; what it has begun by then is finished, and that is one folder at least.
        package var deadline: ContinuousClock.Instant?
        /// Folders that an earlier one has looked at, 0…256; they are left out.
        package var finishedFolders = 0
        /// Threads, 1 or more.
        package var workers = 1
        /// The wall clock.
        package var now: Timestamp

        package init(at now: Timestamp) {
            self.now = now
        }
    }

    /// How far it is, or was.
    package struct Totals: Sendable {
        package fileprivate(set) var files = 0
        /// Of files that were read.
        package fileprivate(set) var bytes = 0
        package fileprivate(set) var filesRead = 0
        package fileprivate(set) var findings = 0
        package fileprivate(set) var repaired = 0
        /// Of the findings, those that a repair mends, or has repaired.
        package fileprivate(set) var repairable = 0
        /// Then nothing else was looked at.
        package fileprivate(set) var isDatabaseDamaged = false
        /// Of 256, with those that were left out.
        package fileprivate(set) var folders = 0
        /// False when it was stopped, or ran into its deadline.
        package fileprivate(set) var isComplete = false

        fileprivate mutating func tell(_ finding: Finding, _ report: (Event) -> Void) {
            findings += 1
            if finding.isRepaired { repaired += 1 }
            if finding.isRepairable { repairable += 1 }
            report(.finding(finding))
        }
    }

    /// Each of these is handed over on the calling thread.
    package enum Event: Sendable {
        case finding(Finding)
        case progress(Totals)
    }

    private let inspection: CacheInspection
    /// Nil where nothing is repaired.
    private let cache: OpenCache?
    private let extent: Extent
    private let work: Monitor<Work>

    /// Reads a cache and changes nothing.
    ///
    /// - Throws: when the cache's folders cannot be opened.
    package init(reading catalog: CacheCatalog, _ extent: Extent) throws(StorageError) {
        inspection = try CacheInspection(catalog)
        cache = nil
        self.extent = extent
        work = Monitor(Work(extent))
    }

    /// The same for a cache that is open for writing, in which what is found is repaired.
    ///
    /// - Throws: as the other.
    package init(repairing cache: OpenCache, _ extent: Extent) throws(StorageError) {
        inspection = try CacheInspection(cache)
        self.cache = cache
        self.extent = extent
        work = Monitor(Work(extent))
    }

    /// Lets ``run(_:)`` return soon, with what it has found so far. Any thread may call it, once.
    ///
    /// - Returns: false when no file has been looked at yet, and nothing would be lost by ending at once.
    package func stop() -> Bool {
        work.update { work in
            work.isStopped = true
            return work.hasBegun
        }
    }

    /// Looks at everything that the extent asks for.
    ///
    /// - Throws: when the cache cannot be read, or what is found cannot be repaired.
    package func run(_ report: (Event) -> Void) throws(StorageError) -> Totals {
        var totals = Totals()
        totals.folders = extent.finishedFolders
        do throws(StorageError) {
            try inspection.findDamage()
        } catch {
            guard error.isDamage else { throw error }
            // Nothing else that it says can be believed.
            totals.isDatabaseDamaged = true
            totals.tell(Finding(kind: .database, path: nil, message: error.message), report)
            return totals
        }
        try checkFolders(&totals, report)
        report(.progress(totals))
        guard totals.folders == Work.end, !shouldStop(totals) else { return totals }
        for finding in try otherFindings() { totals.tell(finding, report) }
        totals.isComplete = true
        return totals
    }

    /// Whether nothing more is to be begun; something has been by then.
    private func shouldStop(_ totals: Totals) -> Bool {
        if work.withLock({ $0.isStopped }) { return true }
        guard let deadline = extent.deadline, totals.folders > extent.finishedFolders else {
            return false
        }
        return deadline <= .now
    }

    // MARK: Files

    private func checkFolders(
        _ totals: inout Totals, _ report: (Event) -> Void
    ) throws(StorageError) {
        let step: @Sendable () -> Void = {
            var check = FolderCheck(
                inspection: inspection, extent: extent, isHolder: cache != nil)
            while let folder = work.update({ $0.takeNext() }) {
                let result = Result { () throws(StorageError) in try check.run(folder) }
                work.update { $0.results.append(result) }
            }
            work.update { $0.running -= 1 }
        }
        var threads: [OwnedThread] = []
        for number in 0..<max(extent.workers, 1) {
            // Fewer will do.
            guard let thread = try? OwnedThread(name: "verify \(number)", step) else { break }
            threads.append(thread)
            work.update { $0.running += 1 }
        }
        if threads.isEmpty {
            work.update { $0.running += 1 }
            step()
        }
        defer {
            work.update { $0.isAbandoned = true }
            for thread in threads { thread.join() }
        }
        while let result = work.wait({ work, _ in work.nextResult }) {
            let found = try result.get()
            totals.files += found.files
            totals.filesRead += found.filesRead
            totals.bytes += found.bytes
            totals.folders += 1
            for finding in try repaired(found.problems) { totals.tell(finding, report) }
            report(.progress(totals))
        }
    }

    /// What is shared with the threads that look at folders.
    private struct Work {
        static let end = CacheInspection.folders.count

        private let first: Int
        private var next: Int
        private let deadline: ContinuousClock.Instant?
        var results: [Result<FolderCheck.Found, StorageError>] = []
        /// Threads that may take another folder.
        var running = 0
        var isStopped = false
        /// Whether nobody waits for results any more.
        var isAbandoned = false

        init(_ extent: Extent) {
            first = extent.finishedFolders
            next = extent.finishedFolders
            deadline = extent.deadline
        }

        var hasBegun: Bool { next > first }

        mutating func takeNext() -> UInt8? {
            guard next < Work.end, !isStopped, !isAbandoned else { return nil }
            // However short the time is, each call gets on.
            if let deadline, hasBegun, deadline <= .now { return nil }
            defer { next += 1 }
            return UInt8(next)
        }

        /// Nil once no more will come.
        var nextResult: Monitor<Work>.Decision<Result<FolderCheck.Found, StorageError>?> {
            mutating get {
                if let result = results.popLast() { return .ready(result) }
                return running == 0 ? .ready(nil) : .wait(until: nil)
            }
        }
    }

    /// What a repair has made of them.
    private func repaired(_ problems: [FolderCheck.Problem]) throws(StorageError) -> [Finding] {
        guard let cache else { return problems.map(\.finding) }
        try cache.dropImages(problems.compactMap(\.wrongImage), at: extent.now)
        var findings: [Finding] = []
        for problem in problems {
            var finding = problem.finding
            if let image = problem.wrongImage {
                finding.isRepaired = !cache.directory.isTaken(image)
            } else if finding.kind == .orphan, let path = finding.path {
                finding.isRepaired = try cache.removeOrphan(path)
            }
            findings.append(finding)
        }
        return findings
    }

    // MARK: All the rest

    private func otherFindings() throws(StorageError) -> [Finding] {
        var findings: [Finding] = []
        for name in try inspection.strangeNames() {
            findings.append(
                Finding(
                    kind: .unexpected, path: "content/\(name)",
                    message: "is not a folder of content files"))
        }
        findings += try freshnessFindings()
        if let difference = try inspection.differenceOfTotals() {
            try cache?.rebuildTotals()
            findings.append(
                Finding(kind: .totals, message: difference, isRepaired: cache != nil))
        }
        findings += try partialFindings()
        findings += try temporaryFindings()
        findings += try crashFindings()
        return findings
    }

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
                message: "the part of its body that was kept is missing or damaged",
                isRepaired: !left.contains(key))
        }
    }

    /// What a run that was killed has left in `tmp`.
    private func temporaryFindings() throws(StorageError) -> [Finding] {
        let isHolder = cache != nil
        guard isHolder || !inspection.isHeld else { return [] }
        var findings: [Finding] = []
        for name in try inspection.unnamedTemporaries() {
            let path = "tmp/\(name)"
            let size = ByteCount(inspection.size(ofFile: path))
            // In this order, as for content files.
            guard isHolder || !inspection.isHeld, try inspection.isUnnamedTemporary(name) else {
                continue
            }
            findings.append(
                Finding(
                    kind: .orphan, path: path, message: "no row refers to this file (\(size))",
                    isRepaired: try cache?.removeOrphan(path) ?? false))
        }
        return findings
    }

    private func crashFindings() throws(StorageError) -> [Finding] {
        let lines: Int
        do throws(StorageError) {
            lines = try inspection.strangeCrashLines()
        } catch {
            return [Finding(kind: .unreadable, path: CrashLog.fileName, message: error.message)]
        }
        guard lines > 0 else { return [] }
        try cache?.tidyCrashLog(at: extent.now)
        return [
            Finding(
                kind: .crashes, path: CrashLog.fileName,
                message: lines == 1
                    ? "a line of it is not the note of a crash"
                    : "\(lines) lines of it are not notes of a crash",
                isRepaired: cache != nil)
        ]
    }

    private func freshnessFindings() throws(StorageError) -> [Finding] {
        let found = try inspection.freshnessFindings()
        guard !found.isEmpty else { return [] }
        if let cache { try cache.rebuildFreshness() }
        var findings = found.keys.map { key in
            Finding(
                kind: .freshness, keys: [key], message: "its freshness does not match its row",
                isRepaired: cache != nil)
        }
        if found.strayRows > 0 {
            findings.append(
                Finding(
                    kind: .freshness,
                    message: found.strayRows == 1
                        ? "a row of freshness belongs to no image"
                        : "\(found.strayRows) rows of freshness belong to no image",
                    isRepaired: cache != nil))
        }
        return findings
    }
}

package import CacheStorage
package import PrefetchModel
import Threading

/// Compares a cache's content files with their names and rows, and rows with each other. It raises
/// no false alarm while a run writes: every problem is checked twice, and files without a row count
/// only while no process holds the cache. The folders are checked in order, to resume.
package struct CacheVerification: Sendable {
    package struct Extent: Sendable {
        /// The share of files that are read, chosen at random; 1 for all.
        package var sample = 1.0
        /// Reads only files with a `ctime`, which programs cannot set, from then on; nil for all.
        package var changedSince: Timestamp?
        /// The time limit; a folder that has begun is finished, and at least one is checked.
        package var deadline: ContinuousClock.Instant?
        /// The number of folders that an earlier verification has checked, 0…256; they are skipped.
        package var finishedFolders = 0
        /// The number of threads, 1 or more.
        package var workers = 1
        package var now: Timestamp

        package init(at now: Timestamp) {
            self.now = now
        }
    }

    package struct Totals: Sendable {
        package fileprivate(set) var files = 0
        package fileprivate(set) var bytes = 0
        package fileprivate(set) var filesRead = 0
        package fileprivate(set) var findings = 0
        package fileprivate(set) var repaired = 0
        /// The findings that a repair fixes, or has fixed.
        package fileprivate(set) var repairable = 0
        /// Whether the database is damaged; then nothing else was checked.
        package fileprivate(set) var isDatabaseDamaged = false
        /// The number of finished folders of 256, skipped ones included.
        package fileprivate(set) var folders = 0
        /// The files with another mode than the cache's, and the first one's path and mode.
        fileprivate var otherModes: (count: Int, first: (path: String, mode: String))?
        /// False when it was stopped or reached its deadline.
        package fileprivate(set) var isComplete = false

        fileprivate mutating func tell(_ finding: Finding, _ report: (VerificationEvent) -> Void) {
            findings += 1
            if finding.isRepaired { repaired += 1 }
            if finding.isRepairable { repairable += 1 }
            report(.finding(finding))
        }
    }

    /// An event, delivered on the calling thread.
    package enum VerificationEvent: Sendable {
        case finding(Finding)
        case progress(Totals)
    }

    package struct Finding: Hashable, Sendable {
        package enum FindingKind: String, Sendable {
            case database
            /// A row's file is missing, or is not a file.
            case missing
            case truncated
            /// A file is longer than its row says, or its bytes do not match its name.
            case damaged
            /// A file has another format or pixel size than its row.
            case mismatch
            case unreadable
            /// A file without a row.
            case orphan
            /// An entry of `content` that is not a content file; it is never removed.
            case unexpected
            /// Files have another mode than the cache. `chmod` changes it.
            case mode
            /// The table `freshness` differs from its source.
            case freshness
            /// The stored totals differ from the sums of the rows.
            case totals
            case partial
            /// The log of crashes has malformed lines.
            case crashes
        }

        package let kind: FindingKind
        /// The path below the cache directory; nil for problems of rows.
        package var path: String?
        package var keys: [String] = []
        package let message: String
        package var isRepaired = false

        /// Whether something that a repair keeps is in the place of the file.
        var isBlocked = false

        /// Whether a repair would fix it, as far as is known.
        package var isRepairable: Bool {
            switch kind {
            case .missing, .truncated, .damaged, .mismatch, .orphan, .freshness, .totals, .partial,
                .crashes:
                !isBlocked
            case .database, .unreadable, .unexpected, .mode: false
            }
        }
    }

    private let inspection: CacheInspection
    /// Nil without a repair.
    private let cache: OpenCache?
    private let extent: Extent
    private let work: Monitor<FolderWork>

    /// Creates a verification, which repairs the `cache`, if given; it is the catalog's.
    package init(
        reading catalog: CacheCatalog, repairing cache: OpenCache? = nil, _ extent: Extent
    ) throws(StorageError) {
        inspection = try CacheInspection(catalog)
        self.cache = cache
        self.extent = extent
        work = Monitor(FolderWork(extent))
    }

    /// Lets ``run(_:)`` return soon, with the findings so far. Any thread may call it, once.
    /// Returns false when no file has been checked yet, so that the process may exit at once.
    package func stop() -> Bool {
        work.update { work in
            work.isStopped = true
            return work.hasBegun
        }
    }

    package func run(_ report: (VerificationEvent) -> Void) throws(StorageError) -> Totals {
        var totals = Totals()
        totals.folders = extent.finishedFolders
        do {
            try inspection.findDamage()
        } catch {
            guard error.isDamage else { throw error }
            // A damaged database says nothing reliable.
            totals.isDatabaseDamaged = true
            totals.tell(Finding(kind: .database, path: nil, message: error.message), report)
            return totals
        }
        try checkFolders(&totals, report)
        report(.progress(totals))
        if let finding = modeFinding(totals) { totals.tell(finding, report) }
        guard totals.folders == FolderWork.end, !shouldStop(totals) else { return totals }
        for finding in try otherFindings() { totals.tell(finding, report) }
        totals.isComplete = true
        return totals
    }

    /// Whether no further folder may begin, after at least one.
    private func shouldStop(_ totals: Totals) -> Bool {
        if work.withLock({ $0.isStopped }) { return true }
        guard let deadline = extent.deadline, totals.folders > extent.finishedFolders else {
            return false
        }
        return deadline <= .now
    }

    // MARK: Files

    private func checkFolders(
        _ totals: inout Totals, _ report: (VerificationEvent) -> Void
    ) throws(StorageError) {
        let step: @Sendable () -> Void = {
            var check = FolderCheck(inspection: inspection, extent: extent, isHolder: cache != nil)
            while let folder = work.update({ $0.takeNext() }) {
                let result = Result { () throws(StorageError) in try check.run(folder) }
                work.update { $0.results.append(result) }
            }
            work.update { $0.running -= 1 }
        }
        var threads: [OwnedThread] = []
        for number in 0..<max(extent.workers, 1) {
            // Fewer threads suffice.
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
            if let first = found.otherMode {
                let known = totals.otherModes
                totals.otherModes = (found.otherModes + (known?.count ?? 0), known?.first ?? first)
            }
            for finding in try repaired(found.problems) { totals.tell(finding, report) }
            report(.progress(totals))
        }
    }

    private struct FolderWork {
        static let end = CacheInspection.folders.count

        private let first: Int
        private var next: Int
        private let deadline: ContinuousClock.Instant?
        var results: [Result<FolderCheck.FolderResult, StorageError>] = []
        /// Threads that may take another folder.
        var running = 0
        var isStopped = false
        /// Whether the results are no longer needed.
        var isAbandoned = false

        init(_ extent: Extent) {
            first = extent.finishedFolders
            next = extent.finishedFolders
            deadline = extent.deadline
        }

        var hasBegun: Bool { next > first }

        mutating func takeNext() -> UInt8? {
            guard next < FolderWork.end, !isStopped, !isAbandoned else { return nil }
            // Each call checks at least one folder, however short its time.
            if let deadline, hasBegun, deadline <= .now { return nil }
            defer { next += 1 }
            return UInt8(next)
        }

        /// The next result; nil when there are no more.
        var nextResult:
            Monitor<FolderWork>.Decision<Result<FolderCheck.FolderResult, StorageError>?>
        {
            mutating get {
                if let result = results.popLast() { return .ready(result) }
                return running == 0 ? .ready(nil) : .wait(until: nil)
            }
        }
    }

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

    // MARK: Other checks

    /// Modes may be changing while another process holds the cache.
    private func modeFinding(_ totals: Totals) -> Finding? {
        guard let (count, first) = totals.otherModes, cache != nil || !inspection.isHeld else {
            return nil
        }
        let mode = inspection.fileMode ?? .ownersAlone
        let others = count > 1 ? ", and \(counted(count - 1, "more file")) differ" : ""
        return Finding(
            kind: .mode, path: first.path,
            message:
                "it has \(first.mode), not \(mode)\(others); `prefetch chmod \(mode)` fixes it")
    }

    private func otherFindings() throws(StorageError) -> [Finding] {
        var findings = try inspection.strangeNames().map { name in
            Finding(
                kind: .unexpected, path: "content/\(name)",
                message: "is not a folder of content files")
        }
        findings += try freshnessFindings()
        if let difference = try inspection.differenceOfTotals() {
            try cache?.rebuildTotals()
            findings.append(Finding(kind: .totals, message: difference, isRepaired: cache != nil))
        }
        return try findings + partialFindings() + temporaryFindings() + crashFindings()
    }

    private func partialFindings() throws(StorageError) -> [Finding] {
        let damaged = try inspection.damagedPartials()
        guard !damaged.isEmpty else { return [] }
        if let cache {
            for key in damaged { try cache.partials.discard(key: key) }
        }
        // A run may have used one meanwhile. Unreadable rows are left to the next run.
        let left = Set(try inspection.damagedPartials())
        return damaged.filter { cache != nil || left.contains($0) }.map { key in
            Finding(
                kind: .partial, keys: [key],
                message: "the part of its body that was kept is missing or damaged",
                isRepaired: !left.contains(key))
        }
    }

    /// Returns the files that a killed run has left in `tmp`.
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
        do {
            lines = try CrashLog.countStrangeLines(in: inspection.directory)
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
        guard !found.keys.isEmpty || found.orphanedRows != 0 else { return [] }
        if let cache { try cache.rebuildFreshness() }
        var findings = found.keys.map { key in
            Finding(
                kind: .freshness, keys: [key], message: "its freshness does not match its row",
                isRepaired: cache != nil)
        }
        if found.orphanedRows > 0 {
            findings.append(
                Finding(
                    kind: .freshness,
                    message: found.orphanedRows == 1
                        ? "a row of freshness belongs to no image"
                        : "\(found.orphanedRows) rows of freshness belong to no image",
                    isRepaired: cache != nil))
        }
        return findings
    }
}

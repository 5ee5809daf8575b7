import CacheStorage
import PrefetchModel
import Threading

/// Reads manifests and looks their entries up in the cache, on several threads.
///
/// The threads take turns at reading a batch, and each looks its batch up while the next one reads.
/// The mailbox restores the order.
final class EntryLookup: Sendable {
    private struct SharedList {
        /// Nil while a thread reads. A read of standard input may block indefinitely, so it holds
        /// no lock.
        var entries: (any EntryReading)?
        var reader: Int?
        var next = 0
        var hasEnded = false
    }

    /// The estimated length of a manifest's line, a URL.
    private static let usualLineBytes = 64

    private let source: Monitor<SharedList>
    private let threads = Monitor([OwnedThread]())
    private let cache: (source: CacheCatalog, index: FreshnessIndex)?
    private let seed: (cache: SeedCache, index: FreshnessIndex)?
    /// By position of the run's variants; empty when the observer does not want the images of fresh
    /// entries.
    private let images: [ImageIndex]
    private let lineWriter: (any WarmLineWriting)?
    private let rules: RunRules
    private let mailbox: Mailbox
    private let wallClock: @Sendable () -> Timestamp

    init(
        _ entries: any EntryReading, source cacheSource: CacheCatalog?, seed: SeedCache?,
        rules: RunRules, wantsFreshImages: Bool, lineWriter: (any WarmLineWriting)?,
        mailbox: Mailbox, wallClock: @escaping @Sendable () -> Timestamp
    ) throws {
        source = Monitor(SharedList(entries: entries))
        let expectedLookups = (entries.sizeInBytes ?? 0) / EntryLookup.usualLineBytes
        cache = try cacheSource.map {
            ($0, try FreshnessIndex($0, expectedLookups: expectedLookups))
        }
        self.seed = seed.flatMap { cache in
            cache.reading { () throws(StorageError) in
                (cache, try FreshnessIndex(cache.source, expectedLookups: expectedLookups))
            }
        }
        images =
            if wantsFreshImages, let cacheSource {
                try rules.variants.map {
                    try ImageIndex(cacheSource, recipe: $0.recipe, expectedLookups: expectedLookups)
                }
            } else {
                []
            }
        self.lineWriter = lineWriter
        self.rules = rules
        self.mailbox = mailbox
        self.wallClock = wallClock
    }

    // MARK: From the coordinator's thread

    /// Starts the threads, or fewer, but one, where the system has no room for more.
    func start() throws {
        for number in 0..<rules.configuration.readers {
            do {
                let thread = try OwnedThread(name: "reader \(number)") { self.work(number) }
                threads.withLock { $0.append(thread) }
            } catch {
                if number == 0 { throw error }
                return
            }
        }
    }

    /// Ends the threads, after the mailbox has ended its reading. A thread that blocks in a read,
    /// such as of standard input, is detached; all others have ended on return. Called once.
    func finish() {
        let reader = source.update { source in
            source.hasEnded = true
            return source.reader
        }
        for (number, thread) in threads.withLock({ $0 }).enumerated() {
            if number == reader { thread.detach() } else { thread.join() }
        }
    }

    // MARK: The threads

    /// Reads and looks up until the end, or until no more is wanted.
    private func work(_ thread: Int) {
        var worker: LookUpWorker?
        var seeds: SeedLookup?
        while let (number, next) = read(as: thread) {
            var input = next
            if case .batch(let unknown) = input {
                do {
                    input = .batch(try lookUp(unknown.batch, &worker, &seeds))
                } catch {
                    source.update { $0.hasEnded = true }
                    input = .failed(error)
                }
            }
            guard mailbox.put(input, number: number) else { return }
        }
    }

    private func lookUp(
        _ batch: EntryBatch, _ worker: inout LookUpWorker?, _ seeds: inout SeedLookup?
    ) throws -> LookedUpBatch {
        if worker == nil { worker = try makeWorker() }
        let looked = try worker?.lookUp(batch) ?? LookedUpBatch(nothingKnownOf: batch)
        guard let seed else { return looked }
        return seed.cache.reading { () throws(StorageError) in
            if seeds == nil { seeds = try makeSeedLookup() }
            var found = looked
            try seeds?.apply(to: &found)
            return found
        } ?? looked
    }

    /// Waits for its turn and reads the next batch or the end; nil after the end, or when no more
    /// is wanted.
    private func read(as thread: Int) -> (number: Int, input: Mailbox.ListInput)? {
        var turn = source.wait { source, _ -> Monitor<SharedList>.Decision<(any EntryReading)?> in
            if source.hasEnded { return .ready(nil) }
            guard let entries = source.entries.take() else { return .wait(until: nil) }
            source.reader = thread
            return .ready(entries)
        }
        // Taken, not copied: a second owner would make each change of a long list copy it.
        guard var entries = turn.take() else { return nil }
        let input: Mailbox.ListInput
        do {
            input =
                try entries.nextBatch().map { .batch(LookedUpBatch(batch: $0)) }
                ?? .ended(entries.gap)
        } catch {
            input = .failed(error)
        }
        return source.update { source in
            source.entries = entries
            source.reader = nil
            if case .batch = input {} else { source.hasEnded = true }
            defer { source.next += 1 }
            return (source.next, input)
        }
    }

    private func makeWorker() throws -> LookUpWorker? {
        guard let (source, index) = cache else { return nil }
        let reader = try CacheReader(
            source.directory, matchesVary: rules.configuration.matchesVary())
        return LookUpWorker(
            reader: reader, hasFailures: try reader.hasFailures(), index: index,
            images: images, lineWriter: lineWriter, rules: rules, wallClock: wallClock)
    }

    private func makeSeedLookup() throws(StorageError) -> SeedLookup? {
        guard let (cache, index) = seed else { return nil }
        return try SeedLookup(
            cache.source, index: index, configuration: rules.configuration, wallClock: wallClock)
    }
}

import CacheStorage
import Codecs
import Decoding
import EntryLifecycle
import HTTPSemantics
import Hashing
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
    /// The resources with images that a new decoder decodes; nil for none.
    private let undecoded: ResourceSet?
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
        let marksRedirects =
            rules.configuration.entries.objection != nil || rules.configuration.varyTest().readsURLs
        func makeIndex(_ source: CacheCatalog) throws(StorageError) -> FreshnessIndex {
            try FreshnessIndex(
                source, expectedLookups: expectedLookups, marksRedirects: marksRedirects)
        }
        cache = try cacheSource.map { ($0, try makeIndex($0)) }
        BudgetedImageProcessor.chooseDecoders(for: rules.configuration.images.sandbox)
        undecoded =
            if let cacheSource, let arrivals = CodecLibraries.arrivals {
                try cacheSource.undecoded(arrivals.formats, before: arrivals.since)
            } else {
                nil
            }
        self.seed = seed.flatMap { cache in
            cache.reading { () throws(StorageError) in (cache, try makeIndex(cache.source)) }
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
            source.directory, varyTest: rules.configuration.varyTest())
        return LookUpWorker(
            reader: reader, hasFailures: try reader.hasFailures(), index: index,
            undecoded: undecoded, images: images, lineWriter: lineWriter, rules: rules,
            wallClock: wallClock)
    }

    private func makeSeedLookup() throws(StorageError) -> SeedLookup? {
        guard let (cache, index) = seed else { return nil }
        return try SeedLookup(
            cache.source, index: index, configuration: rules.configuration, wallClock: wallClock)
    }
}

/// Finds entries that need a request, although their images are fresh in a seed cache.
///
/// For one thread.
struct SeedLookup {
    private let reader: CacheReader
    private let index: FreshnessIndex
    private let configuration: RunConfiguration
    private let wallClock: @Sendable () -> Timestamp

    init(
        _ source: CacheCatalog, index: FreshnessIndex, configuration: RunConfiguration,
        wallClock: @escaping @Sendable () -> Timestamp
    ) throws(StorageError) {
        reader = try CacheReader(source.directory, varyTest: configuration.varyTest())
        self.index = index
        self.configuration = configuration
        self.wallClock = wallClock
    }

    func apply(to looked: inout LookedUpBatch) throws(StorageError) {
        let batch = looked.batch
        let numbers = batch.records.indices.filter {
            looked.findings[$0].state.asksOrigin || looked.findings[$0].blacklisting != nil
        }
        guard !numbers.isEmpty else { return }
        let asked = AskedVariants(configuration.images.variants, of: batch, hasher: SHA256Hasher())
        let all = asked.fingerprints(of: looked.findings.map(\.fingerprint))
        let records = try index.records(
            of: numbers.flatMap { all[asked.places(of: $0)] }, with: reader)
        let now = wallClock()
        var next = 0
        for number in numbers {
            let found = records[next..<next + asked.places(of: number).count]
            next = found.endIndex
            let record = batch.records[number]
            let extras = batch.extras(of: record)
            guard let first = found.first ?? nil,
                found.allSatisfy({ $0?.resourceID == first.resourceID }),
                let expiresAt = try reader.warmUntil(
                    first, by: configuration, extras: extras, at: now,
                    group: configuration.varyGroup(of: batch.text[record.url]))
            else { continue }
            if record.hasOwnKey || first.isKeyed,
                let urls = try reader.urls(of: [first.resourceID])[0],
                !batch.isImage(of: record, at: urls)
            {
                continue
            }
            if let digest = extras?.sourceDigest,
                try reader.wereMade(of: [(first.resourceID, digest)]) != [true]
            {
                continue
            }
            looked.findings[number].state = .seeded(expiresAt: expiresAt)
        }
    }
}

extension CacheReader {
    /// Returns the expiry, by a run's rules, of a copy that is used without a request; nil for
    /// another. `group` is the entry's ``RunConfiguration/varyGroup(of:)``.
    func warmUntil(
        _ record: FreshnessRecord, by configuration: RunConfiguration, extras: EntryExtras?,
        at now: Timestamp, group: @autoclosure () -> Int
    ) throws(StorageError) -> Timestamp? {
        let rules = configuration.lifetimes.rules(extras)
        switch configuration.lifetimes.refresh {
        case .none:
            return Freshness.extendedExpiry(
                validatedAt: record.validatedAt, expiresAt: record.expiresAt, at: now, rules: rules)
        case .all, .force: return nil
        case .stale:
            guard
                Freshness.isFresh(
                    validatedAt: record.validatedAt, expiresAt: record.expiresAt, at: now,
                    rules: rules),
                try matchesVary(record, configuration, extras, group)
            else { return nil }
            return Freshness.expiry(
                validatedAt: record.validatedAt, expiresAt: record.expiresAt, rules: rules)
        }
    }

    private func matchesVary(
        _ record: FreshnessRecord, _ configuration: RunConfiguration, _ extras: EntryExtras?,
        _ group: () -> Int
    ) throws(StorageError) -> Bool {
        guard let extras, !extras.headers.isEmpty else {
            return try matchesVary(record, group: group())
        }
        return try matchesVary(
            record, by: configuration.varyTest(userFields: extras.headers))
    }
}

/// The variants of a batch's entries: mostly the run's.
struct AskedVariants {
    /// A class: a value would be copied with all of its references for each entry.
    private final class Asked {
        let variants: VariantSet
        let names: [VariantName]
        let recipes: [RecipeFingerprint]

        init(_ variants: VariantSet, hasher: borrowing SHA256Hasher) {
            self.variants = variants
            names = variants.map(\.name)
            recipes = variants.map { RecipeFingerprint($0.recipeText, hasher: hasher) }
        }
    }

    private let usual: Asked
    private var own: [Int: Asked] = [:]
    /// The index of the first variant of each record; empty when all have the run's variants.
    private var starts: [Int] = []

    init(_ variants: VariantSet, of batch: EntryBatch, hasher: borrowing SHA256Hasher) {
        usual = Asked(variants, hasher: hasher)
        guard !batch.extras.isEmpty else { return }
        for (number, record) in batch.records.enumerated() {
            guard let extras = batch.extras(of: record), extras.changesVariants else { continue }
            own[number] = Asked(variants.applying(extras), hasher: hasher)
        }
        guard !own.isEmpty else { return }
        var start = 0
        starts.reserveCapacity(batch.records.count + 1)
        for number in batch.records.indices {
            starts.append(start)
            start += asked(number).recipes.count
        }
        starts.append(start)
    }

    private func asked(_ number: Int) -> Asked { own.isEmpty ? usual : own[number] ?? usual }

    func variants(of number: Int) -> VariantSet { asked(number).variants }

    func names(of number: Int) -> [VariantName] { asked(number).names }

    func isOwn(_ number: Int) -> Bool { !own.isEmpty && own[number] != nil }

    func places(of number: Int) -> Range<Int> {
        guard starts.isEmpty else { return starts[number]..<starts[number + 1] }
        return (number * usual.recipes.count)..<((number + 1) * usual.recipes.count)
    }

    func fingerprints(of keys: [KeyFingerprint]) -> [VariantFingerprint] {
        var fingerprints: [VariantFingerprint] = []
        fingerprints.reserveCapacity(starts.last ?? keys.count * usual.recipes.count)
        for (number, key) in keys.enumerated() {
            for recipe in asked(number).recipes {
                fingerprints.append(VariantFingerprint(key, recipe))
            }
        }
        return fingerprints
    }
}

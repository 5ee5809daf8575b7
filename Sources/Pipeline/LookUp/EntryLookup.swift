import CacheStorage
import Codecs
import HTTPSemantics
import Hashing
import PrefetchModel
import Scheduling
import Threading

/// Reads manifests and looks their entries up in the cache, on several threads.
///
/// The threads take turns at reading a batch, and each looks its batch up while the next one reads.
/// The mailbox restores the order.
final class EntryLookup: Sendable {
    private struct Source {
        /// Nil while a thread reads. A read of standard input may block indefinitely, so it holds
        /// no lock.
        var entries: (any EntryReading)?
        /// The number of the thread that is reading.
        var reader: Int?
        /// The number of the next batch.
        var next = 0
        var hasEnded = false
    }

    /// The estimated length of a manifest's line, a URL.
    private static let usualLineBytes = 64

    private let source: Monitor<Source>
    private let threads = Monitor([OwnedThread]())
    /// Nil if there is no cache.
    private let cache: (source: LookupSource, index: FreshnessIndex)?
    /// Nil without a seed cache.
    private let seed: (cache: SeedCache, index: FreshnessIndex)?
    /// By position of the run's variants; empty when the observer does not want the images of fresh
    /// entries.
    private let images: [ImageIndex]
    private let lineWriter: (any WarmLineWriting)?
    private let rules: RunRules
    private let mailbox: Mailbox
    private let wallClock: @Sendable () -> Timestamp

    init(
        _ entries: any EntryReading, source cacheSource: LookupSource?, seed: SeedCache?,
        rules: RunRules, wantsFreshImages: Bool, lineWriter: (any WarmLineWriting)?,
        mailbox: Mailbox,
        wallClock: @escaping @Sendable () -> Timestamp
    ) throws(StorageError) {
        source = Monitor(Source(entries: entries))
        let expectedLookups = (entries.sizeInBytes ?? 0) / EntryLookup.usualLineBytes
        if let cacheSource {
            cache = (
                cacheSource, try FreshnessIndex(cacheSource, expectedLookups: expectedLookups)
            )
        } else {
            cache = nil
        }
        self.seed = seed.flatMap { cache in
            cache.reading { () throws(StorageError) in
                (cache, try FreshnessIndex(cache.source, expectedLookups: expectedLookups))
            }
        }
        var images: [ImageIndex] = []
        if wantsFreshImages, let cacheSource {
            images = try rules.variants.map { variant throws(StorageError) in
                try ImageIndex(
                    cacheSource, recipe: variant.recipe, expectedLookups: expectedLookups)
            }
        }
        self.images = images
        self.lineWriter = lineWriter
        self.rules = rules
        self.mailbox = mailbox
        self.wallClock = wallClock
    }

    // MARK: From the coordinator's thread

    /// Starts the threads, or fewer where the system has no room for more.
    ///
    /// - Throws: when not even one can be started.
    func start() throws(UserError) {
        for number in 0..<rules.configuration.readers {
            do throws(UserError) {
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
        var worker: Worker?
        var seeds: SeedLookup?
        while let (number, next) = read(as: thread) {
            var input = next
            if case .batch(let batch) = input {
                do throws(StorageError) {
                    if worker == nil { worker = try makeWorker() }
                    var looked =
                        try worker?.lookUp(batch) ?? LookedUpBatch(nothingKnownOf: batch.batch)
                    if let seed {
                        looked =
                            seed.cache.reading { () throws(StorageError) in
                                if seeds == nil { seeds = try makeSeedLookup() }
                                var found = looked
                                try seeds?.apply(to: &found)
                                return found
                            } ?? looked
                    }
                    input = .batch(looked)
                } catch {
                    source.update { $0.hasEnded = true }
                    input = .failed(FatalError(error))
                }
            }
            guard mailbox.put(input, number: number) else { return }
        }
    }

    /// Waits for its turn and reads the next batch or the end; nil after the end, or when no more
    /// is wanted.
    private func read(as thread: Int) -> (number: Int, input: Mailbox.Input)? {
        var turn = source.wait { source, _ -> Monitor<Source>.Decision<(any EntryReading)?> in
            if source.hasEnded { return .ready(nil) }
            guard let entries = source.entries.take() else { return .wait(until: nil) }
            source.reader = thread
            return .ready(entries)
        }
        // Taken, not copied: a second owner would make each change of a long list copy it.
        guard var entries = turn.take() else { return nil }
        let input: Mailbox.Input
        do {
            input =
                try entries.nextBatch().map { .batch(LookedUpBatch($0)) } ?? .ended(entries.gap)
        } catch {
            let hint = (error as? any ReportableError)?.userError.hint
            input = .failed(FatalError(message: "\(error)", hint: hint, reason: .internal))
        }
        return source.update { source in
            source.entries = entries
            source.reader = nil
            if case .batch = input {} else { source.hasEnded = true }
            defer { source.next += 1 }
            return (source.next, input)
        }
    }

    private func makeWorker() throws(StorageError) -> Worker? {
        guard let (source, index) = cache else { return nil }
        let reader = try CacheReader(
            source.directory, matchesVary: rules.configuration.matchesVary())
        return Worker(
            reader: reader, hasFailures: try reader.hasFailures(), index: index,
            images: images, lineWriter: lineWriter, rules: rules, wallClock: wallClock)
    }

    private func makeSeedLookup() throws(StorageError) -> SeedLookup? {
        guard let (cache, index) = seed else { return nil }
        return try SeedLookup(
            cache.source, index: index, configuration: rules.configuration, wallClock: wallClock)
    }
}

/// The data of one thread.
private struct Worker {
    let reader: CacheReader
    /// Whether there was any failure when the run began; failures of this run are found by their
    /// keys.
    let hasFailures: Bool
    let index: FreshnessIndex
    let images: [ImageIndex]
    let lineWriter: (any WarmLineWriting)?
    let rules: RunRules
    let wallClock: @Sendable () -> Timestamp

    private var configuration: RunConfiguration { rules.configuration }

    func lookUp(_ unknown: LookedUpBatch) throws(StorageError) -> LookedUpBatch {
        let batch = unknown.batch
        let hasher = SHA256Hasher()
        let keys = batch.fingerprints(by: hasher)
        let asked = AskedVariants(configuration.images.variants, of: batch, hasher: hasher)
        let records = try index.records(of: asked.fingerprints(of: keys), with: reader)
        var result = LookedUpBatch(batch: batch, fingerprints: keys, states: [])
        result.states.reserveCapacity(keys.count)
        let now = wallClock()
        var missing: [Int] = []
        for (number, entry) in batch.records.enumerated() {
            guard entry.problem < 0 else {
                result.states.append(.invalid)
                continue
            }
            let extras = batch.extras(of: entry)
            if asked.isSingle {
                // The usual case.
                guard let record = records[number] else {
                    result.states.append(.missing)
                    missing.append(number)
                    continue
                }
                let state = try state(record, extras: extras, at: now)
                result.states.append(state)
                if case .fresh(_, let expiresAt, _) = state {
                    if expiresAt != record.expiresAt { result.newExpiries[number] = expiresAt }
                    if !record.isInUse(as: configuration.images.variants.primary.name) {
                        result.returning.insert(number)
                        if record.isSuperseded { result.superseded.insert(number) }
                    }
                }
                continue
            }
            let (found, variants) = (records[asked.places(of: number)], asked.variants(of: number))
            let state = try state(found, variants, extras: extras, at: now)
            result.states.append(state)
            switch state {
            case .fresh(_, let expiresAt, _):
                if found.contains(where: { $0.map { $0.expiresAt != expiresAt } ?? false }) {
                    result.newExpiries[number] = expiresAt
                }
                let areInUse = zip(found, variants).allSatisfy { record, variant in
                    record?.isInUse(as: variant.name) ?? true
                }
                if !areInUse {
                    result.returning.insert(number)
                    if found.contains(where: { $0?.isSuperseded == true }) {
                        result.superseded.insert(number)
                    }
                }
            case .missing, .incomplete: missing.append(number)
            case .invalid, .stale, .otherSource, .derivable, .seeded, .blacklisted: break
            }
        }
        try findMissingAttributes(in: &result)
        try findSources(of: missing, asked, in: &result, at: now)
        try findOtherSources(in: &result)
        try findNewURLs(in: &result)
        try findBlacklisted(in: &result, at: now)
        try findEntriesNotTaken(in: &result, by: hasher)
        if !images.isEmpty { try findImages(asked, in: &result) }
        if let lineWriter {
            result.lines = lineWriter.lines(
                of: result.warm, variants: configuration.images.variants, in: batch)
        }
        return result
    }

    /// Returns the state of an entry from the rows of its variants.
    private func state(
        _ records: ArraySlice<FreshnessRecord?>, _ variants: VariantSet, extras: EntryExtras?,
        at now: Timestamp
    ) throws(StorageError) -> EntryState {
        guard let known = records.first(where: { $0 != nil }) ?? nil else { return .missing }
        let state = try state(known, extras: extras, at: now)
        // All rows of a resource have the same freshness.
        guard case .fresh(let resource, _, _) = state,
            let missing = records.firstIndex(where: { $0 == nil })
        else { return state }
        return .incomplete(
            resource: resource, missing: variants[missing - records.startIndex].name)
    }

    private func state(
        _ record: FreshnessRecord, extras: EntryExtras?, at now: Timestamp
    ) throws(StorageError) -> EntryState {
        guard
            let expiresAt = try reader.warmUntil(
                record, by: configuration, extras: extras, at: now)
        else {
            return .stale(resource: record.resourceID, expiresAt: record.expiresAt)
        }
        return .fresh(
            resource: record.resourceID, expiresAt: expiresAt, lacksAttributes: false)
    }

    /// Finds fresh entries whose attributes differ from the requested ones.
    private func findMissingAttributes(in result: inout LookedUpBatch) throws(StorageError) {
        guard !result.batch.extras.isEmpty else { return }
        var numbers: [Int] = []
        var wanted: [(resource: Int64, attributes: [EntryAttribute])] = []
        for (number, state) in result.states.enumerated() {
            guard case .fresh(let resource, _, _) = state,
                let extras = result.batch.extras(of: result.batch.records[number]),
                !extras.attributes.isEmpty
            else { continue }
            numbers.append(number)
            wanted.append((resource, extras.attributes))
        }
        for (number, hasAll) in zip(numbers, try reader.haveAttributes(wanted)) where !hasAll {
            guard case .fresh(let resource, let expiresAt, _) = result.states[number] else {
                continue
            }
            result.states[number] = .fresh(
                resource: resource, expiresAt: expiresAt, lacksAttributes: true)
        }
    }

    /// Finds copies of other sources than their entries ask for; they are requested again.
    private func findOtherSources(in result: inout LookedUpBatch) throws(StorageError) {
        guard !result.batch.extras.isEmpty else { return }
        var numbers: [Int] = []
        var wanted: [(resource: Int64, digest: ContentDigest)] = []
        for (number, state) in result.states.enumerated() {
            guard let resource = state.resource,
                let digest = result.batch.extras(of: result.batch.records[number])?.sourceDigest
            else { continue }
            numbers.append(number)
            wanted.append((resource, digest))
        }
        guard !numbers.isEmpty else { return }
        for (index, isMade) in try reader.wereMade(of: wanted).enumerated() where !isMade {
            result.states[numbers[index]] = .otherSource(resource: wanted[index].resource)
            result.newExpiries[numbers[index]] = nil
            result.returning.remove(numbers[index])
        }
    }

    /// Finds stored images that entries with a field `key` name by new URLs.
    private func findNewURLs(in result: inout LookedUpBatch) throws(StorageError) {
        let batch = result.batch
        var numbers: [Int] = []
        var urls: [(resource: Int64, url: String)] = []
        for (number, record) in batch.records.enumerated() where record.key != record.url {
            guard let resource = result.states[number].resource else { continue }
            numbers.append(number)
            urls.append((resource, batch.url(of: record).withoutCredentials.text))
        }
        guard !numbers.isEmpty else { return }
        for (index, isNew) in try reader.wereListed(byOther: urls).enumerated() where isNew {
            result.newURLs[numbers[index]] = urls[index].url
        }
    }

    /// Finds entries that lack variants and need no download for them.
    private func findSources(
        of missing: [Int], _ asked: AskedVariants, in result: inout LookedUpBatch,
        at now: Timestamp
    ) throws(StorageError) {
        guard !missing.isEmpty, !index.isEmpty else { return }
        let batch = result.batch
        let records = try reader.sources(
            of: missing.map {
                (
                    String(decoding: batch.text[batch.records[$0].key], as: UTF8.self),
                    asked.variants(of: $0).map(\.recipe)
                )
            }, sameRules: CodecLibraries.sameRules)
        for (number, record) in zip(missing, records) {
            guard let (record, isDerivable) = record else { continue }
            result.otherResources[number] = record.resourceID
            guard isDerivable else { continue }
            let extras = batch.extras(of: batch.records[number])
            let expiresAt = try reader.warmUntil(
                record, by: configuration, extras: extras, at: now)
            if let expiresAt, expiresAt != record.expiresAt {
                result.newExpiries[number] = expiresAt
            }
            result.states[number] = .derivable(
                resource: record.resourceID, freshUntil: expiresAt)
        }
    }

    /// Finds the resources of entries that the run does not take: they are listed nevertheless.
    private func findEntriesNotTaken(
        in result: inout LookedUpBatch, by hasher: borrowing SHA256Hasher
    ) throws(StorageError) {
        guard !index.isEmpty else { return }
        let batch = result.batch
        var keys = batch.otherKeys
        if !batch.problems.isEmpty {
            keys += batch.records.lazy.filter {
                $0.problem >= 0
                    && batch.problems[$0.problem].failure.reason == .notSelected
            }.map(\.key)
        }
        guard !keys.isEmpty else { return }
        let recipe = RecipeFingerprint(
            configuration.images.variants.primary.recipeText, hasher: hasher)
        let fingerprints = batch.text.withUnsafeBytes { text in
            keys.map { key in
                VariantFingerprint(
                    KeyFingerprint(UnsafeRawBufferPointer(rebasing: text[key]), hasher: hasher),
                    recipe)
            }
        }
        var missing: [String] = []
        for (key, record) in zip(keys, try index.records(of: fingerprints, with: reader)) {
            if let record {
                result.resourcesNotTaken.append(record.resourceID)
            } else if configuration.storing.removesUnlisted {
                missing.append(String(decoding: batch.text[key], as: UTF8.self))
            }
        }
        // Stored by other recipes only.
        result.resourcesNotTaken += try reader.resources(ofKeys: missing)
    }

    private func findBlacklisted(
        in result: inout LookedUpBatch, at now: Timestamp
    ) throws(StorageError) {
        guard hasFailures, !configuration.lifetimes.isOffline else { return }
        let batch = result.batch
        let numbers = batch.records.indices.filter { result.states[$0].mayFail }
        let failures = try reader.failures(
            ofKeys: numbers.map {
                String(decoding: batch.text[batch.records[$0].key], as: UTF8.self)
            })
        for (number, failure) in zip(numbers, failures) {
            guard let failure else { continue }
            result.failedBefore.insert(number)
            guard !configuration.retriesFailed, failure.isBlacklisted(at: now) else { continue }
            switch result.states[number] {
            case .stale, .otherSource, .derivable(_, freshUntil: nil):
                // It may concern one variant that cannot be made, while the others are to be kept
                // fresh.
                guard
                    failure.reason != .unsupportedImage
                        || configuration.images.variants(
                            of: batch.extras(of: batch.records[number])
                        ).count == 1
                else { continue }
            case .derivable, .seeded:
                // No request is needed.
                continue
            case .invalid, .fresh, .missing, .incomplete, .blacklisted:
                break
            }
            let record = batch.records[number]
            let url = batch.url(of: record)
            // A key that now stands for another URL has not failed yet, and a run with other
            // settings may succeed.
            guard
                configuration.entries.ignoredQuery.areEqual(
                    failure.url, url.withoutCredentials.text),
                conditions(of: failure, holdFor: url, batch.extras(of: record))
            else { continue }
            result.states[number] = .blacklisted(
                result.blacklistedBy.count, resource: result.states[number].resource)
            result.blacklistedBy.append(failure)
        }
    }

    private func conditions(
        of failure: FailureRecord, holdFor url: RequestURL, _ extras: EntryExtras?
    ) -> Bool {
        let settings = rules.failureSettings.at(hostIn: url.text)
        return FailureConditions(text: failure.conditions ?? "").hold(for: failure.reason) {
            settings.value(
                of: $0, url: url, extras: extras,
                variants: extras?.changesVariants == true
                    ? configuration.images.variants(of: extras) : nil)
        }
    }

    private func findImages(
        _ asked: AskedVariants, in result: inout LookedUpBatch
    ) throws(StorageError) {
        var numbers: [Int] = []
        var resources: [Int64] = []
        for (number, state) in result.states.enumerated() {
            guard let resource = state.resourceOfReportedImages else { continue }
            guard !asked.isOwn(number) else {
                result.ownImages[number] = try asked.variants(of: number).map {
                    variant throws(StorageError) in
                    try reader.images(of: [resource], recipe: variant.recipe)[0]
                }
                continue
            }
            numbers.append(number)
            resources.append(resource)
        }
        let count = images.count
        result.imagesEach = count
        result.images = [StoredImage?](repeating: nil, count: result.states.count * count)
        for (position, index) in images.enumerated() {
            let found = try index.images(of: resources, with: reader)
            for (number, image) in zip(numbers, found) {
                result.images[number * count + position] = image
            }
        }
    }
}

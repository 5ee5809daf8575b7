import Decoding
import EntryLifecycle
import Hashing
import Scheduling
import SeededRandom

@testable import CacheStorage
@testable import Pipeline
@testable import PrefetchModel
@testable import Transfers

/// The surroundings of a run's loop: stages, lists and cache on one thread. The clock advances
/// when nothing else happens.
///
/// Stages answer later, in an order and with results that the seed decides.
final class FakeRun: EventSource, StageProviding, RunRecording, RunObserving {
    /// Faults of neither origins nor images.
    enum Fault: CaseIterable, Sendable {
        case none, signal, secondSignal, transfersFail, writerFails, lookupsFail, cannotStore,
            cannotAsk, cannotFind, reportFails, readingFails, cacheFails
    }

    /// An answer that is still to be given.
    private enum Pending {
        case transfer(TransferRequest)
        case lookup(CopyRequest)
        case job(CodecJob)
        case change(MetadataChange, token: Int?)
    }

    private var random: SplitMix
    private let fault: Fault
    /// The step of the fault.
    private let faultStep: Int
    private var step = 0
    private var time = ContinuousClock.now
    private var pending: [Pending] = []
    private var inputs: [Mailbox.ListInput] = []
    private var isReading = true
    private var hasFailed: Set<Fault> = []
    private(set) var failedTransfers = false

    private(set) var results: [EntryResult] = []
    private(set) var isClosed = false
    /// The look-ups of each wake-up of the look-up thread.
    private(set) var lookups: [[Int]] = []
    /// Keys of committed images.
    private(set) var committed: Set<String> = []
    let entries: Int

    private let variesVariants: Bool
    private let hidesCancelled: Bool
    /// The largest number of results between two looks for events.
    private(set) var mostResultsAtOnce = 0
    private var resultsBefore = 0

    /// `hidesCancelled`: no results of cancelled entries are wanted.
    init(
        seed: UInt64, fault: Fault, entries: Int, variesVariants: Bool = true,
        hidesCancelled: Bool = false
    ) {
        self.variesVariants = variesVariants
        self.hidesCancelled = hidesCancelled
        random = SplitMix(seed: seed)
        self.fault = fault
        self.entries = entries
        faultStep = Int(SplitMix.first(of: seed &+ 77) % 60)
        inputs = (0..<3).map { .batch(batch($0, count: entries / 3)) } + [.ended(nil)]
    }

    private func chance(_ share: UInt64) -> Bool { random.next() % 100 < share }
    private func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int(random.next() % UInt64(elements.count))]
    }

    /// Whether the fault occurs now; true once.
    private func strikes(_ wanted: Fault) -> Bool {
        guard fault == wanted, step >= faultStep, hasFailed.insert(wanted).inserted else {
            return false
        }
        return true
    }

    // MARK: Lists

    private func batch(_ number: Int, count: Int) -> LookedUpBatch {
        var batch = EntryBatch(manifest: "m\(number)")
        var findings: [EntryFinding] = []
        let hasher = SHA256Hasher()
        for line in 1...count {
            let place = Int(random.next() % UInt64(entries))
            let url = "http://host\(place % 5)/\(place)"
            let start = batch.text.count
            batch.text += url.utf8
            let range = start..<batch.text.count
            // Lines of one key may ask for different variants.
            var extras = -1
            if variesVariants, chance(30) {
                extras = batch.extras.count
                batch.extras.append(EntryExtras(main: RecipeChanges(quality: pick([20, 40, 60]))))
            }
            batch.records.append(
                EntryBatch.Record(
                    line: line, url: range, key: range,
                    priority: chance(10) ? .high : .normal, extras: extras))
            var finding = EntryFinding(
                fingerprint: KeyFingerprint(url, hasher: hasher), state: state(of: place),
                resource: Int64(place))
            if finding.state == .missing || finding.state.isSeeded && place % 3 != 0 {
                finding.resource = nil
            }
            finding.failedBefore = (line - 1) % 7 == 0
            findings.append(finding)
        }
        return LookedUpBatch(batch: batch, findings: findings)
    }

    /// Returns the same state for the same place.
    private func state(of place: Int) -> EntryState {
        switch place % 8 {
        case 0: .fresh(expiresAt: wallTime)
        case 1: .unannotated(expiresAt: wallTime)
        case 2, 3: .stale(.expired(at: wallTime))
        case 4: .derivable(expiresAt: .distantFuture)
        case 5: .stale(.original)
        case 6: .seeded(expiresAt: .distantFuture)
        default: .missing
        }
    }

    // MARK: Events

    var clock: RunClock {
        // The run and its fakes are on one thread.
        nonisolated(unsafe) let run = self
        return RunClock(monotonic: { run.time }, wall: { run.wallTime })
    }

    private let wallTime = Timestamp(milliseconds: 1_700_000_000_000)

    func take(
        wantsInput: Bool, until deadline: ContinuousClock.Instant?
    ) -> (events: [Mailbox.StageEvent], input: Mailbox.ListInput?) {
        step += 1
        mostResultsAtOnce = max(mostResultsAtOnce, results.count - resultsBefore)
        resultsBefore = results.count
        if strikes(.signal) { return ([.stop(signal: 15)], nil) }
        if fault == .secondSignal, step == faultStep || step == faultStep + 3 {
            return ([.stop(signal: 2)], nil)
        }
        if strikes(.transfersFail) {
            failedTransfers = true
            pending.removeAll { if case .transfer = $0 { true } else { false } }
            return ([.transfersFailed(FakeRun.error)], nil)
        }
        if strikes(.writerFails) {
            pending.removeAll { if case .change = $0 { true } else { false } }
            return ([.writerFailed(FakeRun.error)], nil)
        }
        if strikes(.lookupsFail) {
            pending.removeAll { if case .lookup = $0 { true } else { false } }
            return ([.lookupsFailed(FakeRun.error)], nil)
        }
        if wantsInput, isReading, strikes(.readingFails) { return ([], .failed(FakeRun.error)) }
        if wantsInput, isReading, !inputs.isEmpty, pending.isEmpty || chance(20) {
            return ([], inputs.removeFirst())
        }
        guard !pending.isEmpty else {
            if let deadline { time = max(time, deadline) }
            return ([], nil)
        }
        var events: [Mailbox.StageEvent] = []
        for _ in 0..<(1 + Int(random.next() % 3)) where !pending.isEmpty {
            let next = pending.remove(at: Int(random.next() % UInt64(pending.count)))
            if let event = happen(next) { events.append(event) }
        }
        time += .microseconds(Int64(random.next() % 5000))
        return (events, nil)
    }

    func endReading() { isReading = false }

    private func happen(_ pending: Pending) -> Mailbox.StageEvent? {
        switch pending {
        case .transfer(let request): return .transferred(completion(of: request))
        case .lookup(let request): return .found([findings(of: request)])
        case .job(let job): return .processed(completion(of: job))
        case .change(let change, let token):
            if case .image(let row) = change, case .new = row.body { committed.insert(row.key) }
            return token.map { .committed([$0]) }
        }
    }

    private func completion(of request: TransferRequest) -> TransferCompletion {
        let result: TransferCompletion.TransferResult
        var broken: InterruptedBody?
        switch random.next() % 12 {
        case 0...4: result = .response(response(200), body(gap: 0))
        case 5 where request.continuation != nil:
            result = .response(response(206), body(gap: request.continuation?.offset ?? 0))
        case 6 where !request.fields.isEmpty: result = .response(response(304), nil)
        case 7:
            let target = RequestURL(
                normalized: "http://host\(random.next() % 6)/t\(random.next() % 9)")
            result = .response(response(pick([301, 302]), redirect: .to(target)), nil)
        case 8: result = .response(response(pick([404, 403, 500, 503, 429])), nil)
        case 9:
            result = .refused(
                response(200), Failure(.notAnImage, "text"))
        case 10:
            broken = InterruptedBody(body: body(gap: 0), head: response(200))
            result = .failure(
                TransferFailure(
                    Failure(.interrupted, "cut"), httpStatus: 200, curlCode: 18))
        default:
            result = .failure(
                TransferFailure(
                    Failure(pick([.connect, .timeout, .dns, .tls]), "down"), httpStatus: nil,
                    curlCode: 7))
        }
        return TransferCompletion(
            id: request.id, result: result, bytesReceived: 10, elapsed: .milliseconds(1),
            connection: nil,
            address: .global, interruptedBody: broken)
    }

    private func response(_ status: Int, redirect: Redirect? = nil) -> Response {
        Response(
            status: status, fields: [HeaderField(name: "ETag", value: "\"e\"")],
            hasFramedBody: true, redirect: redirect, receivedAt: wallTime)
    }

    private func body(gap: Int) -> Body {
        let body = Body(budget: BodyBudget(capacity: 64 << 20, released: {}))
        if gap > 0 { body.leaveGap(gap) }
        return body
    }

    private func findings(of request: CopyRequest) -> CopyFindings {
        let found: CopyFindings.CopyResult
        switch request.subject {
        case .stored:
            found = .stored(chance(50) ? (FakeRun.image, wallTime) : nil)
        case .entry(let entry, let variants, let isAhead):
            let stored = entry.state.isFoundByKey && chance(70) ? 1 : entry.resource
            let copy = stored.map { resource in
                StoredCopy(
                    resource: resource,
                    validation: ResourceValidation(
                        location: ResourceLocation(url: request.key, finalURL: nil, host: "h"),
                        response: StoredResponse(entityTag: "\"e\""), fetchedAt: wallTime,
                        validatedAt: wallTime, expiresAt: wallTime),
                    permanentTarget: nil, sourceDigest: FakeRun.image.digest,
                    kept: variants.map { _ in
                        chance(60) ? (image: FakeRun.image, isNamed: true) : nil
                    },
                    original: chance(50) ? (image: FakeRun.image, isWhole: chance(80)) : nil)
            }
            var findings = Findings.nothing
            findings.copy = copy
            if entry.state.isSeeded, chance(80) {
                findings.seeded = (
                    validation: ResourceValidation(
                        location: ResourceLocation(url: request.key, finalURL: nil, host: "h"),
                        response: StoredResponse(), validatedAt: wallTime, expiresAt: wallTime),
                    source: FakeRun.source, images: variants.map { _ in FakeRun.image }
                )
            }
            found = .entry(findings, isAhead: isAhead)
        }
        return CopyFindings(token: request.token, found: found)
    }

    private func completion(of job: CodecJob) -> CodecCompletion {
        let failure = Failure(pick([.corruptImage, .interrupted, .unsupportedImage]), "no")
        let result: CodecCompletion.JobResult
        switch job.input {
        case .interrupted(let broken):
            result = .partSaved(chance(50) ? broken.part : nil)
        case .refused(let refusal, _):
            result = .processed(.failed(refusal))
        case .seeded(let copy):
            result = .processed(
                pick([
                    .made(copy.images.map(VariantEnd.made), source: copy.source),
                    .originalDamaged, .cancelled, .failed(RunStages.noRoom),
                ]))
        case .original:
            result = .processed(
                pick([
                    made(job), made(job), .originalDamaged, .underivable(failure), .cancelled,
                ]))
        case .body(let download):
            let isWhole = download.known?.images.allSatisfy { $0 != nil } == true
            let others: [ProcessingResult] =
                [.failed(failure), .cancelled]
                + (download.body.gap > 0 ? [.partDamaged] : [])
                + (isWhole ? [.unchanged] : [])
            result =
                strikes(.cacheFails)
                ? .fatal(FakeRun.error) : .processed(chance(70) ? made(job) : pick(others))
        }
        return CodecCompletion(id: job.id, result: result)
    }

    private func made(_ job: CodecJob) -> ProcessingResult {
        .made(
            job.variants.map { _ in
                chance(90) ? .made(FakeRun.image) : .failed(Failure(.unsupportedImage, "no"))
            },
            source: FakeRun.source)
    }

    static let error = UserError("out of order")

    static let source = SourceImage(
        digest: image.digest, format: .jpeg, widthInPixels: 1, heightInPixels: 1,
        size: ByteCount(10))

    static let image = StoredImage(
        digest: SHA256Hasher().digest(of: "image"), format: .jpeg, widthInPixels: 1,
        heightInPixels: 1, size: ByteCount(10))

    // MARK: Stages

    func makeStoring() throws -> StoringStages {
        if strikes(.cannotStore) { throw FakeRun.error }
        return StoringStages(
            images: Images(run: self), writer: Writer(run: self), knowsCrashes: false,
            room: nil,
            endCrashLog: {})
    }

    func makeTransferring() throws -> any Transferring {
        if strikes(.cannotAsk) { throw FakeRun.error }
        return Transfers(run: self)
    }

    func protect(_ listed: ResourceSet) {}

    func makeCopyFinding() throws -> any CopyFinding {
        if strikes(.cannotFind) { throw FakeRun.error }
        return Copies(run: self)
    }

    private final class Transfers: Transferring {
        private let run: FakeRun
        init(run: FakeRun) { self.run = run }
        func start(_ requests: [TransferRequest]) {
            guard !run.failedTransfers else { return }
            run.pending += requests.map { .transfer($0) }
        }
        func cancelAll() {
            run.pending = run.pending.map { pending in
                guard case .transfer = pending else { return pending }
                return pending
            }
        }
        func finish() {}
    }

    private final class Images: ImageProcessing {
        let workers = 2
        let sandbox = SandboxState.off
        private let run: FakeRun
        init(run: FakeRun) { self.run = run }
        func enqueue(_ job: CodecJob) { run.pending.append(.job(job)) }
        func dropWaiting() -> [Int] {
            var dropped: [Int] = []
            run.pending.removeAll { pending in
                guard case .job(let job) = pending, run.chance(50) else { return false }
                if case .interrupted = job.input { return false }
                dropped.append(job.id)
                return true
            }
            return dropped
        }
        func cancel() {}
        func finish() {}
    }

    private final class Writer: Committing {
        private let run: FakeRun
        init(run: FakeRun) { self.run = run }
        func enqueue(_ change: MetadataChange, token: Int?) {
            run.pending.append(.change(change, token: token))
        }
        var backlog: ByteCount { ByteCount(0) }
        func hurry() {}
        func finish() {}
    }

    private final class Copies: CopyFinding {
        private let run: FakeRun
        init(run: FakeRun) { self.run = run }
        func find(_ requests: [CopyRequest]) {
            run.lookups.append(
                requests.compactMap { request in
                    guard case .entry = request.subject else { return nil }
                    return request.token
                })
            run.pending += requests.map { .lookup($0) }
        }
        func finish() {}
    }

    // MARK: The cache

    func begin(at time: Timestamp) throws {}
    func ongoingOutages() throws -> OngoingOutages { OngoingOutages() }
    func fullness(listed: RunListing) throws -> CacheFullness? { nil }
    func note(_ full: FullCache?) throws {}
    func forEachHost(at now: Timestamp, _ body: (HostState) -> Void) throws {
        body(
            HostState(
                host: "http://host1", concurrency: 2, failuresInARow: 0, coolingUntil: nil,
                updatedAt: now))
    }
    func part(of key: String) throws -> PartialBody? { nil }
    func discardPart(of key: String) {}
    func hasWholeFile(_ image: StoredImage) -> Bool { chance(95) }
    func pin(_ image: StoredImage) {}
    func checkHold() throws {}
    func countStored(of host: String, in listed: ResourceSet, upTo limit: Int) throws -> Int { 0 }
    func settleFailures(
        isOver: ((FailureRecord) -> Bool)?, isOfFault: ((FailureRecord) -> Timestamp?)?,
        _ decide: (FailureRecord) -> FailureLog.Settlement?
    ) throws {}
    func save(_ hosts: [HostState]) throws {}
    func end(
        at time: Timestamp, exitStatus: Int32, _ counters: RunCounters, mayRemove: Bool,
        outages: OngoingOutages, listed: RunListing, isStopped: () -> Bool
    ) throws -> RemovalTotals? {
        nil
    }
    func noteUnlogged(at time: Timestamp, exitStatus: Int32) {}
    func takeSnapshot(
        at time: Timestamp, _ counters: RunCounters, isStopped: () -> Bool
    ) -> String? { nil }
    func close() throws { isClosed = true }
    func makeRoom(at now: Timestamp) {}
    func noteDamage() -> String? { nil }

    // MARK: The observer

    struct ReportError: Error {}

    func wantsResults(of outcome: Outcome) -> Bool { outcome != .cancelled || !hidesCancelled }
    func entryFinished(_ result: EntryResult) throws {
        results.append(result)
        if strikes(.reportFails) { throw ReportError() }
    }
    var warmLineWriter: (any WarmLineWriting)? { nil }
    func warmEntriesFinished(_ lines: ArraySlice<UInt8>) throws {}
    func progressed(_ progress: RunProgress) {}

    // MARK: The run

    /// Runs a coordinator over it.
    ///
    /// `limits` are made at the time of its start.
    func run(
        order: StartOrder, queueCapacity: Int, folder: String,
        limits: (ContinuousClock.Instant) -> RunLimits = { _ in RunLimits() }
    ) -> RunSummary {
        var configuration = RunConfiguration(
            userAgent: "test", manifests: ["m0", "m1", "m2"], codecWorkers: 1)
        configuration.runLimits = limits(time)
        configuration.queue.order = order
        configuration.queue.capacity = queueCapacity
        configuration.hosts.jobs = 8
        configuration.hosts.maximumRetries = 2
        let rules = RunRules(
            configuration, temporaryFolder: folder, cacheDirectory: "cache")
        let coordinator = RunCoordinator(
            rules, clock: clock, events: self, stages: self, recorder: self, observer: self,
            random: SplitMix(seed: random.next()))
        return coordinator.run(readsAheadOfStarts: order == .lifo) {}
    }
}

extension SplitMix {
    fileprivate static func first(of seed: UInt64) -> UInt64 {
        var random = SplitMix(seed: seed)
        return random.next()
    }
}

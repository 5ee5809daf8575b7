package import CacheStorage
import EntryLifecycle
import HTTPSemantics
package import PrefetchModel
import Scheduling
import Threading
import Transfers

/// Fetches the lists of a run by URL, one at a time, and keeps a copy of each in the cache.
///
/// The transfers have the run's settings: routes, credentials, fields, addresses, redirects,
/// time-outs and retries. A list is requested with conditions, unless the origin's own lifetime for
/// it has not passed. If no list arrives, its copy is used.
package final class ListFetcher: ListOpening {
    private struct State {
        /// Made for the first request.
        var transfers: BlockingTransfers?
        var retries: RetryPolicy
        var counts = ListCounts()
        /// The bytes written since the last removal of copies.
        var written = 0
        /// The next start at each host, where the user sets an interval.
        var nextStarts: [String: ContinuousClock.Instant] = [:]
    }

    /// The largest list as it is sent, after content decoding. One at a time is in memory.
    static let maximumSize = ByteCount.mebibytes(256)

    let store: ListStore
    let transfers: TransferConfiguration
    let rules: EntryRules
    let freshness: Freshness.Rules
    private let interval: Duration
    private let intervals: HostTable<Duration>
    private let refresh: RefreshMode
    private let longestRetryAfter: Duration
    private let deadline: ContinuousClock.Instant?
    private let wallClock: @Sendable () -> Timestamp
    private let state: Monitor<State>

    /// Takes the configuration of the run, and the folder of its cache, whose lock the process
    /// holds.
    package init(
        _ configuration: RunConfiguration, in directory: CacheDirectory,
        wallClock: @escaping @Sendable () -> Timestamp
    ) {
        store = ListStore(directory)
        var transfers = ListFetcher.settings(configuration.transfers)
        transfers.hosts = transfers.hosts.map(ListFetcher.settings)
        self.transfers = transfers
        rules = EntryRules(configuration, transfers)
        // Only a lifetime of the origin spares a request: a list is read for its changes.
        freshness = Freshness.Rules(
            maximum: configuration.lifetimes.maximum, defaultLifetime: .zero)
        interval = configuration.hosts.interval
        intervals = configuration.hosts.configurations.map(\.hosts.interval)
        refresh = configuration.lifetimes.refresh
        longestRetryAfter = configuration.hosts.longestRetryAfter
        deadline = configuration.runLimits.deadline
        self.wallClock = wallClock
        state = Monitor(
            State(
                retries: RetryPolicy(
                    maximumRetries: configuration.hosts.maximumRetries,
                    byHost: configuration.hosts.configurations.map(\.hosts.maximumRetries),
                    backoff: configuration.hosts.backoff)))
    }

    /// The settings of a run, or of a host in it, for lists in place of images.
    private static func settings(_ images: TransferConfiguration) -> TransferConfiguration {
        var settings = images
        settings.accept = "*/*"
        settings.maximumBodySize = maximumSize
        settings.bodyBudget = maximumSize
        settings.maximumIdleConnections = 1
        settings.responses = ResponseRules()
        // The run's own transfers write the jar.
        settings.requests.savesCookies = false
        return settings
    }

    package func open(
        _ request: ListRequest, check: (ListFile) -> Failure?
    ) throws(Failure) -> OpenedList {
        let copy = store.open(request.name)
        if let copy, isFresh(copy.list, for: request) { return opened(copy, .stored) }
        do throws(Failure) {
            return try fetch(request, copy, check)
        } catch {
            guard let copy, copy.rewind() else {
                state.withLock { $0.counts.failed += 1 }
                throw error
            }
            return opened(copy, .copy(error))
        }
    }

    package func finish() { removeUnused() }

    package var counts: ListCounts? { state.withLock { $0.counts } }

    private func removeUnused() {
        // An error is dropped: the next run tries again.
        try? store.removeUnused(at: wallClock())
        state.withLock { $0.written = 0 }
    }

    /// Notes that a copy was written. An index may name more lists than there is room for.
    func wrote(_ file: ListFile) {
        let written = state.withLock { state in
            state.written += file.size
            return state.written
        }
        if written > ListFetcher.maximumSize.bytes { removeUnused() }
    }

    func opened(_ file: ListFile, _ source: OpenedList.Source) -> OpenedList {
        store.use(file)
        state.withLock { state in
            switch source {
            case .fetched: state.counts.fetched += 1
            case .notModified: state.counts.notModified += 1
            case .stored: state.counts.stored += 1
            case .copy: state.counts.fallback += 1
            }
        }
        return OpenedList(
            file: file, source: source,
            ruleOfSitemaps: file.list.isPublic
                ? .redirectedFromPublic : transfers.listedAddressRule)
    }

    private func isFresh(_ list: StoredList, for request: ListRequest) -> Bool {
        switch refresh {
        case .none: true
        case .all, .force: false
        case .stale:
            matchesVary(list, fields(of: request, isForeign: false))
                && Freshness.isFresh(
                    validatedAt: list.validatedAt, expiresAt: list.expiresAt, at: wallClock(),
                    rules: freshness)
        }
    }

    /// The fields that a response to the request may vary on.
    func fields(of request: ListRequest, isForeign: Bool) -> [HeaderField] {
        transfers.requestFields(userFields: request.fields, isForeign: isForeign)
    }

    func matchesVary(_ list: StoredList, _ fields: [HeaderField]) -> Bool {
        list.response.vary.map { Vary.matches($0, request: fields) } ?? true
    }

    // MARK: Attempts

    /// The end of an attempt without a list.
    struct FailedAttempt: Error {
        let failure: Failure
        var httpStatus: Int?
        var retryAfter: Duration?

        static let late = FailedAttempt(
            failure: Failure(.notSelected, "not complete at the run's deadline"))
    }

    private func fetch(
        _ listed: ListRequest, _ copy: ListFile?, _ check: (ListFile) -> Failure?
    ) throws(Failure) -> OpenedList {
        var attempts = 0
        while true {
            attempts += 1
            do throws(FailedAttempt) {
                return try request(listed, copy, check)
            } catch {
                guard let delay = delay(after: error, of: listed.url, attempts: attempts) else {
                    throw error.failure
                }
                let end = ContinuousClock.now + delay
                state.wait { _, now in now >= end ? .ready(()) : .wait(until: end) }
            }
        }
    }

    /// The wait before the next attempt; nil for none.
    private func delay(
        after failed: FailedAttempt, of url: RequestURL, attempts: Int
    ) -> Duration? {
        let decision = state.withLock { state in
            var random = SystemRandomNumberGenerator()
            return state.retries.decide(
                failed.failure.reason, httpStatus: failed.httpStatus, attempts: attempts, starts: 0,
                of: url, using: &random)
        }
        let asked = failed.retryAfter ?? .zero
        guard case .retry(after: let backoff) = decision, asked <= longestRetryAfter else {
            return nil
        }
        let delay = max(backoff, asked)
        if let deadline, .now + delay >= deadline { return nil }
        return delay
    }

    /// Waits for the interval that the user sets between two requests to a host.
    private func waitForTurn(at origin: String) {
        let interval = intervals[hostIn: origin] ?? self.interval
        guard interval > .zero else { return }
        state.wait { state, now -> Monitor<State>.Decision<Void> in
            if let next = state.nextStarts[origin], now < next { return .wait(until: next) }
            state.nextStarts[origin] = now + interval
            return .ready(())
        }
    }

    /// Sends one request to an origin, and waits for its end.
    func perform(
        at origin: String, _ make: (Int) -> TransferRequest
    ) throws(FailedAttempt) -> TransferCompletion {
        waitForTurn(at: origin)
        if let deadline, .now >= deadline { throw FailedAttempt.late }
        let (known, number) = state.withLock { state in
            state.counts.requests += 1
            return (state.transfers, state.counts.requests)
        }
        let completions: [Int: TransferCompletion]
        do throws(BlockingTransfers.Problem) {
            let blocking: BlockingTransfers
            if let known {
                blocking = known
            } else {
                blocking = try BlockingTransfers(transfers, wallClock: wallClock)
                state.withLock { $0.transfers = blocking }
            }
            completions = try blocking.perform([make(number)], until: deadline)
        } catch {
            throw FailedAttempt(failure: Failure(.internal, error.message))
        }
        guard let completion = completions[number] else { throw FailedAttempt.late }
        state.withLock { $0.counts.bytesReceived += completion.bytesReceived }
        return completion
    }
}

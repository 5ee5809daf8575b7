package import CacheStorage
import EntryLifecycle
import HTTPSemantics
package import PrefetchModel
import Scheduling
import Threading
import Transfers

/// Fetches the lists of a run by URL, and keeps a copy of each in the cache.
///
/// Lists are opened one at a time. The first requests for the next ones are sent ahead, a
/// few at a time: an index of a thousand sitemaps does not take a thousand round trips.
///
/// The transfers have the run's settings: routes, credentials, fields, addresses, redirects,
/// time-outs and retries. A list is requested with conditions, unless the origin's own lifetime for
/// it has not passed. If no list arrives, its copy is used.
package final class ListFetcher: ListOpening {
    struct FetchState {
        var retries: RetryPolicy
        /// Here, since the thread sanitizer needs an address of it.
        var random = SystemRandomNumberGenerator()
        var counts = ListCounts()
        /// The bytes written since the last removal of copies.
        var written = 0
        /// By the name of the list.
        var ahead: [String: Ahead] = [:]
        var isCancelled = false
        /// The start of the first failure in a row of an origin that does not respond.
        var silentSince: [String: ContinuousClock.Instant] = [:]
        /// Whether an origin has refused for its pace, after which nothing is sent ahead.
        var wasRefused = false
        /// The next start at each host, where the user sets an interval.
        var nextStarts: [String: ContinuousClock.Instant] = [:]
    }

    /// The largest list as it is sent, after content decoding. One at a time is in memory.
    static let maximumSize = ByteCount.mebibytes(256)

    private static let bytesBetweenRemovals = 256 << 20

    let store: ListStore
    let transfers: TransferConfiguration
    let rules: EntryRules
    let freshness: Freshness.Rules
    private let hosts: HostRules
    private let refresh: RefreshMode
    let deadline: ContinuousClock.Instant?
    private let wallClock: @Sendable () -> Timestamp
    let state: Monitor<FetchState>
    private let running: BlockingTransfers

    /// Takes the configuration of the run, and the folder of its cache, locked by the process.
    package init(
        _ configuration: RunConfiguration, in directory: CacheDirectory,
        wallClock: @escaping @Sendable () -> Timestamp
    ) {
        store = ListStore(directory)
        var transfers = ListFetcher.settings(configuration.transfers)
        transfers.hosts = transfers.hosts.map(ListFetcher.settings)
        self.transfers = transfers
        running = BlockingTransfers(transfers, wallClock: wallClock)
        rules = EntryRules(configuration, transfers)
        // Only a lifetime of the origin spares a request: a list is read for its changes.
        freshness = Freshness.Rules(
            maximum: configuration.lifetimes.maximum, defaultLifetime: .zero)
        hosts = configuration.hosts
        refresh = configuration.lifetimes.refresh
        deadline = configuration.runLimits.deadline
        self.wallClock = wallClock
        state = Monitor(FetchState(retries: configuration.hosts.retryPolicy))
    }

    /// The settings of a run, or of a host in it, for lists in place of images.
    private static func settings(_ images: TransferConfiguration) -> TransferConfiguration {
        var settings = images
        settings.accept = "*/*"
        settings.requests.accept = nil
        settings.limits.maximumBodySize = maximumSize
        settings.bodyBudget = maximumSize
        settings.maximumIdleConnections = HostRules.firstConcurrency
        settings.responses = ResponseRules()
        // The run's own transfers write the jar.
        settings.requests.savesCookies = false
        return settings
    }

    package func open(
        _ request: ListRequest, allowsEmpty: Bool,
        count: (ListFile, _ most: Int) throws(Failure) -> Int
    ) throws(MissingList) -> OpenedList {
        let copy: ListFile?
        if let ahead = state.withLock({ $0.ahead[request.name] }) {
            copy = ahead.copy
        } else {
            copy = store.open(request.name)
            if let copy, isFresh(copy.list, for: request) { return opened(copy, .stored) }
        }
        do {
            return try fetch(request, copy) {
                objection(to: $0, inPlaceOf: copy, allowsEmpty: allowsEmpty, count)
            }
        } catch {
            guard let copy, copy.rewind() else {
                state.withLock { $0.counts.failed += 1 }
                throw MissingList(error, isKnown: !isNews(error, about: request.name))
            }
            return opened(copy, .copy(error))
        }
    }

    /// A list with fewer than the copy's entries divided by this is replaced late.
    private static let leastFraction = 10
    /// The time between two fetches of such a list.
    private static let confirmationTime = Duration.seconds(86_400)

    /// Returns why a new file does not replace the copy of a list: it is not a list, or it has far
    /// fewer entries. That is more often a fault of its origin than meant, and is accepted when it
    /// has lasted for a day.
    private func objection(
        to new: ListFile, inPlaceOf copy: ListFile?, allowsEmpty: Bool,
        _ count: (ListFile, _ most: Int) throws(Failure) -> Int
    ) -> Failure? {
        // A copy that cannot be read counts as an empty list.
        let known = copy.map { (try? count($0, .max)) ?? 0 } ?? 0
        do {
            let found = try count(new, known / ListFetcher.leastFraction + 1)
            guard found > 0 else {
                return known > 0 && !allowsEmpty ? Failure(.invalidEntry, "no entries") : nil
            }
            guard let copy, found * ListFetcher.leastFraction < known else { return nil }
            let now = wallClock()
            if let since = copy.list.shrunkSince, since <= now {
                if now.timeSince(since) >= ListFetcher.confirmationTime { return nil }
            } else {
                var list = copy.list
                list.shrunkSince = now
                do {
                    _ = try store.replace(copy, by: list)
                } catch {
                    return Failure(.disk, error.description)
                }
            }
            return Failure(
                .invalidEntry, "\(found == 1 ? "1 entry" : "\(found) entries") in place of \(known)"
            )
        } catch {
            return error
        }
    }

    package func cancel() {
        state.update { $0.isCancelled = true }
        running.cancelAll()
    }

    package func finish() { removeUnused() }

    package var counts: ListCounts? { state.withLock { $0.counts } }

    private func removeUnused() {
        // An error is dropped: the next run tries again.
        try? store.removeUnused(at: wallClock())
        state.withLock { $0.written = 0 }
    }

    /// Notes that a copy was written. An index may name more lists than there is room for, so the
    /// limit of all copies holds during a run, too.
    func wrote(_ file: ListFile) {
        let written = state.withLock { state in
            state.written += file.size
            return state.written
        }
        if written > ListFetcher.bytesBetweenRemovals { removeUnused() }
    }

    func opened(_ file: ListFile, _ source: OpenedList.ListSource) -> OpenedList {
        file.touch()
        let name = file.list.url
        let (count, isNews): (WritableKeyPath<ListCounts, Int>, Bool) =
            switch source {
            case .fetched: (\.fetched, store.noteSuccess(of: name))
            case .notModified: (\.notModified, store.noteSuccess(of: name))
            case .stored: (\.stored, false)
            case .copy(let failure): (\.fallback, isNews(failure, about: name))
            }
        state.withLock { $0.counts[keyPath: count] += 1 }
        return OpenedList(
            file: file, source: source, isNews: isNews,
            ruleOfSitemaps: file.list.isPublic
                ? .redirectedFromPublic : transfers.listedAddressRule)
    }

    /// Notes that a list could not be fetched; returns whether the last run could. The end of the
    /// run says nothing about its origin.
    private func isNews(_ failure: Failure, about list: String) -> Bool {
        failure != MissingList.late && store.noteFailure(of: list)
    }

    func isFresh(_ list: StoredList, for request: ListRequest) -> Bool {
        switch refresh {
        case .none: true
        case .all, .force: false
        case .stale:
            matchesVary(list, fields(of: request, at: request.url, isForeign: false))
                && Freshness.isFresh(
                    validatedAt: list.validatedAt, expiresAt: list.expiresAt, at: wallClock(),
                    rules: freshness)
        }
    }

    /// The fields that a response to the request may vary on.
    func fields(of request: ListRequest, at target: RequestURL, isForeign: Bool) -> [HeaderField] {
        transfers.requestFields(to: target.text, userFields: request.fields, isForeign: isForeign)
    }

    func matchesVary(_ list: StoredList, _ fields: [HeaderField]) -> Bool {
        list.response.vary.map { Vary.matches($0, request: fields) } ?? true
    }

    // MARK: Requests sent ahead

    /// A request that was sent ahead.
    struct Ahead {
        let transfer: StartedTransfer
        /// The copy that the request validates; nil without one.
        let copy: ListFile?
    }

    package func expect(_ requests: [ListRequest]) {
        for listed in requests where maySendAhead(listed) {
            let copy = store.open(listed.name)
            if let copy, isFresh(copy.list, for: listed) { continue }
            let step = step(of: listed, Route(from: listed.url, addressRule: listed.rule), copy)
            let transfer = start(step.request)
            state.withLock { $0.ahead[listed.name] = Ahead(transfer: transfer, copy: copy) }
        }
    }

    /// Whether the user's limits permit one more request, and no origin has refused for its pace.
    private func maySendAhead(_ listed: ListRequest) -> Bool {
        let rules = rules(at: listed.url.origin)
        guard rules.interval == .zero else { return false }
        if let deadline, .now >= deadline { return false }
        let most = [rules.concurrency, rules.jobs].compactMap(\.self)
            .reduce(HostRules.firstConcurrency, min)
        return state.withLock { state in
            !state.wasRefused && !state.isCancelled && state.ahead.count < most
                && state.ahead[listed.name] == nil
        }
    }

    // MARK: Attempts

    private func fetch(
        _ listed: ListRequest, _ copy: ListFile?, _ check: (ListFile) -> Failure?
    ) throws(Failure) -> OpenedList {
        var attempts = 0
        while true {
            attempts += 1
            do {
                return try request(listed, copy, check)
            } catch {
                let missing = MissingList(reporting: error)
                guard let delay = delay(after: missing, of: listed.url, attempts: attempts) else {
                    throw missing.failure
                }
                let end = ContinuousClock.now + delay
                state.wait { state, now in
                    now >= end || state.isCancelled ? .ready(()) : .wait(until: end)
                }
            }
        }
    }

    /// The wait before the next attempt; nil for none.
    private func delay(
        after failed: MissingList, of url: RequestURL, attempts: Int
    ) -> Duration? {
        let decision = state.withLock { state in
            state.retries.decide(
                failed.failure.reason, httpStatus: failed.httpStatus, attempts: attempts, starts: 0,
                of: url, using: &state.random)
        }
        let asked = failed.retryAfter ?? .zero
        guard case .retry(after: let backoff) = decision, asked <= hosts.longestRetryAfter
        else { return nil }
        let delay = max(backoff, asked)
        if let deadline, .now + delay >= deadline { return nil }
        return delay
    }

    /// Waits for the interval that the user sets between two requests to a host.
    private func waitForTurn(at origin: String) {
        let interval = rules(at: origin).interval
        guard interval > .zero else { return }
        state.wait { state, now -> Monitor<FetchState>.Decision<Void> in
            if let next = state.nextStarts[origin], now < next, !state.isCancelled {
                return .wait(until: next)
            }
            state.nextStarts[origin] = now + interval
            return .ready(())
        }
    }

    /// The rules for a host.
    func rules(at origin: String) -> HostRules {
        hosts.configurations[hostIn: origin]?.hosts ?? hosts
    }

    func start(_ request: TransferRequest) -> StartedTransfer {
        state.withLock { $0.counts.requests += 1 }
        return running.start(request)
    }

    /// Sends one request for a list to an origin, unless it was sent ahead, and waits for its end.
    func perform(
        for list: String, at origin: String, _ request: TransferRequest
    ) throws -> TransferCompletion {
        let ahead = state.withLock { $0.ahead.removeValue(forKey: list)?.transfer }
        if ahead == nil { waitForTurn(at: origin) }
        if let deadline, .now >= deadline { throw MissingList.late }
        let (isCancelled, silentSince) = state.withLock { state in
            (state.isCancelled, state.silentSince[origin])
        }
        guard !isCancelled else { throw MissingList.late }
        let beginning = ContinuousClock.now
        let patience = rules(at: origin).timeout
        if let silentSince, beginning - silentSince >= patience {
            throw Failure(
                .timeout, "\(origin) has not responded for \(patience.quantityDescription)")
        }
        guard let completion = try running.wait(for: ahead ?? start(request), until: deadline)
        else { throw MissingList.late }
        state.withLock { state in
            state.counts.bytesReceived += completion.bytesReceived
            switch HostPacing.Signal(completion.result) {
            case .unreachable, .absent, .untrusted:
                state.silentSince[origin] = state.silentSince[origin] ?? beginning
            case .answered, .brokeOff: state.silentSince[origin] = nil
            case .overloaded:
                state.silentSince[origin] = nil
                state.wasRefused = true
            case .nothing: break
            }
        }
        return completion
    }
}

import CacheStorage
import EntryLifecycle
import PrefetchModel
import Threading
import Transfers

// Requests that are sent before their lists are opened.

extension ListFetcher {
    /// A request that was sent ahead.
    struct Ahead {
        let transfer: StartedTransfer
        /// The copy that it has the validators of; nil without one.
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
}

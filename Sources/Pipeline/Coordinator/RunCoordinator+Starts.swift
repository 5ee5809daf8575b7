import CacheStorage
import EntryLifecycle
import EntryQueue
import PrefetchModel
import Scheduling

extension RunCoordinator {
    func startWork() {
        endingRunOnError {
            try startDerivations()
            try startTransfers()
            try endGivenUp()
        }
    }

    private func startTransfers() throws {
        let now = clock.now
        guard dispatch.hasRoomForTransfer, dispatch.hasReady(at: now) else { return }
        let hasRoom = hasRoomForTransferredImage
        ledger.tallies.noteTurn(hasRoomForImage: hasRoom)
        guard hasRoom else { return }
        try stages.startStoring()
        while dispatch.hasRoomForTransfer, hasRoomForTransferredImage,
            let identifier = try dispatch.nextReady(at: now)
        {
            if let most = rules.configuration.runLimits.entries, dispatch.starts >= most,
                store[identifier]?.hadTurn != true
            {
                dispatch.withdrew(identifier, at: now)
                takeNoMoreEntries()
                cancel(identifier)
                continue
            }
            let position = dispatch.countStart(of: store[identifier])
            let action = store.update(identifier) { $0.start(position: position, at: now) }
            perform(action, for: identifier)
        }
    }

    /// Whether one more image may be requested.
    var hasRoomForTransferredImage: Bool { stages.hasRoomForImage(beside: dispatch.inFlight) }

    private func startDerivations() throws {
        let now = clock.now
        var begun = 0
        while stages.hasRoomForImage(), begun < RunCoordinator.derivationsAtOnce,
            stages.lookingUp < RunCoordinator.derivationsAtOnce, dispatch.hasDerivation(at: now)
        {
            try stages.startStoring()
            guard let identifier = try dispatch.nextDerivation(at: now) else { return }
            begun += 1
            let action = store.update(identifier) { $0.startDeriving(at: now) }
            perform(action, for: identifier)
        }
    }

    /// Ends entries of given-up hosts, a limited number at a time.
    private func endGivenUp() throws {
        guard dispatch.scheduler.hasGivenUp else { return }
        let now = clock.now
        var ended = 0
        while stages.hasRoomForLookup, ended < RunCoordinator.givenUpAtOnce,
            let (identifier, cause) = try dispatch.nextGivenUp(at: now)
        {
            guard let machine = store[identifier] else { continue }
            ended += 1
            let host = machine.target.origin
            let (reason, text) = cause.explanation(of: host, at: now, clock.wall())
            if machine.waitsForRetry { dispatch.withdrawRetry() }
            let action = store.update(identifier) { $0.giveUp(reason, text, at: now) }
            perform(action, for: identifier, trouble: machine.hadTurn ? nil : (host, cause))
        }
    }

    private static let givenUpAtOnce = 4096
    private static let derivationsAtOnce = 64
}

extension HostPacing.GiveUpCause {
    fileprivate func explanation(
        of host: String, at now: ContinuousClock.Instant, _ wallTime: Timestamp
    ) -> (FailureReason, String) {
        switch self {
        case .coolingDown(until: let time):
            let end = wallTime.advanced(by: time.instant - now)
            return (.httpStatus, "\(host) asked for a pause until \(end)")
        case .overloaded(answers: let count):
            return (.httpStatus, "\(host) answered 429 or 503 \(count) times in a row")
        case .unreachable(let reason, failures: let count):
            let times = count > 1 ? " \(count) times in a row" : ""
            let event =
                reason == .tls ? "the TLS connection to \(host) failed" : "\(host) did not respond"
            return (reason, "\(event)\(times) (\(reason.rawValue))")
        }
    }
}

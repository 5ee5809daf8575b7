import CacheStorage
import EntryLifecycle
import EntryQueue
import HTTPSemantics
import PrefetchModel
import Scheduling
import Transfers

extension RunCoordinator {
    func transferred(_ completion: TransferCompletion) {
        let identifier = completion.id
        guard let machine = store[identifier] else {
            preconditionFailure("a transfer belongs to a started entry")
        }
        let origin = machine.target.origin
        let refused = dispatch.finished(
            identifier, at: origin, HostPacing.Signal(completion.result),
            HostPacing.Observation(completion, isRepeated: machine.wasRefused), at: clock.now)
        ledger.countReceived(completion.bytesReceived)
        ledger.tallies.note(completion, of: origin, at: clock.now)
        ending.noteTransfer(of: completion.elapsed)
        let cost = (completion.bytesReceived, completion.elapsed, completion.connection)
        let context = context(of: identifier)
        if let refused, machine.refusals < EntryMachine.freeRefusals,
            case .response(let response, _) = completion.result
        {
            let action = store.update(identifier) {
                $0.refusedForPace(response, isCertain: refused.isForPace, cost: cost, in: context)
            }
            if case .queue(.place) = action {
                return dispatch.putBack(refused.start, at: clock.now)
            }
            return perform(action, for: identifier)
        }
        let interrupted = completion.interruptedBody.map { (head: $0.head, body: $0.body.extent) }
        switch completion.result {
        case .cancelled:
            let action = store.update(identifier) {
                $0.transferCancelled(leaving: interrupted, cost: cost, in: context)
            }
            perform(action, for: identifier, with: Payload(completion.interruptedBody))
        case .failure(let failure):
            let action = store.update(identifier) {
                $0.transferFailed(
                    failure.namingCurlCode, leaving: interrupted, cost: cost, in: context)
            }
            perform(action, for: identifier, with: Payload(completion.interruptedBody))
        case .refused(let response, let refusal):
            let action = store.update(identifier) {
                $0.bodyRefused(response, cost: cost, in: context)
            }
            perform(action, for: identifier, with: .refusal(refusal))
        case .response(let response, let body):
            let kept = machine.keptImages.map { $0.map(recorder.hasWholeFile) ?? true }
            let action = store.update(identifier) {
                $0.responded(
                    response, body: body?.extent,
                    redirectRule: rules.requests.redirectRule(from: completion.address),
                    cost: cost, kept: kept, in: context)
            }
            perform(
                action, for: identifier,
                with: body.map { .body($0, isFramed: response.hasFramedBody) } ?? .none)
        }
    }

    func found(_ findings: CopyFindings) {
        switch findings.found {
        case .entry(let found, isAhead: true):
            guard stages.ahead.arrived(findings.token, found) else { return }
            // It may have been cancelled since its turn.
            if store[findings.token]?.isLookingUp == true { lookedUp(findings.token, found) }
        case .entry(let found, isAhead: false):
            stages.noteFound()
            lookedUp(findings.token, found)
        case .stored(let stored):
            stages.noteFound()
            finishDuplicate(findings.token, stored)
        }
    }

    func processed(_ completion: CodecCompletion) {
        stages.noteProcessed()
        let context = context(of: completion.id)
        if !completion.others.isEmpty {
            ledger.count(completion.others)
            pendingResults.others[completion.id] = completion.others.compactMap { other in
                other.image.map {
                    VariantChange(other.variant, image: $0, createdAt: context.now)
                }
            }
        }
        let action: EntryAction
        switch completion.result {
        case .processed(let result):
            action = store.update(completion.id) {
                $0.processed(
                    result, decode: completion.decode, encode: completion.encode,
                    remark: completion.remark, in: context)
            }
        case .partSaved(let part):
            action = store.update(completion.id) { $0.partSaved(part, in: context) }
        case .fatal(let error):
            action = store.update(completion.id) { $0.abort(RunFailure(error).failure) }
        }
        perform(action, for: completion.id)
        if case .fatal(let error) = completion.result { fail(error) }
    }

    func committed(_ identifier: Int) {
        perform(store.update(identifier) { $0.committed() }, for: identifier)
    }

    // MARK: Stages that have ended

    func transfersFailed(_ error: any Error) {
        fail(error)
        for identifier in store.identifiers(where: \.isAsking) {
            dispatch.withdrew(identifier, at: clock.now)
            cancel(identifier)
        }
    }

    func lookupsFailed(_ error: any Error) {
        fail(error)
        stages.noteLookupsLost()
        for identifier in store.identifiers(where: \.isLookingUp) {
            lookedUp(identifier, .nothing)
        }
        for token in pendingResults.tokens { finishDuplicate(token, nil) }
    }

    func writerFailed(_ error: any Error) {
        stages.noteWriterFailed(error)
        fail(error)
        for identifier in store.identifiers(where: \.isWriting) {
            abort(identifier, error)
        }
    }

    func send() {
        do {
            try stages.sendLookups()
        } catch {
            lookupsFailed(error)
        }
        do {
            try stages.sendRequests()
        } catch {
            transfersFailed(error)
        }
    }
}

extension RunCoordinator.Payload {
    fileprivate init(_ body: InterruptedBody?) {
        self = body.map { .interrupted($0) } ?? .none
    }
}

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
    var hasRoomForTransferredImage: Bool {
        stages.hasRoomForImage(beside: dispatch.inFlight) && hasRoomForStart
    }

    /// Sleeping entries may take all the room; then one entry starts at a time.
    private var hasRoomForStart: Bool {
        store.hasRoomForStart
            || dispatch.inFlight == 0 && stages.isIdle && !stages.hasUncommitted
    }

    private func startDerivations() throws {
        let now = clock.now
        var begun = 0
        while stages.hasRoomForImage(), hasRoomForStart, begun < RunCoordinator.derivationsAtOnce,
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
        while hasRoomForLookup, ended < RunCoordinator.givenUpAtOnce,
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

    /// Whether an entry of a host that is given up may be looked up. Entries that were spilled
    /// return to memory for it.
    var hasRoomForLookup: Bool {
        stages.hasRoomForLookup && (stages.lookingUp == 0 || store.hasRoomForUnspilled)
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

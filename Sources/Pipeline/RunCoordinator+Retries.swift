import CacheStorage
import HTTPSemantics
import PrefetchModel
import Scheduling
import Transfers

/// What becomes of failed transfers, and of hosts that are of no use now.
extension RunCoordinator {
    /// Entries of given-up hosts that are dealt with before something else has its turn.
    private static let givenUpAtOnce = 4096
    /// Entries that may wait for their retries, in memory, however little else is to be there.
    private static let leastSleeping = 10_000

    private var sleepingCapacity: Int {
        max(configuration.queueCapacity, RunCoordinator.leastSleeping)
    }

    // MARK: Entries

    /// Takes a failed attempt: the entry is tried again, or has failed.
    func failed(_ identifier: Int, _ reason: FailureReason, _ message: String) {
        guard !isStopping, let entry = pending[identifier], let progress = entry.progress,
            progress.start != nil
        else { return finish(identifier, .failed, reason: reason, message: message) }
        if progress.followsMemory {
            // What was said to be for good is so no more: the listed URL decides.
            return restart(identifier, progress, at: entry)
        }
        switch retries.decide(
            reason, httpStatus: progress.httpStatus, attempts: progress.attempts,
            starts: starts,
            hasRoom: scheduler.sleepingCount < sleepingCapacity && pending.hasRoomForSleeper,
            using: &random)
        {
        case .final:
            finish(identifier, .failed, reason: reason, message: message)
        case .exhausted:
            finish(
                identifier, .failed, reason: reason,
                message: "\(message); the run has no retries left")
        case .noRoom:
            finish(
                identifier, .failed, reason: reason,
                message: "\(message); too many entries wait for their retries")
        case .retry(after: let delay):
            progress.failure = (reason, message)
            progress.restart(at: entry.url)
            progress.beginsAttempt = true
            let now = ContinuousClock.now
            queue(identifier, entry, standing: .retry, notBefore: now + delay, at: now)
        }
    }

    /// Asks for an entry at its listed URL, next at its host, and as part of the same attempt.
    private func restart(
        _ identifier: Int, _ progress: PendingEntry.Progress, at entry: PendingEntry
    ) {
        progress.restart(at: entry.url)
        progress.ignoresMemory = true
        queue(identifier, entry, standing: .next, at: .now)
    }

    /// Has an entry wait for the host of its next transfer.
    func queue(
        _ identifier: Int, _ entry: PendingEntry, standing: Scheduler.Standing,
        notBefore wakeTime: ContinuousClock.Instant? = nil, at now: ContinuousClock.Instant
    ) {
        pending.waits(identifier)
        do {
            try scheduler.push(
                identifier, priority: entry.priority,
                host: (entry.progress?.target ?? entry.url).origin,
                standing: standing, notBefore: wakeTime, at: now)
        } catch {
            fail(FatalError(spilling: error))
        }
    }

    // MARK: Hosts

    /// What a finished transfer says of its host.
    func signal(
        of result: TransferCompletion.Result
    ) -> HostPacing.Signal {
        switch result {
        case .cancelled:
            return .nothing
        case .refused:
            return .answered
        case .response(let response, _):
            guard response.status == 429 || response.status == 503 else { return .answered }
            return .overloaded(
                retryAfter: RetryAfter.delay(
                    of: response.fields, receivedAt: response.receivedAt))
        case .failure(let failure):
            // What began to answer is there, however it ended.
            guard failure.httpStatus == nil else { return .brokeOff }
            switch failure.reason {
            case .dns, .connect, .tls, .timeout, .stalled, .interrupted:
                return .unreachable(failure.reason)
            default: return .nothing
            }
        }
    }

    /// Ends the entries of hosts that are given up in this run, as far as that takes no long time.
    func endGivenUp() {
        guard scheduler.hasGivenUp else { return }
        var ended: [(identifier: Int, cause: HostPacing.Surrender)] = []
        let now = ContinuousClock.now
        do {
            while ended.count < RunCoordinator.givenUpAtOnce,
                let (identifier, isFresh, cause) = try scheduler.popGivenUp(at: now)
            {
                if isPlaceOfRaised(identifier, isFresh: isFresh) { continue }
                ended.append((identifier, cause))
                if let entry = pending[identifier], entry.progress == nil {
                    pending[identifier]?.progress = PendingEntry.Progress(
                        start: nil, target: entry.url, queued: now - entry.queuedAt)
                }
            }
            // Of those that are stored, the copy stays, which is said.
            try findCopies(of: ended.map(\.identifier))
        } catch let error as StorageError {
            fail(FatalError(error))
        } catch {
            fail(FatalError(spilling: error))
        }
        for (identifier, cause) in ended { giveUp(identifier, cause, at: now) }
    }

    private func giveUp(
        _ identifier: Int, _ cause: HostPacing.Surrender, at now: ContinuousClock.Instant
    ) {
        guard let entry = pending[identifier], let progress = entry.progress else { return }
        let (reason, text) = explanation(
            cause, host: progress.target.origin, at: now)
        // That of a redirect, or of an earlier attempt.
        if progress.failure == nil {
            progress.httpStatus = nil
            progress.contentType = nil
        }
        if progress.followsMemory, !isStopping {
            return restart(identifier, progress, at: entry)
        }
        if let failure = progress.failure {
            retries.withdraw()
            return finish(
                identifier, .failed, reason: failure.reason,
                message: "\(failure.message); not retried: \(text)")
        }
        if progress.start == nil {
            // It would have failed like the others of its host.
            outageRule.failed(
                host: entry.url.origin, reason: reason,
                httpStatus: reason == .httpStatus ? 503 : nil)
        }
        finish(
            identifier, .failed, reason: reason, message: "not requested: \(text)",
            isKnown: progress.start == nil && wasGivenUpBefore(progress.target.origin, cause))
    }

    private func explanation(
        _ cause: HostPacing.Surrender, host: String, at now: ContinuousClock.Instant
    ) -> (FailureReason, String) {
        switch cause {
        case .coolingDown(until: let time):
            let end = wallClock().advanced(by: time - now)
            return (.httpStatus, "\(host) asks to be left alone until \(end)")
        case .overloaded(answers: let count):
            return (
                .httpStatus,
                "\(host) answered 429 or 503 \(count) times in a row"
            )
        case .unreachable(let reason, failures: let count):
            return (reason, "\(host) gave no answer \(count) times in a row (\(reason.rawValue))")
        }
    }

    /// When something may start that may not now, if a start is possible then; nil when only other
    /// events change that.
    var nextStartTime: ContinuousClock.Instant? {
        if scheduler.hasGivenUp { return .now }
        guard hasRoomForTransfer else { return nil }
        // Starting may have sent entries on to other hosts.
        if scheduler.hasReady(at: .now) { return .now }
        return scheduler.nextWakeTime
    }
}

extension FatalError {
    init(_ error: SpillError) {
        self.init(message: error.description, hint: error.hint, reason: .disk)
    }

    /// What the queue's storage throws.
    init(spilling error: any Error) {
        if let error = error as? SpillError {
            self.init(error)
        } else {
            self.init(message: "\(error)", hint: nil, reason: .internal)
        }
    }
}

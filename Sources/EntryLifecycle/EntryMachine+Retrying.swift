import PrefetchModel
import Scheduling

/// The ways back into the queue.
extension EntryMachine {
    /// Takes a failed attempt: the entry is tried again, or has failed.
    mutating func fail(
        _ failure: AttemptFailure, _ history: History, _ journey: Journey, _ context: EntryContext
    ) -> EntryAction {
        guard !context.phase.isStopping, history.wasAsked, !failure.reason.isExclusion else {
            return end(failure, history, journey)
        }
        if journey.route.followsMemory {
            // What was said to be for good is so no more: the listed URL decides.
            return restart(history, journey)
        }
        switch context.retry(failure.reason, history.httpStatus, history.attempts) {
        case .final:
            return end(failure, history, journey)
        case .exhausted:
            return end(
                AttemptFailure(failure.reason, "\(failure.message); the run has no retries left"),
                history, journey)
        case .noRoom:
            return end(
                AttemptFailure(
                    failure.reason,
                    "\(failure.message); too many entries wait for their retries"), history,
                journey)
        case .retry(after: let delay):
            var journey = journey
            journey.restart(at: entry.url, turn: .retry(after: failure))
            state = .queued(history, journey)
            return .queue(.retry(after: delay))
        }
    }

    private mutating func end(
        _ failure: AttemptFailure, _ history: History, _ journey: Journey
    ) -> EntryAction {
        state = .queued(history, journey)
        if failure.reason.isExclusion {
            return finish(.excluded(message: failure.message, reason: failure.reason))
        }
        return finish(.failed(EntryEnd.Failed(failure: failure, blame: .origin)))
    }

    /// Asks for the entry at its listed URL, next at its host, and as part of the same attempt.
    mutating func restart(_ history: History, _ journey: Journey) -> EntryAction {
        var journey = journey
        journey.restart(at: entry.url, turn: .sameAttempt)
        journey.usesMemory = false
        state = .queued(history, journey)
        return .queue(.next)
    }

    /// Asks for the whole of a body whose part turned out to be of no use, next at its host and as
    /// part of the same attempt.
    mutating func fetchWhole(
        _ history: History, _ journey: Journey, _ context: EntryContext
    ) -> EntryAction {
        var journey = journey
        journey.usesParts = false
        // The same URL is asked once more, which is no loop.
        journey.route.leaveLast()
        state = .queued(history, journey)
        return context.phase.isStopping ? cancel() : .queue(.next)
    }

    /// Asks for the entry without conditions: what is stored of it turned out to be of no use.
    mutating func fetchAnew(
        _ history: History, _ journey: Journey, _ context: EntryContext
    ) -> EntryAction {
        var journey = journey
        journey.restart(
            at: entry.url, turn: history.wasAsked ? .sameAttempt : .firstAttempt)
        journey.usesMemory = false
        journey.usesConditions = false
        state = .queued(history, journey)
        if context.phase.isStopping { return cancel() }
        guard !context.rules.isOffline else {
            return finish(.excluded(message: "its original is damaged (--offline)"))
        }
        return .queue(.next)
    }

    /// The same, and forgets the stored original, which is gone or damaged.
    mutating func fetchWithoutOriginal(
        _ history: History, _ journey: Journey, _ context: EntryContext
    ) -> EntryAction {
        guard let original = journey.findings.copy?.original else {
            return fetchAnew(history, journey, context)
        }
        var journey = journey
        journey.findings.copy?.forgetOriginal()
        let next = fetchAnew(history, journey, context)
        return .forget(original, then: next)
    }
}

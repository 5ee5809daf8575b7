package import PrefetchModel
import Scheduling

extension EntryMachine {
    /// Takes a failed attempt: retries the entry, requests its next URL, or ends it.
    mutating func fail(_ failure: Failure, _ context: EntryContext) -> EntryAction {
        let history = history
        let failure = history.failure(failure)
        guard !context.phase.isStopping, history.hadTurn, !failure.reason.isExclusion,
            !failure.reason.isLocal
        else { return end(failure) }
        // The remembered permanent redirect no longer holds: the listed URL decides.
        if journey.route.followsMemory { return restart() }
        let attempts = history.attempts - history.attemptsAtOthers
        let target = journey.route.target
        func adding(_ cause: String) -> Failure {
            Failure(failure.reason, "\(failure.message); \(cause)")
        }
        switch context.retry(target, failure.reason, history.httpStatus, attempts) {
        case .final:
            return requestAlternative(after: failure) ?? end(failure)
        case .exhausted:
            return requestAlternative(after: failure) ?? end(adding("the run has no retries left"))
        case .noRoom:
            return end(adding("too many entries wait for their retries"))
        case .retry(after: let delay):
            journey.restart(at: entry.url, turn: .retry(after: failure))
            state = .queued
            return .queue(.retry(after: delay))
        }
    }

    /// Refusals for the pace that do not count as attempts: any more are due to the image.
    package static let freeRefusals = 3

    /// The wait of an entry after a refusal that may be due to its image, so that others are
    /// requested first.
    private static let waitForOthers = Duration.milliseconds(500)

    /// Takes a response that refuses the request for its pace, and returns the entry to its place.
    ///
    /// An entry that was refused before waits behind others: their responses show whether its image
    /// is the cause. So does an entry with an uncertain cause.
    package mutating func refusedForPace(
        _ response: Response, isCertain: Bool, cost: TransferCost, in context: EntryContext
    ) -> EntryAction {
        asked(cost)
        history.note(response)
        history.refusals += 1
        guard !context.phase.isStopping else { return cancel() }
        state = .queued
        guard isCertain else { return .queue(.retry(after: EntryMachine.waitForOthers)) }
        return .queue(history.refusals == 1 ? .place : .retry(after: .zero))
    }

    mutating func end(_ failure: Failure) -> EntryAction {
        let failure = memorable(failure)
        if failure.reason.isExclusion {
            return finish(.excluded(message: failure.message, reason: failure.reason))
        }
        return finish(failure, .ofRequest(failure))
    }

    /// Returns the failure to report for all URLs of the line, and makes its URL the one in use. A
    /// failure that may have been temporary is preferred: it must not blacklist the others, and
    /// belongs to an outage of its own host. A local failure hides none of another cause.
    private mutating func memorable(_ failure: Failure) -> Failure {
        guard let earlier = history.temporary, !failure.reason.isLocal,
            !EntryMachine.isTemporary(failure, httpStatus: history.httpStatus)
        else { return failure }
        entry.alternative = earlier.alternative
        history.lastResult = earlier.lastResult
        return earlier.failure
    }

    private static func isTemporary(_ failure: Failure, httpStatus: Int?) -> Bool {
        FailurePolicy.failureClass(of: failure.reason, httpStatus: httpStatus) == .transient
    }

    /// Excludes the entry because of a redirect's target. Its further URLs may lead elsewhere, and
    /// so may the listed one that a remembered redirect was used for.
    mutating func exclude(
        _ objection: Failure, asTarget target: String, _ context: EntryContext
    ) -> EntryAction {
        let failure = objection.redirected(to: target)
        guard !context.phase.isStopping else { return end(failure) }
        if journey.route.followsMemory { return restart() }
        return requestAlternative(after: failure) ?? end(failure)
    }

    /// Requests the next URL of its line, in its turn at that host; nil after the last one.
    mutating func requestAlternative(after failure: Failure) -> EntryAction? {
        guard entry.alternative < entry.extras?.alternatives.count ?? 0 else { return nil }
        if history.temporary == nil,
            EntryMachine.isTemporary(failure, httpStatus: history.httpStatus)
        {
            history.temporary = History.EarlierFailure(
                failure: failure, alternative: entry.alternative, lastResult: history.lastResult)
        }
        entry.alternative += 1
        history.attemptsAtOthers = history.attempts
        history.unansweredRanges = 0
        history.refusals = 0
        journey.restart(at: entry.url, turn: .firstAttempt)
        state = .queued
        return .queue(.retry(after: .zero))
    }

    /// Requests the listed URL, next at its host, in the same attempt.
    mutating func restart() -> EntryAction {
        journey.restart(at: entry.url, turn: .sameAttempt)
        journey.usesMemory = false
        state = .queued
        return .queue(.next)
    }

    /// Requests the whole body, next at its host and in the same attempt: the stored part is
    /// unusable.
    mutating func fetchWhole(_ context: EntryContext) -> EntryAction {
        journey.findings.part = nil
        // Requesting the same URL again is not a loop.
        journey.route.leaveLast()
        state = .queued
        return .forgetPart(then: context.phase.isStopping ? cancel() : .queue(.next))
    }

    /// Requests the entry without conditions: the stored copy is unusable.
    mutating func fetchAgain(_ context: EntryContext) -> EntryAction {
        journey.restart(at: entry.url, turn: hadTurn ? .sameAttempt : .firstAttempt)
        journey.usesMemory = false
        journey.usesConditions = false
        state = .queued
        if context.phase.isStopping { return cancel() }
        guard !context.rules.isOffline else {
            return finish(.excluded(message: "a file that it needs is damaged (--offline)"))
        }
        return .queue(.next)
    }

    /// Does the same, and forgets the stored original, which is missing or damaged.
    mutating func fetchWithoutOriginal(_ context: EntryContext) -> EntryAction {
        guard let original = findings.copy?.original?.image else { return fetchAgain(context) }
        journey.findings.copy?.original = nil
        return .forget(original, then: fetchAgain(context))
    }
}

import HTTPSemantics
import PrefetchModel

extension EntryMachine {
    /// Takes the findings of ``EntryAction/lookUp``.
    package mutating func lookedUp(_ findings: Findings, in context: EntryContext) -> EntryAction {
        guard case .lookingUp(let purpose) = state else {
            preconditionFailure("findings arrived for an entry that is not looking up")
        }
        if case .due = journey.lookup { journey.lookup = .done(findings) }
        // The host's failure is reported at its end, after the look-up.
        if findings.wasGivenUpBefore { journey.findings.wasGivenUpBefore = true }
        let isOther = isOfOtherSource(findings.copy)
        if isOther { journey.usesConditions = false }
        return switch purpose {
        case .asking: ask(context)
        case .deriving where entry.state.isSeeded: adopt(context)
        case .deriving where isOther: fetchAgain(context)
        case .deriving: derive(nil, context)
        case .givingUp(let trouble): endGivenUp(trouble, context)
        }
    }

    private func isOfOtherSource(_ copy: StoredCopy?) -> Bool {
        guard let wanted = entry.extras?.sourceDigest, let copy else { return false }
        return copy.sourceDigest != wanted
    }

    private mutating func ask(_ context: EntryContext) -> EntryAction {
        if context.phase.isStopping { return cancel() }
        if let (target, until) = remembered(context) {
            if let objection = context.rules.exclusions.objection(.to(target)) {
                return exclude(objection, asTarget: target.description, context)
            }
            let isElsewhere = target.origin != entry.url.origin
            journey.route.followMemory(to: target, until: until)
            if isElsewhere {
                // The host that sent the redirect gets no request now, and could have been any.
                journey.route.addressRule = .redirectedFromPublic
                state = .queued
                return .moveOn
            }
        }
        journey.route.visit(journey.route.target)
        let route = journey.route
        let request = EntryRequest(
            url: route.requestURL(listed: entry.url), conditions: conditions(context),
            part: part(context), isForeign: route.isForeign(to: entry.url),
            addressRule: route.addressRule, mayBeKnown: known(context) != nil)
        state = .asking(request)
        return .ask(request)
    }

    /// The target of an earlier run's permanent redirects, if the first transfer should use it.
    private func remembered(_ context: EntryContext) -> (target: RequestURL, until: Timestamp)? {
        let journey = journey
        guard journey.route.visited.isEmpty, journey.usesMemory, journey.usesConditions,
            !journey.route.followsMemory, let copy = journey.findings.copy,
            let target = copy.permanentTarget,
            let until = context.rules.redirectsRemembered(
                in: copy.validation, from: entry.url, to: target, at: context.now)
        else { return nil }
        return (target, until)
    }

    /// The fields that make a request conditional; empty where a 304 would be useless.
    private func conditions(_ context: EntryContext) -> [HeaderField] {
        let journey = journey
        // Validators belong to the URL that the copy was fetched from. They are meaningless for
        // hops on the way, and for a new URL under the same `key`.
        guard context.rules.usesStoredCopies, journey.usesConditions,
            let copy = journey.findings.copy,
            context.rules.ignoredQuery.areEqual(
                journey.route.target.withoutCredentials.text,
                copy.validation.location.respondingURL),
            copy.isComplete || copy.original?.isWhole == true
        else { return [] }
        let stored = copy.validation.response
        let matchesVary =
            stored.vary.map { Vary.matches($0, request: requestFields(context)) } ?? true
        return stored.conditionalFields(matchesVary: matchesVary)
    }

    /// The fields of the present request that a response may vary on.
    func requestFields(_ context: EntryContext) -> [HeaderField] {
        context.rules.requestFields(
            journey.route.target, entry.headers, journey.route.isForeign(to: entry.url))
    }

    private func part(_ context: EntryContext) -> PartialBody? {
        let journey = journey
        guard context.rules.usesStoredCopies, let part = journey.findings.part,
            part.count < context.rules.maximumBodyBytes,
            part.url == journey.route.target.withoutCredentials.text
        else { return nil }
        return part
    }

    /// The stored body, which need not be decoded when it arrives again.
    func known(_ context: EntryContext) -> CodecWork.Known? {
        guard context.rules.usesStoredCopies, let copy = findings.copy, !copy.isEmpty
        else { return nil }
        return CodecWork.Known(source: copy.sourceDigest, images: copy.kept.map { $0?.image })
    }

    // MARK: Without a request

    /// Makes the missing variants of a copy that is fresh, or that a response has confirmed.
    mutating func derive(
        _ confirmation: ResourceValidation?, _ context: EntryContext
    ) -> EntryAction {
        guard let copy = findings.copy else { return fetchAgain(context) }
        if copy.isComplete {
            return commit(copy, copy.keptEnds, confirmation, remark: "", context)
        }
        guard context.phase.decodes, let original = copy.original?.image else {
            return fetchAgain(context)
        }
        state = .processing(Processing(source: .original(confirmation), remark: ""))
        return .process(.original(original, kept: copy.kept.map { $0?.image }))
    }

    /// Takes the seed cache's copy over, unless the cache has a later one, or variants in use that
    /// the seed lacks.
    private mutating func adopt(_ context: EntryContext) -> EntryAction {
        let findings = findings
        guard context.phase.decodes, let seeded = findings.seeded,
            findings.copy?.others.isEmpty ?? true,
            findings.copy.map({ $0.validation.validatedAt <= seeded.validation.validatedAt })
                ?? true,
            // The seed may have changed since its row was judged.
            entry.extras?.sourceDigest.map({ $0 == seeded.source.digest }) ?? true
        else { return fetchAgain(context) }
        var validation = seeded.validation
        if let url = validation.location.finalURL.map(RequestURL.init(normalized:)),
            let objection = context.rules.exclusions.objection(.to(url))
        {
            return exclude(objection, asTarget: url.description, context)
        }
        if case .seeded(let expiresAt) = entry.state { validation.expiresAt = expiresAt }
        state = .processing(
            Processing(source: .seed(validation), remark: "taken from the seed cache"))
        return .process(.seeded(seeded))
    }

    private mutating func endGivenUp(
        _ trouble: Failure, _ context: EntryContext
    ) -> EntryAction {
        if !context.phase.isStopping {
            if journey.route.followsMemory { return restart() }
            if let next = requestAlternative(after: trouble) { return next }
        }
        let failure: Failure
        if case .retry(let former) = journey.turn {
            failure = Failure(former.reason, "\(former.message); not retried: \(trouble.message)")
        } else if history.refusals > 0, let status = history.httpStatus,
            Response.isRefusalForPace(status)
        {
            failure = Failure(
                .httpStatus,
                "\(EntryMachine.message(ofStatus: status)); not retried: \(trouble.message)")
        } else {
            // The last response belongs to a redirect or an earlier attempt.
            history.forgetResponse()
            failure = Failure(trouble.reason, "not requested: \(trouble.message)")
        }
        return finish(failure, hadTurn ? .origin : .hostGivenUp)
    }
}

extension History {
    fileprivate mutating func forgetResponse() {
        switch lastResult {
        case .none: break
        case .response: lastResult = .none
        case .failure(_, let curlCode): lastResult = .failure(status: nil, curlCode: curlCode)
        }
    }
}

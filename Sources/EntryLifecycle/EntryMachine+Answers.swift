import HTTPSemantics
import PrefetchModel

extension EntryMachine {
    // MARK: Whole responses

    /// A whole response has come. `kept` says by position of the variant whether the file of what was
    /// stored is still there.
    package mutating func answered(
        _ answer: Answer, cost: TransferCost, kept: [Bool], in context: EntryContext
    ) -> EntryAction {
        var (history, journey, inquiry) = asked(cost)
        history.note(answer)
        journey.dropLost(kept)
        switch (answer.status, answer.body) {
        case (200, .received(let gap)), (206, .received(let gap)):
            return store(answer, gap: gap, cost, history, journey, inquiry, context)
        case (206, .none) where inquiry.part != nil, (416, _) where inquiry.part != nil:
            return fetchWhole(history, journey, context)
        case (304, _) where !inquiry.conditions.isEmpty:
            return confirm(answer, cost, history, journey, context)
        case (301, _), (302, _), (303, _), (307, _), (308, _):
            return follow(answer, history, journey, context)
        default:
            return fail(
                AttemptFailure(.httpStatus, EntryMachine.message(ofStatus: answer.status)),
                history, journey, context)
        }
    }

    /// A response has come whose body was refused by its beginning.
    ///
    /// It goes the way that the whole body would have gone: what must not be stored is
    /// ``PrefetchModel/FailureReason/uncacheable``, whatever it is.
    package mutating func refused(
        _ answer: Answer, cost: TransferCost, in context: EntryContext
    ) -> EntryAction {
        var (history, journey, _) = asked(cost)
        history.note(answer)
        guard expiry(answer.fields, answer, cost, context) != nil else {
            return endUncacheable(history, journey)
        }
        state = .processing(history, journey, Processing(source: .refusal, remark: ""))
        return context.phase.decodes ? .process(.refusal) : cancel()
    }

    /// The transfer that was asked for has come to its end.
    private func asked(_ cost: TransferCost) -> (History, Journey, Inquiry) {
        guard case .asking(var history, let journey, let inquiry) = state else {
            preconditionFailure("a transfer belongs to an entry that asked for it")
        }
        history.bytesReceived += cost.bytesReceived
        history.stages.transfer = (history.stages.transfer ?? .zero) + cost.elapsed
        return (history, journey, inquiry)
    }

    private mutating func store(
        _ answer: Answer, gap: Int, _ cost: TransferCost, _ history: History, _ journey: Journey,
        _ inquiry: Inquiry, _ context: EntryContext
    ) -> EntryAction {
        var journey = journey
        let fields = answer.storedFields(continuing: inquiry.part)
        guard let expiresAt = expiry(fields, answer, cost, context) else {
            return endUncacheable(history, journey)
        }
        let response = storable(
            StoredResponse(
                fields: fields, varyingOn: requestFields(journey, context),
                receivedAt: answer.receivedAt), context)
        let validation = ResourceValidation(
            location: location(journey), response: response, fetchedAt: answer.receivedAt,
            validatedAt: answer.receivedAt, expiresAt: expiresAt)
        // The workers use it up, or forget it.
        journey.findings.part = nil
        let isContinued = inquiry.part != nil && answer.status == 206
        state = .processing(
            history, journey,
            Processing(
                source: .body(isContinued: isContinued, validation),
                remark: gap > 0 ? "continued from byte \(gap)" : ""))
        // After a fatal error nothing more is stored, after a signal what has arrived is.
        guard context.phase.decodes else { return cancel() }
        let kept = journey.findings.copy?.kept ?? []
        let stored = Set(kept.indices.filter { kept[$0] != nil })
        return .process(.body(known(journey, context), stored: stored, validation))
    }

    /// Takes a 304: the copy is good, and its row gets the new dates and fields.
    private mutating func confirm(
        _ answer: Answer, _ cost: TransferCost, _ history: History, _ journey: Journey,
        _ context: EntryContext
    ) -> EntryAction {
        guard let copy = journey.findings.copy, copy.response.isConfirmed(by: answer.fields) else {
            return fetchAnew(history, journey, context)
        }
        let (updated, fields) = copy.response.updated(
            by: answer.fields, varyingOn: requestFields(journey, context),
            receivedAt: answer.receivedAt)
        guard let expiresAt = expiry(fields, answer, cost, context) else {
            return endUncacheable(history, journey)
        }
        guard context.phase.writes else {
            state = .queued(history, journey)
            return cancel()
        }
        let validation = ResourceValidation(
            location: location(journey), response: storable(updated, context),
            validatedAt: answer.receivedAt, expiresAt: expiresAt)
        return derive(history, journey, .confirmed(validation), context)
    }

    /// Goes on to where a redirect points, under that host's limits.
    private mutating func follow(
        _ answer: Answer, _ history: History, _ journey: Journey, _ context: EntryContext
    ) -> EntryAction {
        var journey = journey
        let target: RequestURL
        let refusal: String?
        switch answer.redirect {
        case .none:
            (target, refusal) = (journey.route.target, "a redirect without a Location")
        case .nowhere(let location, let message):
            target = journey.route.target
            refusal = "a redirect to \(location), which is not followed: \(message)"
        case .to(let url):
            target = url
            refusal = self.refusal(of: url, journey, context)
        }
        if let refusal {
            return fail(AttemptFailure(.redirect, refusal), history, journey, context)
        }
        guard !context.phase.isStopping else {
            state = .queued(history, journey)
            return cancel()
        }
        journey.route.follow(
            to: target, isPermanent: answer.status == 301 || answer.status == 308,
            listed: entry.url, rule: answer.ruleForRedirect)
        state = .queued(history, journey)
        return .queue(.next)
    }

    private func refusal(
        of target: RequestURL, _ journey: Journey, _ context: EntryContext
    ) -> String? {
        guard mayLead(from: journey.route.target, to: target, context) else {
            return "a redirect from https to \(target) is not followed without --allow-downgrade"
        }
        if journey.route.hasVisited(target) { return "a redirect loop, back to \(target)" }
        guard journey.route.visited.count <= context.rules.maximumRedirects else {
            return "more redirects than --max-redirects (\(context.rules.maximumRedirects))"
        }
        return nil
    }

    // MARK: Broken transfers

    /// No whole response has come.
    package mutating func broke(
        _ transfer: BrokenTransfer, cost: TransferCost, in context: EntryContext
    ) -> EntryAction {
        var (history, journey, inquiry) = asked(cost)
        history.answer = .failure(status: transfer.httpStatus, curlCode: transfer.curlCode)
        if transfer.failure.reason.mayLeavePart, let broken = transfer.broken,
            let part = partToKeep(of: broken, cost, journey, inquiry, context)
        {
            // The next attempt comes when it can go on from there.
            state = .savingPart(history, journey, then: .failure(transfer.failure))
            return .keepPart(part, receivedAt: broken.receivedAt)
        }
        return fail(transfer.failure, history, journey, context)
    }

    /// The transfer was cancelled.
    package mutating func transferCancelled(
        leaving broken: BrokenAnswer?, cost: TransferCost, in context: EntryContext
    ) -> EntryAction {
        let (history, journey, inquiry) = asked(cost)
        if let broken, let part = partToKeep(of: broken, cost, journey, inquiry, context) {
            state = .savingPart(history, journey, then: .cancellation)
            return .keepPart(part, receivedAt: broken.receivedAt)
        }
        state = .queued(history, journey)
        return cancel()
    }

    /// What came of a body, if the rest of it can be asked for later.
    private func partToKeep(
        of broken: BrokenAnswer, _ cost: TransferCost, _ journey: Journey, _ inquiry: Inquiry,
        _ context: EntryContext
    ) -> PartialBody? {
        guard context.phase.writes, broken.count > context.rules.smallestPartBytes else {
            return nil
        }
        // What must not be stored is not stored in part.
        let verdict = Freshness.verdict(
            fields: broken.fields, receivedAt: broken.receivedAt, transferTime: cost.elapsed,
            rules: context.rules.freshness(entry.extras))
        guard case .expires = verdict else { return nil }
        let url = journey.route.target.withoutCredentials.text
        if broken.gap > 0 {
            // The answer was about the body that the part is of.
            return inquiry.part.map {
                PartialBody(
                    url: url, count: broken.count, validator: $0.validator, total: $0.total)
            }
        }
        return PartialValidator(fields: broken.fields, receivedAt: broken.receivedAt).map {
            PartialBody(
                url: url, count: broken.count, validator: $0,
                total: broken.fields.first("content-length").flatMap { Int($0) })
        }
    }

    // MARK: Details

    /// The status, and the flags that may mend it.
    private static func message(ofStatus status: Int) -> String {
        let remedy =
            switch status {
            case 401: ": credentials required, see --user, --netrc and --header"
            case 403: ": access is denied; see --user, --netrc, --header and --user-agent"
            case 407: ": the proxy requires credentials, see --proxy"
            case 429: ": too many requests; see --host-concurrency and --host-interval"
            default: ""
            }
        return "HTTP \(status)\(remedy)"
    }

    /// Until when a response may be used; nil when it must not be stored.
    private func expiry(
        _ fields: [HeaderField], _ answer: Answer, _ cost: TransferCost, _ context: EntryContext
    ) -> Timestamp? {
        let verdict = Freshness.verdict(
            fields: fields, receivedAt: answer.receivedAt, transferTime: cost.elapsed,
            rules: context.rules.freshness(entry.extras))
        return switch verdict {
        case .expires(let time): time
        case .uncacheable: nil
        }
    }

    private mutating func endUncacheable(
        _ history: History, _ journey: Journey
    ) -> EntryAction {
        state = .queued(history, journey)
        return finish(
            .failed(
                EntryEnd.Failed(
                    failure: AttemptFailure(
                        .uncacheable,
                        "the origin forbids storing it (Cache-Control: no-store); --ttl overrides that"
                    ), blame: .origin)))
    }

    /// What is stored of a response: what the user calls fresh need not be selected anew for every
    /// request, which `Vary: *` asks for.
    private func storable(_ response: StoredResponse, _ context: EntryContext) -> StoredResponse {
        guard response.vary == Vary.any, context.rules.freshness(entry.extras).forced != nil else {
            return response
        }
        var response = response
        response.vary = nil
        return response
    }

    /// Without user information, as all URLs that are stored.
    private func location(_ journey: Journey) -> ResourceLocation {
        let url = entry.url.withoutCredentials
        let target = journey.route.target.withoutCredentials
        return ResourceLocation(
            url: url.text, finalURL: target == url ? nil : target.text,
            permanentURL: journey.route.permanentTarget?.text,
            redirects: journey.route.redirects, host: url.origin)
    }
}

extension Answer {
    /// The fields as they are stored.
    ///
    /// A 206 may leave out the `Last-Modified` that the request named (RFC 9110 §15.3.7), and its
    /// `Content-Range` says nothing of the whole.
    fileprivate func storedFields(continuing part: PartialBody?) -> [HeaderField] {
        guard status == 206 else { return fields }
        var fields = fields.filter { $0.name.lowercased() != "content-range" }
        if case .lastModified(let date) = part?.validator, fields.first("last-modified") == nil {
            fields.append(HeaderField(name: "Last-Modified", value: date))
        }
        return fields
    }
}

extension Journey {
    /// Forgets images whose files went while the origin was asked.
    fileprivate mutating func dropLost(_ isThere: [Bool]) {
        guard var found = findings.copy else { return }
        for (position, isThere) in isThere.enumerated() where !isThere {
            found.kept[position] = nil
        }
        findings.copy = found
    }
}

extension History {
    fileprivate mutating func note(_ answer: Answer) {
        self.answer = .response(
            status: answer.status, contentType: answer.fields.first("content-type"))
    }
}

extension FailureReason {
    /// Whether the rest of a body may come in another transfer after it broke off for this reason.
    fileprivate var mayLeavePart: Bool {
        switch self {
        case .interrupted, .timeout, .stalled, .tls: true
        case .invalidEntry, .unsupportedScheme, .refusedAddress, .dns, .connect, .redirect,
            .httpStatus, .tooLarge, .notAnImage, .corruptImage, .tooManyPixels, .unsupportedImage,
            .otherFormat, .belowMinimumSize, .overMaximumAspect, .belowMinimumBytes,
            .uncacheable, .disk, .internal:
            false
        }
    }
}

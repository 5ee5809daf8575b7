import HTTPSemantics
package import PrefetchModel

extension EntryMachine {
    // MARK: Whole responses

    /// Takes a whole response. `kept` says for each variant whether its stored file still exists.
    package mutating func responded(
        _ response: Response, body: BodyExtent?, redirectRule: AddressRule, cost: TransferCost,
        kept: [Bool], in context: EntryContext
    ) -> EntryAction {
        let request = asked(cost)
        history.note(response)
        journey.dropLost(kept)
        if body != nil || response.status == 304,
            let directive = context.rules.exclusions.robots.first(in: response.fields)
        {
            return fail(
                Failure(.robots, "the origin says X-Robots-Tag: \(directive)"), context)
        }
        let rules = context.rules.responses(of: journey.route.target)
        if !context.rules.storesImages, rules.accepts(status: response.status) {
            if let refusal = rules.refusal(ofType: response.fields.first("content-type")) {
                return fail(refusal, context)
            }
            return finish(.requested)
        }
        switch (response.status, body) {
        case (_, let body?):
            return store(response, gap: body.gap, cost, request, context)
        case (let status, nil) where request.part != nil && !Response.isRefusalForPace(status):
            // Some origins send an error for every range.
            return fetchWhole(context)
        case (304, _) where !request.conditions.isEmpty:
            return confirm(response, cost, context)
        case _ where response.isRedirect:
            return follow(response, redirectRule, cost, context)
        default:
            return fail(Failure(.httpStatus, EntryMachine.message(of: response)), context)
        }
    }

    /// Takes a response with a body that was refused by its beginning.
    ///
    /// A response that must not be stored ends as ``PrefetchModel/FailureReason/uncacheable``, as
    /// it would with its whole body.
    package mutating func bodyRefused(
        _ response: Response, cost: TransferCost, in context: EntryContext
    ) -> EntryAction {
        asked(cost)
        history.note(response)
        guard expiry(response.fields, response, cost, context) != nil else {
            return endUncacheable(context)
        }
        state = .processing(Processing(source: .refusal, remark: ""))
        return context.phase.decodes ? .process(.refusal) : cancel()
    }

    /// Notes the end of a transfer, and returns its request.
    @discardableResult
    mutating func asked(_ cost: TransferCost) -> EntryRequest {
        guard case .asking(let request) = state else {
            preconditionFailure("a transfer belongs to the entry that started it")
        }
        history.bytesReceived += cost.bytesReceived
        history.stages.transfer = (history.stages.transfer ?? .zero) + cost.elapsed
        history.connection = cost.connection
        return request
    }

    private mutating func store(
        _ response: Response, gap: Int, _ cost: TransferCost, _ request: EntryRequest,
        _ context: EntryContext
    ) -> EntryAction {
        let fields = response.storedFields(continuing: request.part)
        // The image of an error is a substitute, for no longer than the origin or the user says.
        if history.isErrorImage, context.rules.freshness(entry.extras).forced == nil,
            !Freshness.isExplicit(fields)
        {
            return fail(
                Failure(
                    .httpStatus,
                    "HTTP \(response.status) with an image without a lifetime; --ttl gives it one"),
                context)
        }
        guard let expiresAt = expiry(fields, response, cost, context) else {
            return endUncacheable(context)
        }
        let stored = storable(
            StoredResponse(
                fields: fields, varyingOn: requestFields(context),
                receivedAt: response.receivedAt), context)
        let validation = ResourceValidation(
            location: location(at: response.receivedAt), response: stored,
            fetchedAt: response.receivedAt,
            validatedAt: response.receivedAt, expiresAt: expiresAt)
        // The workers use the part, or remove it.
        journey.findings.part = nil
        let isContinued = request.part != nil && response.status == 206
        state = .processing(
            Processing(
                source: .body(isContinued: isContinued, validation),
                remark: gap > 0 ? "continued from byte \(gap)" : ""))
        // After a fatal error nothing more is stored; after a signal, received bodies are.
        guard context.phase.decodes else { return cancel() }
        let copies = findings.copy?.kept.map { $0?.image } ?? []
        return .process(.body(known(context), stored: copies, validation))
    }

    /// Takes a 304: the copy is valid, and its row gets the new dates and fields.
    private mutating func confirm(
        _ response: Response, _ cost: TransferCost, _ context: EntryContext
    ) -> EntryAction {
        guard let stored = findings.copy?.validation.response,
            stored.isConfirmed(by: response.fields)
        else { return fetchAgain(context) }
        let (updated, fields) = stored.updated(
            by: response.fields, varyingOn: requestFields(context),
            receivedAt: response.receivedAt)
        guard let expiresAt = expiry(fields, response, cost, context) else {
            return endUncacheable(context)
        }
        guard context.phase.writes else { return cancel() }
        let validation = ResourceValidation(
            location: location(at: response.receivedAt), response: storable(updated, context),
            validatedAt: response.receivedAt, expiresAt: expiresAt)
        return derive(validation, context)
    }

    private mutating func follow(
        _ response: Response, _ rule: AddressRule, _ cost: TransferCost, _ context: EntryContext
    ) -> EntryAction {
        if let redirect = response.redirect,
            let objection = context.rules.exclusions.objection(redirect)
        {
            return exclude(objection, asTarget: redirect.shown, context)
        }
        let target: RequestURL
        do {
            target = try journey.route.target(of: response, context.rules.redirects)
        } catch {
            return fail(error, context)
        }
        guard !context.phase.isStopping else { return cancel() }
        let until =
            response.status == 301 || response.status == 308
            ? Freshness.expiry(
                ofRedirect: response.fields, receivedAt: response.receivedAt,
                transferTime: cost.elapsed) : nil
        journey.route.follow(to: target, until: until, listed: entry.url, rule: rule)
        state = .queued
        return .queue(.next)
    }

    // MARK: Interrupted transfers

    package mutating func transferFailed(
        _ transfer: TransferFailure, leaving interrupted: InterruptedResponse?,
        cost: TransferCost, in context: EntryContext
    ) -> EntryAction {
        let request = asked(cost)
        history.lastResult = .failure(status: transfer.httpStatus, curlCode: transfer.curlCode)
        if transfer.failure.reason.mayLeavePart, let interrupted,
            let part = partToKeep(of: interrupted, cost, request, context)
        {
            // The next attempt waits until the part is stored, and resumes there.
            state = .savingPart(then: transfer.failure)
            return .keepPart(part, receivedAt: interrupted.head.receivedAt)
        }
        let isUnanswered =
            request.part != nil && transfer.httpStatus == nil && cost.bytesReceived == 0
            && transfer.failure.reason.mayBeDueToRange && !context.phase.isStopping
        guard isUnanswered else { return fail(transfer.failure, context) }
        // One failure may have any cause. The second is due to the range, and so is a single one
        // without retries, for the next run could not get the image either.
        history.unansweredRanges += 1
        let isSecond = history.unansweredRanges > 1
        if isSecond { journey.findings.part = nil }
        let next = fail(transfer.failure, context)
        let isOnly = next.end != nil && history.attempts == 1
        return isSecond || isOnly ? .forgetPart(then: next) : next
    }

    package mutating func transferCancelled(
        leaving interrupted: InterruptedResponse?, cost: TransferCost, in context: EntryContext
    ) -> EntryAction {
        let request = asked(cost)
        guard let interrupted, let part = partToKeep(of: interrupted, cost, request, context) else {
            return cancel()
        }
        state = .savingPart(then: nil)
        return .keepPart(part, receivedAt: interrupted.head.receivedAt)
    }

    /// The received part of a body, if its rest can be requested later.
    private func partToKeep(
        of interrupted: InterruptedResponse, _ cost: TransferCost, _ request: EntryRequest,
        _ context: EntryContext
    ) -> PartialBody? {
        let head = interrupted.head
        let body = interrupted.body
        guard context.phase.writes, body.count > context.rules.smallestPartBytes else {
            return nil
        }
        // A part of an uncacheable response must not be stored either.
        guard expiry(head.fields, head, cost, context) != nil else { return nil }
        let url = journey.route.target.withoutCredentials.text
        if body.gap > 0 {
            // The response resumed this part.
            return request.part.map {
                PartialBody(url: url, count: body.count, validator: $0.validator, total: $0.total)
            }
        }
        return PartialValidator(fields: head.fields, receivedAt: head.receivedAt).map {
            PartialBody(
                url: url, count: body.count, validator: $0,
                total: head.fields.first("content-length").flatMap { Int($0) })
        }
    }

    // MARK: Details

    package static func message(ofStatus status: Int) -> String {
        "HTTP \(status)\(Advice.about(httpStatus: status).map { ": \($0)" } ?? "")"
    }

    /// The status, the reason that the response gives, and an advice.
    package static func message(of response: Response) -> String {
        guard let reason = response.reason else { return message(ofStatus: response.status) }
        let advice =
            reason.lowercased().contains("expired")
            ? Advice.expiredURL : Advice.about(httpStatus: response.status)
        return "HTTP \(response.status) (\(reason))\(advice.map { ": \($0)" } ?? "")"
    }

    private func expiry(
        _ fields: [HeaderField], _ response: Response, _ cost: TransferCost, _ context: EntryContext
    ) -> Timestamp? {
        Freshness.expiry(
            fields: fields, receivedAt: response.receivedAt, transferTime: cost.elapsed,
            rules: context.rules.freshness(entry.extras))
    }

    private mutating func endUncacheable(_ context: EntryContext) -> EntryAction {
        let failure = Failure(
            .uncacheable,
            "the origin forbids storing it (Cache-Control: no-store); --ttl overrides that")
        guard !context.phase.isStopping else { return end(failure) }
        return requestAlternative(after: failure) ?? end(failure)
    }

    /// The stored form of a response. With a forced lifetime, `Vary: *` is dropped: it would
    /// require a new selection for every request.
    private func storable(_ response: StoredResponse, _ context: EntryContext) -> StoredResponse {
        guard response.vary == Vary.any, context.rules.freshness(entry.extras).forced != nil else {
            return response
        }
        var response = response
        response.vary = nil
        return response
    }

    /// Without user information, like all stored URLs.
    private func location(at time: Timestamp) -> ResourceLocation {
        let url = entry.url.withoutCredentials
        let route = journey.route
        let target = route.target.withoutCredentials
        let listed = entry.listedURL.withoutCredentials
        return ResourceLocation(
            url: url.text, listedURL: listed == url ? nil : listed.text,
            finalURL: target == url ? nil : target.text,
            permanent: route.permanent.flatMap { $0.until > time ? $0 : nil },
            redirects: route.redirects, host: url.origin)
    }
}

extension Response {
    /// The fields as they are stored.
    ///
    /// A 206 may leave out the `Last-Modified` that the request named (RFC 9110 §15.3.7), and its
    /// `Content-Range` does not describe the whole body.
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
    /// Removes images without a file: some disappear during the request.
    fileprivate mutating func dropLost(_ isThere: [Bool]) {
        guard var found = findings.copy else { return }
        for (position, isThere) in isThere.enumerated() where !isThere {
            found.kept[position] = nil
        }
        findings.copy = found
    }
}

extension History {
    /// Whether the last response has a status of errors or redirects; its body may be an image all
    /// the same.
    fileprivate var isErrorImage: Bool {
        if case .response(let status, _) = lastResult {
            status != 206 && !Response.wholeStatuses.contains(status)
        } else {
            false
        }
    }

    /// The failure of a body. That of an accepted error is the error itself.
    func failure(_ failure: Failure) -> Failure {
        guard isErrorImage, let status = httpStatus, failure.reason.isAboutBody else {
            return failure
        }
        return Failure(.httpStatus, "\(EntryMachine.message(ofStatus: status)); \(failure.message)")
    }

    mutating func note(_ response: Response) {
        lastResult = .response(
            status: response.status, contentType: response.fields.first("content-type"))
        cacheStatus = CacheStatus(response.fields)
    }
}

extension FailureReason {
    fileprivate var isAboutBody: Bool {
        [.notAnImage, .corruptImage, .tooManyPixels, .unsupportedImage].contains(self)
    }

    /// Whether another transfer may fetch the rest of a body that broke off for this reason.
    fileprivate var mayLeavePart: Bool {
        [.interrupted, .timeout, .stalled, .tls].contains(self)
    }

    /// Whether an origin may fail like this for a range only: some break the connection at each.
    fileprivate var mayBeDueToRange: Bool { [.interrupted, .timeout, .stalled].contains(self) }
}

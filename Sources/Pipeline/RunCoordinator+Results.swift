import CacheStorage
import HTTPSemantics
import PrefetchModel
import Scheduling
import Transfers

/// What the stages' threads report of entries, and what follows.
extension RunCoordinator {
    func transferred(_ completion: TransferCompletion) {
        guard let progress = pending[completion.id]?.progress, let host = progress.host else {
            preconditionFailure("a transfer belongs to a started entry")
        }
        inFlight -= 1
        scheduler.finished(
            host, of: progress.target.origin, signal(of: completion.result), at: .now)
        progress.host = nil
        // That of an earlier attempt says nothing about this one.
        progress.breakage = nil
        progress.bytesReceived += completion.bytesReceived
        counters.bytesReceived += completion.bytesReceived
        progress.stages.transfer = (progress.stages.transfer ?? .zero) + completion.elapsed
        switch completion.result {
        case .cancelled:
            if keepsPart(of: completion, progress) { return }
            finish(completion.id, .cancelled)
        case .failure(let failure):
            progress.httpStatus = failure.httpStatus
            progress.contentType = nil
            progress.curlCode = failure.curlCode.map(Int.init)
            // libcurl's code for what we have ended ourselves says nothing.
            let code = failure.isEndedByUs ? "" : failure.curlCode.map { " (libcurl \($0))" } ?? ""
            let message = failure.message + code
            progress.breakage = (failure.reason, message)
            // The next attempt comes when it can go on from there.
            if keepsPart(of: completion, progress) { return }
            failed(completion.id, failure.reason, message)
        case .refused(let response, let refusal):
            progress.httpStatus = response.status
            progress.contentType = response.fields.first("content-type")
            progress.curlCode = nil
            refuse(refusal, response, completion.elapsed, for: completion.id, progress)
        case .response(let response, let body):
            progress.httpStatus = response.status
            progress.contentType = response.fields.first("content-type")
            progress.curlCode = nil
            received(
                response, body, from: completion.address, transferTime: completion.elapsed,
                for: completion.id, progress)
        }
    }

    private func received(
        _ response: Response, _ body: Body?, from address: AddressClass?,
        transferTime: Duration, for identifier: Int, _ progress: PendingEntry.Progress
    ) {
        switch (response.status, body) {
        case (200, let body?), (206, let body?):
            store(body, response, transferTime, for: identifier, progress)
        case (206, nil) where progress.part != nil, (416, _) where progress.part != nil:
            fetchWhole(identifier, progress)
        case (304, _) where !progress.conditions.isEmpty:
            confirm(response, transferTime, for: identifier, progress)
        case (301, _), (302, _), (303, _), (307, _), (308, _):
            follow(response, from: address, for: identifier, progress)
        default:
            failed(identifier, .httpStatus, RunCoordinator.message(ofStatus: response.status))
        }
    }

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

    /// Until when a response may be used; nil, and the entry has failed, when it must not be
    /// stored.
    func expiry(
        of fields: [HeaderField], _ response: Response, _ transferTime: Duration,
        for identifier: Int
    ) -> Timestamp? {
        let verdict = Freshness.verdict(
            fields: fields, receivedAt: response.receivedAt, transferTime: transferTime,
            rules: configuration.freshness(pending[identifier]?.extras))
        switch verdict {
        case .expires(let time):
            return time
        case .uncacheable:
            finish(
                identifier, .failed, reason: .uncacheable,
                message:
                    "the origin forbids storing it (Cache-Control: no-store); --ttl overrides that")
            return nil
        }
    }

    private func store(
        _ body: Body, _ response: Response, _ transferTime: Duration, for identifier: Int,
        _ progress: PendingEntry.Progress
    ) {
        let fields = storedFields(of: response, progress)
        guard let expiresAt = expiry(of: fields, response, transferTime, for: identifier) else {
            return
        }
        // After a fatal error nothing more is stored, after a signal what has arrived is.
        guard !isCancelling, fatal == nil, let stages, let entry = pending[identifier] else {
            return finish(identifier, .cancelled)
        }
        let stored = storable(
            StoredResponse(
                fields: fields, varyingOn: variedFields(entry, progress),
                receivedAt: response.receivedAt), entry)
        progress.note(
            ResourceChange.Validation(
                location: ResourceLocation(entry, finalURL: progress.target), response: stored,
                fetchedAt: response.receivedAt, validatedAt: response.receivedAt,
                expiresAt: expiresAt))
        progress.dropLostImage(cache.directory)
        progress.message = body.gap > 0 ? "continued from byte \(body.gap)" : nil
        decoding += 1
        stages.codecs.enqueue(
            CodecJob(
                id: identifier,
                input: .body(
                    CodecJob.Download(
                        body: body,
                        origin: ResponseMetadata(
                            entry, finalURL: progress.target, response: stored,
                            receivedAt: response.receivedAt, expiresAt: expiresAt),
                        hasFramedBody: response.hasFramedBody,
                        known: known(progress),
                        part: partKey(of: entry, progress)))))
    }

    /// The bytes that need not be decoded when they come again.
    func known(
        _ progress: PendingEntry.Progress
    ) -> (source: ContentDigest, image: StoredImage)? {
        guard configuration.refresh != .force, let image = progress.kept, let copy = progress.copy
        else { return nil }
        return (copy.sourceDigest, image)
    }

    /// What is stored of a response: what the user calls fresh need not be selected anew for every
    /// request, which `Vary: *` asks for.
    private func storable(_ response: StoredResponse, _ entry: PendingEntry) -> StoredResponse {
        guard response.vary == Vary.any, configuration.freshness(entry.extras).forced != nil else {
            return response
        }
        var response = response
        response.vary = nil
        return response
    }

    /// Takes a 304: the copy is good, and its row gets the new dates and fields.
    private func confirm(
        _ response: Response, _ transferTime: Duration, for identifier: Int,
        _ progress: PendingEntry.Progress
    ) {
        guard let copy = progress.copy, copy.response.isConfirmed(by: response.fields),
            let entry = pending[identifier]
        else { return fetchAnew(identifier) }
        let (updated, fields) = copy.response.updated(
            by: response.fields, varyingOn: variedFields(entry, progress),
            receivedAt: response.receivedAt)
        guard let expiresAt = expiry(of: fields, response, transferTime, for: identifier) else {
            return
        }
        guard fatal == nil, let stages else { return finish(identifier, .cancelled) }
        progress.note(
            ResourceChange.Validation(
                location: ResourceLocation(entry, finalURL: progress.target),
                response: storable(updated, entry), validatedAt: response.receivedAt,
                expiresAt: expiresAt))
        progress.outcome = .revalidated
        progress.dropLostImage(cache.directory)
        if let image = progress.kept {
            take(image, progress)
            writeResource(of: identifier, progress, stages)
        } else if isCancelling || !derive(identifier, progress, stages) {
            // The file went while we asked.
            fetchAnew(identifier)
        }
    }

    /// Sends an entry on to where a redirect points, under that host's limits.
    private func follow(
        _ response: Response, from address: AddressClass?, for identifier: Int,
        _ progress: PendingEntry.Progress
    ) {
        func refuse(_ message: String) {
            failed(identifier, .redirect, message)
        }
        let target: RequestURL
        switch response.redirect {
        case .to(let url):
            target = url
        case .nowhere(let location, let message):
            return refuse("a redirect to \(location), which is not followed: \(message)")
        case nil:
            return refuse("a redirect without a Location")
        }
        guard mayLead(from: progress.target, to: target) else {
            return refuse(
                "a redirect from https to \(target) is not followed without --allow-downgrade")
        }
        guard !progress.hasVisited(target) else {
            return refuse("a redirect loop, back to \(target)")
        }
        guard progress.visited.count <= configuration.maximumRedirects else {
            return refuse(
                "more redirects than --max-redirects (\(configuration.maximumRedirects))")
        }
        guard !isStopping, let entry = pending[identifier] else {
            return finish(identifier, .cancelled)
        }
        // Not what an unprotected answer says, for a run that asks for protection.
        let isDowngraded = entry.url.isEncrypted && !target.isEncrypted
        progress.target = target
        progress.redirects += 1
        progress.isPermanentSoFar =
            progress.isPermanentSoFar && !isDowngraded
            && (response.status == 301 || response.status == 308)
        if progress.isPermanentSoFar { progress.permanentURL = target }
        // Once the public has sent us somewhere, nothing on the way is the user's choice.
        if progress.addressRule != .redirectedFromPublic {
            progress.addressRule = transferSettings.addressRule(afterRedirectFrom: address)
        }
        queue(identifier, entry, standing: .next, at: .now)
    }

    /// Whether a redirect gives up no encryption that the user wants to be kept.
    func mayLead(from url: RequestURL, to target: RequestURL) -> Bool {
        configuration.allowsDowngrade || target.isEncrypted || !url.isEncrypted
    }

    func processed(_ completion: CodecCompletion) {
        decoding -= 1
        guard let progress = pending[completion.id]?.progress else {
            preconditionFailure("a decoded image belongs to a started entry")
        }
        progress.stages.decode = completion.decode
        progress.stages.encode = completion.encode
        if let remark = completion.remark {
            progress.message = progress.message.map { "\($0); \(remark)" } ?? remark
        }
        guard let stages else { preconditionFailure("a worker belongs to the stages") }
        switch completion.result {
        case .stored(let row):
            progress.stored = row.image
            progress.bytesStored = row.image.size.bytes
            write(.image(row), for: completion.id, progress, stages)
        case .derived(let image):
            progress.stored = image
            progress.bytesStored = image.size.bytes
            writeResource(of: completion.id, progress, stages)
        case .unchanged:
            if let image = progress.kept { take(image, progress) }
            progress.message = "the same bytes as before"
            writeResource(of: completion.id, progress, stages)
        case .originalDamaged:
            fetchWithoutOriginal(completion.id)
        case .partDamaged:
            fetchWhole(completion.id, progress)
        case .kept:
            progress.ignoresParts = false
            if let breakage = progress.breakage {
                failed(completion.id, breakage.reason, breakage.message)
            } else {
                finish(completion.id, .cancelled)
            }
        case .cancelled:
            finish(completion.id, .cancelled)
        case .failed(.corruptImage, _) where progress.isContinued,
            .failed(.notAnImage, _) where progress.isContinued,
            .failed(.interrupted, _) where progress.isContinued:
            // The two parts may not belong together, whatever the origin says.
            fetchWhole(completion.id, progress)
        case .failed(let reason, let message):
            failed(completion.id, reason, message)
        case .underivable(let reason, let message):
            progress.hasFailedToDerive = true
            finish(completion.id, .failed, reason: reason, message: message)
        case .fatal(let error):
            finish(completion.id, .failed, reason: error.reason, message: error.message)
            fail(error)
        }
    }

    /// Writes what is new of a resource whose body stays.
    func writeResource(
        of identifier: Int, _ progress: PendingEntry.Progress, _ stages: RunningStages
    ) {
        guard let entry = pending[identifier], let copy = progress.copy else {
            preconditionFailure("a resource that is stored has its copy")
        }
        var change = ResourceChange(
            resourceID: copy.resourceID, key: entry.key, recipe: configuration.recipe,
            validation: progress.validation, attributes: entry.extras?.attributes ?? [])
        if let image = progress.stored, copy[configuration.recipe] != image {
            change.variant = ResourceChange.Variant(image: image, createdAt: wallClock())
        }
        write(.resource(change), for: identifier, progress, stages)
    }

    /// Hands a change to the writer; the outcome follows with the commit: "done" means durable.
    func write(
        _ change: MetadataChange, for identifier: Int, _ progress: PendingEntry.Progress,
        _ stages: RunningStages
    ) {
        if let writerError {
            finish(
                identifier, .failed, reason: writerError.reason, message: writerError.message)
            return
        }
        progress.isWriting = true
        stages.writer.enqueue(change, token: identifier)
    }

    func committed(_ identifiers: [Int]) {
        for identifier in identifiers {
            guard let entry = pending[identifier], let progress = entry.progress else {
                preconditionFailure("a committed entry is pending")
            }
            counters.bytesStored += progress.bytesStored
            if progress.bytesStored > 0 { counters.variantsMade += 1 }
            if case .annotate = entry.plan { annotating -= 1 }
            if progress.start != nil {
                outageRule.succeeded(host: entry.url.origin)
            }
            finish(identifier, progress.outcome)
        }
    }

    func transfersFailed(_ error: FatalError) {
        fail(error)
        for identifier in pending.identifiers(where: { $0.progress?.host != nil }) {
            inFlight -= 1
            finish(identifier, .cancelled)
        }
    }

    func writerFailed(_ error: FatalError) {
        writerError = error
        fail(error)
        for identifier in pending.identifiers(where: { $0.progress?.isWriting == true }) {
            finish(identifier, .failed, reason: error.reason, message: error.message)
        }
    }
}

extension PendingEntry.Progress {
    /// Forgets the image whose file went while the origin was asked.
    fileprivate func dropLostImage(_ directory: CacheDirectory) {
        if let image = kept, !directory.hasWholeFile(image) { kept = nil }
    }

    /// Takes what a response said of the copy.
    fileprivate func note(_ validation: ResourceChange.Validation) {
        self.validation = validation
        expiresAt = validation.expiresAt == Freshness.alwaysStale ? nil : validation.expiresAt
    }
}

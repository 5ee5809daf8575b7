import CacheStorage
import HTTPSemantics
import PrefetchModel
import Scheduling
import Transfers

/// The threads behind a run that has something to fetch.
struct RunningStages {
    let transfers: TransferLoop
    let codecs: CodecStage
    let writer: MetadataWriter
    let transferThread: OwnedThread
    let codecThreads: [OwnedThread]
    let writerThread: OwnedThread
}

extension RunCoordinator {
    /// The stages, started when first asked for: a run over a warm list never needs them, and
    /// setting up libcurl and its TLS library costs more than such a run.
    ///
    /// - Returns: nil when they cannot be started, which ends the run.
    func runningStages() -> RunningStages? {
        if let stages { return stages }
        var settings = TransferConfiguration(userAgent: configuration.userAgent)
        settings.connectTimeout = configuration.connectTimeout
        settings.stallTimeout = configuration.stallTimeout
        settings.totalTimeout = configuration.totalTimeout
        settings.maximumBodySize = configuration.maximumBodySize
        settings.bodyBudget = configuration.bodyBudget
        settings.maximumIdleConnections = max(64, 2 * configuration.jobs)
        let transfers: TransferLoop
        do {
            transfers = try TransferLoop(configuration: settings, wallClock: wallClock)
        } catch {
            fail(FatalError(message: error.description, hint: nil, reason: .internal))
            return nil
        }
        var writing = MetadataWriter.Configuration()
        writing.durability = configuration.durability
        let writer = MetadataWriter(
            database: cache.database, content: cache.content, configuration: writing)
        let codecs = CodecStage(
            configuration: configuration, content: cache.content, mailbox: mailbox)
        let started = RunningStages(
            transfers: transfers, codecs: codecs, writer: writer,
            transferThread: OwnedThread(name: "transfers") { [mailbox] in
                do throws(TransferLoopError) {
                    try transfers.run { mailbox.put(.transferred($0)) }
                } catch {
                    mailbox.put(
                        .transfersFailed(
                            FatalError(message: error.description, hint: nil, reason: .internal)))
                }
            },
            codecThreads: (0..<configuration.codecWorkers).map { number in
                OwnedThread(name: "codec \(number)") { codecs.work() }
            },
            writerThread: OwnedThread(name: "writer") { [mailbox] in
                do throws(StorageError) {
                    try writer.run { mailbox.put(.committed($0)) }
                } catch {
                    mailbox.put(.writerFailed(FatalError(error)))
                }
            })
        stages = started
        return started
    }

    /// Ends the threads; every entry has its outcome by now.
    func finishStages() {
        guard let stages else { return }
        stages.transfers.stop()
        stages.codecs.finish()
        stages.writer.finish()
        stages.transferThread.join()
        for thread in stages.codecThreads { thread.join() }
        stages.writerThread.join()
    }

    // MARK: What the stages report

    func transferred(_ completion: TransferCompletion) {
        guard let progress = pending[completion.id]?.progress, let host = progress.host else {
            preconditionFailure("a transfer belongs to a started entry")
        }
        inFlight -= 1
        scheduler.finished(host)
        progress.host = nil
        progress.bytesReceived += completion.bytesReceived
        counters.bytesReceived += completion.bytesReceived
        progress.stages.transfer = (progress.stages.transfer ?? .zero) + completion.elapsed
        switch completion.result {
        case .cancelled:
            finish(completion.id, .cancelled)
        case .failure(let failure):
            progress.httpStatus = failure.httpStatus
            let code = failure.curlCode.map { " (libcurl \($0))" } ?? ""
            finish(
                completion.id, .failed, reason: failure.reason, message: failure.message + code)
        case .response(let response, let body):
            progress.httpStatus = response.status
            received(response, body, for: completion.id, progress)
        }
    }

    private func received(
        _ response: Response, _ body: Body?, for identifier: Int, _ progress: PendingEntry.Progress
    ) {
        switch (response.status, body) {
        case (200, let body?):
            store(body, response, for: identifier, progress)
        case (301, _), (302, _), (303, _), (307, _), (308, _):
            follow(response.redirectURL, for: identifier, progress)
        default:
            finish(
                identifier, .failed, reason: .httpStatus, message: "HTTP \(response.status)")
        }
    }

    private func store(
        _ body: Body, _ response: Response, for identifier: Int, _ progress: PendingEntry.Progress
    ) {
        let verdict = Freshness.verdict(
            fields: response.fields, requestedAt: response.requestedAt,
            receivedAt: response.receivedAt,
            rules: Freshness.Rules(defaultLifetime: configuration.defaultLifetime))
        guard case .expires(let expiresAt) = verdict else {
            finish(
                identifier, .failed, reason: .uncacheable,
                message: "the origin forbids storing it (Cache-Control: no-store)")
            return
        }
        // After a fatal error nothing more is stored, after a signal what has arrived is.
        guard !isCancelling, fatal == nil, let stages, let entry = pending[identifier] else {
            finish(identifier, .cancelled)
            return
        }
        progress.expiresAt = expiresAt
        decoding += 1
        stages.codecs.enqueue(
            CodecJob(
                id: identifier, body: body,
                origin: ResponseMetadata(
                    key: entry.key, url: entry.url, finalURL: progress.target, response: response,
                    expiresAt: expiresAt),
                hasFramedBody: response.hasFramedBody))
    }

    /// Sends an entry on to where a redirect points, under that host's limits.
    private func follow(
        _ location: String?, for identifier: Int, _ progress: PendingEntry.Progress
    ) {
        func refuse(_ message: String) {
            finish(identifier, .failed, reason: .redirect, message: message)
        }
        guard let location else { return refuse("a redirect without a usable Location") }
        let target = RequestTarget.withoutFragment(location)
        let shown = RedactedURL(target)
        let scheme = RequestTarget.scheme(of: target)
        guard scheme == "http" || scheme == "https" else {
            return refuse("a redirect to the scheme of \(shown), which is not followed")
        }
        guard scheme == "https" || RequestTarget.scheme(of: progress.target) == "http" else {
            return refuse("a redirect from https to \(shown), which is not followed")
        }
        guard !progress.visited.contains(target) else {
            return refuse("a redirect loop, back to \(shown)")
        }
        guard progress.visited.count <= configuration.maximumRedirects else {
            return refuse("more than \(configuration.maximumRedirects) redirects")
        }
        guard !isStopping, let entry = pending[identifier] else {
            return finish(identifier, .cancelled)
        }
        progress.target = target
        scheduler.push(
            identifier, priority: entry.priority, host: RequestTarget.origin(of: target),
            standing: .next)
    }

    func processed(_ completion: CodecCompletion) {
        decoding -= 1
        guard let progress = pending[completion.id]?.progress else {
            preconditionFailure("a decoded image belongs to a started entry")
        }
        progress.stages.decode = completion.decode
        progress.stages.encode = completion.encode
        switch completion.result {
        case .stored(let row):
            if let writerError {
                finish(
                    completion.id, .failed, reason: writerError.reason,
                    message: writerError.message)
                return
            }
            // The outcome follows with the commit: "done" means durable.
            progress.stored = row.image
            stages?.writer.enqueue(row, token: completion.id)
        case .failed(let reason, let message):
            finish(completion.id, .failed, reason: reason, message: message)
        case .fatal(let error):
            finish(completion.id, .failed, reason: error.reason, message: error.message)
            fail(error)
        }
    }

    func committed(_ identifiers: [Int]) {
        for identifier in identifiers {
            counters.bytesStored += pending[identifier]?.progress?.stored?.size.bytes ?? 0
            finish(identifier, .downloaded)
        }
    }

    func transfersFailed(_ error: FatalError) {
        fail(error)
        for (identifier, entry) in pending where entry.progress?.host != nil {
            inFlight -= 1
            finish(identifier, .cancelled)
        }
    }

    func writerFailed(_ error: FatalError) {
        writerError = error
        fail(error)
        for (identifier, entry) in pending where entry.progress?.stored != nil {
            finish(identifier, .failed, reason: error.reason, message: error.message)
        }
    }
}

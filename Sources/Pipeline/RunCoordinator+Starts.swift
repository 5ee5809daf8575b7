import CacheStorage
import HTTPSemantics
import PrefetchModel
import Scheduling
import Transfers

extension RunCoordinator {
    /// Bodies that may wait for a codec worker before transfers stop being started.
    private static let decodingCapacity = 64

    /// Starts what may start now.
    func startWork() {
        startDerivations()
        startTransfers()
    }

    // MARK: Transfers

    private func startTransfers() {
        guard scheduler.hasReady, inFlight < configuration.jobs,
            decoding < RunCoordinator.decodingCapacity, runningStages() != nil,
            let transfers = runningTransfers()
        else { return }
        var started: [Int] = []
        while inFlight < configuration.jobs, decoding < RunCoordinator.decodingCapacity,
            let start = scheduler.popReady()
        {
            let progress = progress(of: start.entry)
            progress.host = start.host
            progress.visited.append(progress.target)
            started.append(start.entry)
            inFlight += 1
            counters.requests += 1
        }
        do throws(StorageError) {
            try findCopies(of: started)
        } catch {
            // Asked without conditions; the run ends anyway.
            fail(FatalError(error))
        }
        transfers.loop.start(
            started.compactMap { identifier in
                guard let progress = pending[identifier]?.progress else { return nil }
                return TransferRequest(
                    id: identifier, url: progress.target, fields: progress.conditions)
            })
    }

    /// The progress of an entry that starts, which begins with its first start.
    private func progress(of identifier: Int) -> PendingEntry.Progress {
        guard let entry = pending[identifier] else {
            preconditionFailure("a queued entry is pending")
        }
        if let progress = entry.progress, progress.start != nil { return progress }
        starts += 1
        let progress = PendingEntry.Progress(
            start: starts, target: entry.url, queued: .now - entry.queuedAt)
        pending[identifier]?.progress = progress
        return progress
    }

    /// Looks up what is stored of entries that are to be asked for again, and makes their requests
    /// conditional where a 304 would be of use.
    ///
    /// This comes with the start, so that what waits in the queue stays small.
    private func findCopies(of identifiers: [Int]) throws(StorageError) {
        let known = identifiers.compactMap { identifier -> (PendingEntry.Progress, Int64)? in
            guard let entry = pending[identifier], let progress = entry.progress,
                case .refresh(let resource) = entry.plan
            else { return nil }
            return (progress, resource)
        }
        let unknown = known.filter { $0.0.copy == nil }
        if !unknown.isEmpty {
            let copies = try coordinatorReader().copies(of: unknown.map(\.1))
            for ((progress, _), copy) in zip(unknown, copies) {
                progress.copy = copy
                progress.kept = copy?[configuration.recipe].flatMap {
                    cache.directory.hasWholeFile($0) ? $0 : nil
                }
            }
        }
        for (progress, _) in known { progress.conditions = conditions(progress) }
    }

    /// The fields that make a request conditional; none where a 304 would be of no use.
    private func conditions(_ progress: PendingEntry.Progress) -> [HeaderField] {
        // What is stored came from one URL. The validators of that one say nothing of another: not
        // of the hops on the way, nor of what an entry's `key` now stands for.
        guard let copy = progress.copy,
            RequestTarget.withoutUserInformation(progress.target) == copy.responseURL
        else { return [] }
        let original = copy[Recipe(encoding: .original)]
        guard progress.kept != nil || original.map(cache.directory.hasWholeFile) ?? false else {
            return []
        }
        let matchesVary =
            copy.response.vary.map { Vary.matches($0, request: requestFields) } ?? true
        return copy.response.conditionalFields(matchesVary: matchesVary)
    }

    // MARK: Derivations

    /// Hands stored originals to the codec workers.
    private func startDerivations() {
        while decoding < RunCoordinator.decodingCapacity, derivations.hasReady,
            let stages = runningStages(), let start = derivations.popReady()
        {
            derivations.finished(start.host)
            guard let entry = pending[start.entry], case .derive(let resource) = entry.plan else {
                preconditionFailure("a derivation has its plan")
            }
            let progress = PendingEntry.Progress(
                start: nil, target: entry.url, queued: .now - entry.queuedAt)
            progress.outcome = .derived
            pending[start.entry]?.progress = progress
            do throws(StorageError) {
                progress.copy = try coordinatorReader().copies(of: [resource])[0]
            } catch {
                fail(FatalError(error))
                return finish(start.entry, .cancelled)
            }
            if !derive(start.entry, progress, stages) { fetchWithoutOriginal(start.entry) }
        }
    }

    /// Has an entry's variant made from the stored original.
    ///
    /// - Returns: false when no original is stored.
    func derive(
        _ identifier: Int, _ progress: PendingEntry.Progress, _ stages: RunningStages
    ) -> Bool {
        guard let copy = progress.copy, let original = copy[Recipe(encoding: .original)] else {
            return false
        }
        if progress.validation == nil { progress.expiresAt = copy.expiresAt }
        decoding += 1
        stages.codecs.enqueue(
            CodecJob(
                id: identifier, input: .original(original, originURL: progress.target)))
        return true
    }

    /// Asks for an entry whose stored original is gone or damaged, and forgets that original.
    func fetchWithoutOriginal(_ identifier: Int) {
        if let original = pending[identifier]?.progress?.copy?[Recipe(encoding: .original)],
            let stages
        {
            cache.content.distrust(original)
            stages.writer.enqueue(.lost(original), token: nil)
        }
        fetchAnew(identifier)
    }

    /// Asks for an entry without conditions: what is stored of it turned out to be of no use.
    func fetchAnew(_ identifier: Int) {
        guard !isStopping, let entry = pending[identifier] else {
            return finish(identifier, .cancelled)
        }
        guard !configuration.isOffline else {
            return finish(
                identifier, .excluded, message: "its original is damaged (--offline)")
        }
        // With another plan no conditions are made any more.
        pending[identifier]?.plan = .fetch
        let progress = entry.progress
        progress?.conditions = []
        progress?.validation = nil
        progress?.visited = []
        progress?.target = entry.url
        progress?.outcome = .downloaded
        scheduler.push(
            identifier, priority: entry.priority, host: RequestTarget.origin(of: entry.url),
            standing: .next)
    }

    // MARK: Attributes

    /// Gives a fresh entry's resource the attributes that its line asks for.
    func annotate(
        _ identifier: Int, resource: Int64, _ state: EntryState, image: StoredImage?
    ) {
        guard let stages = runningStages(), let entry = pending[identifier],
            case .fresh(_, let expiresAt, _) = state
        else { return finish(identifier, .cancelled) }
        let progress = PendingEntry.Progress(start: nil, target: entry.url, queued: .zero)
        progress.stages = StageDurations()
        progress.outcome = .fresh
        progress.expiresAt = expiresAt
        progress.stored = image
        pending[identifier]?.progress = progress
        annotating += 1
        write(
            .resource(
                ResourceChange(
                    resourceID: resource, key: entry.key,
                    attributes: entry.extras?.attributes ?? [])),
            for: identifier, progress, stages)
    }

    /// This thread's reader of the cache.
    private func coordinatorReader() throws(StorageError) -> CacheReader {
        if let reader { return reader }
        let opened = try CacheReader(cache, matchesVary: configuration.matchesVary)
        reader = opened
        return opened
    }
}

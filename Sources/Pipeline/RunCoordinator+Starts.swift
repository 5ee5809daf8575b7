import CacheStorage
import HTTPSemantics
import PrefetchModel
import Scheduling
import Transfers
import URLParsing

extension RunCoordinator {
    /// Bodies that may wait for a codec worker before transfers stop being started.
    private static let decodingCapacity = 64
    /// What may wait for its commit before nothing more is started: rows wait for as long as the disk
    /// takes to synchronise their files. That is three seconds of the fastest runs.
    private static let commitCapacity = ByteCount.mebibytes(32)

    /// Starts what may start now.
    func startWork() {
        startDerivations()
        startTransfers()
        endGivenUp()
    }

    /// Whether one more transfer may run, as far as the run's own limits go.
    var hasRoomForTransfer: Bool {
        inFlight < configuration.jobs && hasRoomForImage
    }

    /// Whether one more image may be decoded and wait for its commit.
    private var hasRoomForImage: Bool {
        decoding < RunCoordinator.decodingCapacity && hasRoomForCommit
    }

    /// Whether one more change may wait for the writer.
    var hasRoomForCommit: Bool {
        stages.map { $0.writer.backlog < RunCoordinator.commitCapacity } ?? true
    }

    // MARK: Transfers

    private func startTransfers() {
        let now = ContinuousClock.now
        guard hasRoomForTransfer, scheduler.hasReady(at: now), runningStages() != nil,
            let transfers = runningTransfers()
        else { return }
        var started: [Int] = []
        do {
            while hasRoomForTransfer, let start = try scheduler.popReady(at: now) {
                if isPlaceOfRaised(start.entry, isFresh: start.isFresh) {
                    scheduler.withdrew(start.host, at: now)
                    continue
                }
                begin(start, at: now)
                started.append(start.entry)
            }
        } catch {
            fail(FatalError(spilling: error))
        }
        do throws(StorageError) {
            try findCopies(of: started)
        } catch {
            // Asked without conditions; the run ends anyway.
            fail(FatalError(error))
        }
        transfers.loop.start(started.compactMap { request(of: $0, at: now) })
    }

    /// Whether what comes up is the place that a duplicate of higher priority has raised an entry from,
    /// which has had its turn since.
    func isPlaceOfRaised(_ identifier: Int, isFresh: Bool) -> Bool {
        guard isFresh, pending.isRaised(identifier) else { return false }
        if let entry = pending[identifier], entry.progress?.start == nil { return false }
        return pending.dropPlace(of: identifier)
    }

    private func begin(_ start: Scheduler.Start, at now: ContinuousClock.Instant) {
        let progress = progress(of: start.entry, at: now)
        progress.host = start.host
        progress.isAlone = start.isAlone
        inFlight += 1
        guard progress.beginsAttempt else { return }
        progress.beginsAttempt = false
        progress.attempts += 1
        progress.failure = nil
    }

    /// The request of an entry that has begun; nil when it has to go to another host first.
    private func request(of identifier: Int, at now: ContinuousClock.Instant) -> TransferRequest? {
        guard let entry = pending[identifier], let progress = entry.progress else { return nil }
        if followMemory(identifier, entry, progress, at: now) { return nil }
        progress.visit(progress.target)
        progress.part = part(of: entry, progress)
        counters.requests += 1
        let isForeign = isForeign(progress, of: entry)
        return TransferRequest(
            id: identifier,
            // A redirect inside an origin keeps what the list gave for it, as with curl.
            url: isForeign
                ? progress.target : progress.target.withCredentials(of: entry.url),
            fields: progress.conditions + (progress.part?.rangeFields ?? []),
            userFields: entry.extras?.headers ?? [],
            isForeign: isForeign, addressRule: progress.addressRule,
            continuation: progress.part?.continuation, judge: bodyJudge(for: progress),
            isLastOfHost: progress.isAlone)
    }

    /// Whether a redirect has led to another origin, for which nothing that the user gave is meant.
    private func isForeign(_ progress: PendingEntry.Progress, of entry: PendingEntry) -> Bool {
        progress.target != entry.url && progress.target.origin != entry.url.origin
    }

    /// The fields of an entry's present request that a response may vary on.
    func variedFields(_ entry: PendingEntry, _ progress: PendingEntry.Progress) -> [HeaderField] {
        let headers = entry.extras?.headers ?? []
        let isForeign = isForeign(progress, of: entry)
        guard isForeign || !headers.isEmpty else { return requestFields }
        return transferSettings.requestFields(userFields: headers, isForeign: isForeign)
    }

    /// Sends an entry straight to where an earlier run was redirected for good.
    ///
    /// - Returns: whether it now waits for the host of that place.
    private func followMemory(
        _ identifier: Int, _ entry: PendingEntry, _ progress: PendingEntry.Progress,
        at now: ContinuousClock.Instant
    ) -> Bool {
        guard progress.visited.isEmpty, !progress.ignoresMemory, !progress.followsMemory,
            !configuration.refresh.asksForFresh, configuration.maximumRedirects > 0,
            progress.copy?.url == entry.url.withoutCredentials.text,
            let target = progress.copy.flatMap(rememberedTarget),
            target != progress.target.withoutCredentials, mayLead(from: entry.url, to: target),
            !isStopping
        else { return false }
        progress.target = target
        progress.permanentURL = target
        progress.followsMemory = true
        progress.conditions = conditions(entry, progress)
        guard target.origin != entry.url.origin, let host = progress.host
        else { return false }
        // Who has sent us there is not asked this time, and may have been anybody.
        progress.addressRule = .redirectedFromPublic
        scheduler.withdrew(host, at: now)
        progress.host = nil
        inFlight -= 1
        queue(identifier, entry, standing: .next, at: now)
        return true
    }

    /// Where permanent redirects led an earlier run, as this one would ask for it; a row may hold the target
    /// as its origin spelled it.
    private func rememberedTarget(_ copy: CachedCopy) -> RequestURL? {
        guard let text = copy.permanentURL else { return nil }
        do throws(EntryBatch.Problem) {
            return try URLParser().parse(text.utf8).withoutCredentials
        } catch {
            return nil
        }
    }

    /// The progress of an entry that starts, which begins with its first start.
    private func progress(
        of identifier: Int, at now: ContinuousClock.Instant
    ) -> PendingEntry.Progress {
        guard let entry = pending[identifier] else {
            preconditionFailure("a queued entry is pending")
        }
        if let progress = entry.progress, progress.start != nil { return progress }
        starts += 1
        let progress = PendingEntry.Progress(
            start: starts, target: entry.url, queued: now - entry.queuedAt)
        pending[identifier]?.progress = progress
        return progress
    }

    /// Looks up what is stored of entries that are to be asked for again, and makes their requests
    /// conditional where a 304 would be of use.
    ///
    /// This comes with the start, so that what waits in the queue stays small.
    func findCopies(of identifiers: [Int]) throws(StorageError) {
        let known = identifiers.compactMap {
            identifier -> (PendingEntry, PendingEntry.Progress, Int64)? in
            guard let entry = pending[identifier], let progress = entry.progress,
                case .refresh(let resource) = entry.plan
            else { return nil }
            return (entry, progress, resource)
        }
        let unknown = known.filter { $0.1.copy == nil }
        if !unknown.isEmpty {
            let copies = try coordinatorReader().copies(of: unknown.map(\.2))
            for ((_, progress, _), copy) in zip(unknown, copies) {
                progress.copy = copy
                progress.kept = copy.flatMap(keptImage)
            }
        }
        for (entry, progress, _) in known { progress.conditions = conditions(entry, progress) }
    }

    /// The image of a copy that this run's recipe would make again, if its file is there.
    private func keptImage(of copy: CachedCopy) -> StoredImage? {
        guard let image = copy.image(asBy: configuration.recipe),
            cache.directory.hasWholeFile(image)
        else { return nil }
        return image
    }

    /// Takes a stored image as the entry's.
    func take(_ image: StoredImage, _ progress: PendingEntry.Progress) {
        progress.stored = image
        // A new row names it, by this run's recipe.
        if progress.copy?[configuration.recipe] != image { cache.content.pin(image.digest) }
    }

    /// The fields that make a request conditional; none where a 304 would be of no use.
    private func conditions(
        _ entry: PendingEntry, _ progress: PendingEntry.Progress
    ) -> [HeaderField] {
        // What is stored came from one URL. The validators of that one say nothing of another: not
        // of the hops on the way, nor of what an entry's `key` now stands for.
        guard configuration.refresh != .force, let copy = progress.copy,
            progress.target.withoutCredentials.text == copy.responseURL
        else { return [] }
        let original = copy[Recipe(encoding: .original)]
        guard progress.kept != nil || original.map(cache.directory.hasWholeFile) ?? false else {
            return []
        }
        let matchesVary =
            copy.response.vary.map { text in
                Vary.matches(text, request: variedFields(entry, progress))
            } ?? true
        return copy.response.conditionalFields(matchesVary: matchesVary)
    }

    // MARK: Derivations

    /// Hands stored originals to the codec workers.
    private func startDerivations() {
        let now = ContinuousClock.now
        while hasRoomForImage, derivations.hasReady(at: now),
            let stages = runningStages(), let start = nextDerivation(at: now)
        {
            derivations.finished(start.host, of: "", .answered, at: now)
            guard let entry = pending[start.entry], case .derive(let resource) = entry.plan else {
                preconditionFailure("a derivation has its plan")
            }
            let progress = PendingEntry.Progress(
                start: nil, target: entry.url, queued: now - entry.queuedAt)
            progress.outcome = .derived
            pending[start.entry]?.progress = progress
            do throws(StorageError) {
                progress.copy = try coordinatorReader().copies(of: [resource])[0]
            } catch {
                fail(FatalError(error))
                return finish(start.entry, .cancelled)
            }
            if let image = progress.copy.flatMap(keptImage) {
                progress.expiresAt = progress.copy?.expiresAt
                take(image, progress)
                writeResource(of: start.entry, progress, stages)
            } else if !derive(start.entry, progress, stages) {
                fetchWithoutOriginal(start.entry)
            }
        }
    }

    private func nextDerivation(at now: ContinuousClock.Instant) -> Scheduler.Start? {
        do {
            return try derivations.popReady(at: now)
        } catch {
            fail(FatalError(spilling: error))
            return nil
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
                id: identifier,
                input: .original(
                    original, originURL: progress.target.withoutCredentials.text)))
        return true
    }

    /// Asks for an entry whose stored original is gone or damaged, and forgets that original.
    func fetchWithoutOriginal(_ identifier: Int) {
        if let original = pending[identifier]?.progress?.copy?[Recipe(encoding: .original)],
            let stages
        {
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
        progress?.restart(at: entry.url)
        progress?.ignoresMemory = true
        progress?.outcome = .downloaded
        queue(identifier, entry, standing: .next, at: .now)
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
                    resourceID: resource, key: entry.key, recipe: configuration.recipe,
                    attributes: entry.extras?.attributes ?? [])),
            for: identifier, progress, stages)
    }

    /// This thread's reader of the cache.
    func coordinatorReader() throws(StorageError) -> CacheReader {
        if let reader { return reader }
        let opened = try CacheReader(cache, matchesVary: configuration.matchesVary())
        reader = opened
        return opened
    }
}

import CacheStorage
import Codecs
import EntryLifecycle
import Hashing
import PrefetchModel
import Scheduling
import Transfers

/// Looks batches up in the cache. For one thread.
struct LookUpWorker {
    let reader: CacheReader
    /// Whether there was any failure when the run began; failures of this run are found by their
    /// keys.
    let hasFailures: Bool
    let index: FreshnessIndex
    /// The resources with images that a new decoder decodes; nil for none.
    let undecoded: ResourceSet?
    /// By position of the run's variants; empty when no images are wanted.
    let images: [ImageIndex]
    let lineWriter: (any WarmLineWriting)?
    let rules: RunRules
    let wallClock: @Sendable () -> Timestamp

    private var configuration: RunConfiguration { rules.configuration }
    private var usual: VariantSet { configuration.images.variants }

    func lookUp(_ batch: EntryBatch) throws(StorageError) -> LookedUpBatch {
        let hasher = SHA256Hasher()
        let asked = AskedVariants(usual, of: batch, hasher: hasher)
        let now = wallClock()
        var result = LookedUpBatch(batch: batch)
        result.findings = try findStates(of: batch, asked, by: hasher, at: now)
        try findMissingAttributes(in: &result)
        try findSources(asked, in: &result, at: now)
        try findOtherSources(in: &result)
        try compareURLs(in: &result)
        try findChangedFiles(in: &result)
        try findBlacklisted(in: &result, at: now)
        try findObjections(in: &result, at: now)
        try findEntriesNotTaken(in: &result, by: hasher)
        if !images.isEmpty { try findImages(asked, in: &result) }
        if let lineWriter {
            result.lines = lineWriter.lines(of: result.warm, variants: usual, in: batch)
        }
        return result
    }

    // MARK: Freshness

    private func findStates(
        of batch: EntryBatch, _ asked: AskedVariants, by hasher: borrowing SHA256Hasher,
        at now: Timestamp
    ) throws(StorageError) -> [EntryFinding] {
        let keys = batch.fingerprints(by: hasher)
        let rows = try index.records(of: asked.fingerprints(of: keys), with: reader)
        var findings: [EntryFinding] = []
        findings.reserveCapacity(keys.count)
        for (number, record) in batch.records.enumerated() {
            var finding = EntryFinding(fingerprint: keys[number], state: .invalid)
            if record.problem < 0 {
                var stored = VariantRows()
                let names = asked.names(of: number)
                for (position, place) in asked.places(of: number).enumerated() {
                    stored.add(rows[place], at: position, names[position])
                }
                try judge(
                    stored, extras: batch.extras(of: record), at: now,
                    group: configuration.varyGroup(of: batch.text[record.url]), &finding)
            }
            findings.append(finding)
        }
        return findings
    }

    private func judge(
        _ stored: VariantRows, extras: EntryExtras?, at now: Timestamp,
        group: @autoclosure () -> Int, _ finding: inout EntryFinding
    ) throws(StorageError) {
        finding.state = .missing
        guard let row = stored.first else { return }
        finding.resource = row.resourceID
        finding.isKeyed = row.isKeyed
        finding.isRedirected = row.isRedirected
        guard
            let expiresAt = try reader.warmUntil(
                row, by: configuration, extras: extras, at: now, group: group())
        else {
            finding.state = .stale(.expired(at: row.expiresAt))
            return
        }
        guard stored.missing < 0 else {
            finding.state = .stale(.incomplete(position: stored.missing))
            return
        }
        if undecoded?.contains(row.resourceID) == true {
            finding.state = .stale(.incomplete(position: 0))
            return
        }
        finding.state = .fresh(expiresAt: expiresAt)
        // All rows of a resource have the same freshness.
        if expiresAt != row.expiresAt { finding.newExpiry = expiresAt }
        finding.isReturning = !stored.areInUse
        finding.isSuperseded = !stored.areInUse && stored.isSuperseded
    }

    private func findMissingAttributes(in result: inout LookedUpBatch) throws(StorageError) {
        guard !result.batch.extras.isEmpty else { return }
        var fresh: [(number: Int, expiresAt: Timestamp)] = []
        var wanted: [(resource: Int64, attributes: [EntryAttribute])] = []
        for (number, finding) in result.findings.enumerated() {
            guard case .fresh(let expiresAt) = finding.state, let resource = finding.resource,
                let attributes = result.extras(of: number)?.attributes, !attributes.isEmpty
            else { continue }
            fresh.append((number, expiresAt))
            wanted.append((resource, attributes))
        }
        for ((number, expiresAt), hasAll) in zip(fresh, try reader.haveAttributes(wanted))
        where !hasAll {
            result.findings[number].state = .unannotated(expiresAt: expiresAt)
        }
    }

    /// Finds copies of other sources than their entries name; they are requested again.
    private func findOtherSources(in result: inout LookedUpBatch) throws(StorageError) {
        guard !result.batch.extras.isEmpty else { return }
        var numbers: [Int] = []
        var wanted: [(resource: Int64, digest: ContentDigest)] = []
        for (number, finding) in result.findings.enumerated() where finding.state != .missing {
            guard let resource = finding.resource,
                let digest = result.extras(of: number)?.sourceDigest
            else { continue }
            numbers.append(number)
            wanted.append((resource, digest))
        }
        guard !numbers.isEmpty else { return }
        for (number, isMade) in zip(numbers, try reader.wereMade(of: wanted)) where !isMade {
            result.findings[number].becomeStale(.otherSource)
        }
    }

    /// Finds copies of files that have changed, or cannot be read any more.
    private func findChangedFiles(in result: inout LookedUpBatch) throws(StorageError) {
        let folder = configuration.requests.filesBelow
        guard let folder, configuration.lifetimes.refresh != .none else { return }
        var found: [(number: Int, resource: Int64)] = []
        for (number, record) in result.batch.records.enumerated() {
            switch result.findings[number].state {
            case .fresh, .unannotated, .derivable: break
            case .invalid, .missing, .stale, .seeded, .extended, .blacklisted: continue
            }
            let hasFile =
                result.batch.text[record.url].starts(with: "file:".utf8)
                || result.extras(of: number)?.alternatives.contains(where: \.isFile) ?? false
            if hasFile, let resource = result.findings[number].resource {
                found.append((number, resource))
            }
        }
        guard !found.isEmpty else { return }
        for ((number, _), copy) in zip(found, try reader.copies(of: found.map(\.resource))) {
            guard let copy = copy?.validation else { continue }
            let url = RequestURL(normalized: copy.location.respondingURL)
            guard url.isFile else { continue }
            let tag = LocalFile.tag(of: url, below: folder).map { "\"\($0)\"" }
            if tag == nil || tag != copy.response.entityTag {
                result.findings[number].becomeStale(.changedFile)
            }
        }
    }

    /// Compares the URLs of stored images with keys of their own with the entries': another URL's
    /// image is not the entry's, and a URL with another query is noted.
    private func compareURLs(in result: inout LookedUpBatch) throws(StorageError) {
        let batch = result.batch
        var found: [(number: Int, resource: Int64)] = []
        for (number, record) in batch.records.enumerated()
        where record.hasOwnKey || result.findings[number].isKeyed {
            if let resource = result.findings[number].resource { found.append((number, resource)) }
        }
        for ((number, _), urls) in zip(found, try reader.urls(of: found.map(\.resource))) {
            guard let urls else { continue }
            let record = batch.records[number]
            guard batch.isImage(of: record, at: urls) else {
                result.findings[number].state = .missing
                result.findings[number].newExpiry = nil
                result.findings[number].isReturning = false
                result.findings[number].hasOtherURL = true
                result.otherURLs[number] = urls.requested
                continue
            }
            guard record.hasOwnKey, result.findings[number].state != .missing else { continue }
            result.findings[number].hasNewURL =
                urls.listed != batch.url(of: record).withoutCredentials.text
        }
    }

    /// Finds entries that lack variants and need no download for them.
    private func findSources(
        _ asked: AskedVariants, in result: inout LookedUpBatch, at now: Timestamp
    ) throws(StorageError) {
        guard !index.isEmpty else { return }
        let lacking = result.findings.indices.filter {
            switch result.findings[$0].state {
            case .missing, .stale(.incomplete): true
            case .invalid, .fresh, .unannotated, .stale, .derivable, .seeded, .extended,
                .blacklisted:
                false
            }
        }
        guard !lacking.isEmpty else { return }
        let rows = try reader.sources(
            of: lacking.map { (result.key(of: $0), asked.variants(of: $0).map(\.recipe)) },
            sameRules: CodecLibraries.sameRules)
        for (number, row) in zip(lacking, rows) {
            guard let (row, isDerivable) = row else { continue }
            result.findings[number].resource = row.resourceID
            result.findings[number].isKeyed = row.isKeyed
            result.findings[number].isRedirected = row.isRedirected
            guard isDerivable else { continue }
            let url = result.batch.text[result.batch.records[number].url]
            let expiresAt = try reader.warmUntil(
                row, by: configuration, extras: result.extras(of: number), at: now,
                group: configuration.varyGroup(of: url))
            if expiresAt != row.expiresAt { result.findings[number].newExpiry = expiresAt }
            result.findings[number].state =
                expiresAt.map { .derivable(expiresAt: $0) } ?? .stale(.original)
        }
    }

    // MARK: Entries without a request

    /// Finds the resources of entries that the run does not take: they are listed all the same.
    private func findEntriesNotTaken(
        in result: inout LookedUpBatch, by hasher: borrowing SHA256Hasher
    ) throws(StorageError) {
        guard !index.isEmpty else { return }
        let batch = result.batch
        var keys = batch.otherKeys
        if !batch.problems.isEmpty {
            keys += batch.records.lazy.filter {
                $0.problem >= 0
                    && batch.problems[$0.problem].failure.reason == .notSelected
            }.map(\.key)
        }
        guard !keys.isEmpty else { return }
        let recipe = RecipeFingerprint(usual.primary.recipeText, hasher: hasher)
        let fingerprints = batch.text.withUnsafeBytes { text in
            keys.map { key in
                VariantFingerprint(
                    KeyFingerprint(UnsafeRawBufferPointer(rebasing: text[key]), hasher: hasher),
                    recipe)
            }
        }
        var missing: [String] = []
        for (key, row) in zip(keys, try index.records(of: fingerprints, with: reader)) {
            if let row {
                result.resourcesNotTaken.append(row.resourceID)
            } else if configuration.storing.removesUnlisted {
                missing.append(String(decoding: batch.text[key], as: UTF8.self))
            }
        }
        // Stored by other recipes only.
        result.resourcesNotTaken += try reader.resources(ofKeys: missing)
    }

    /// Finds stored images that redirects to excluded URLs brought, and stale ones with remembered
    /// redirects to such URLs. A line with further URLs requests these.
    private func findObjections(
        in result: inout LookedUpBatch, at now: Timestamp
    ) throws(StorageError) {
        guard configuration.entries.objection != nil else { return }
        var stored: [(number: Int, resource: Int64)] = []
        var stale: [(number: Int, resource: Int64)] = []
        for (number, finding) in result.findings.enumerated()
        where finding.isRedirected && !finding.hasOtherURL {
            guard let resource = finding.resource else { continue }
            if !finding.state.asksOrigin {
                stored.append((number, resource))
            } else if finding.state != .stale(.otherSource),
                result.extras(of: number)?.alternatives.isEmpty ?? true
            {
                stale.append((number, resource))
            }
        }
        for ((number, _), text) in zip(stored, try reader.finalURLs(of: stored.map(\.resource))) {
            guard let url = text.map(RequestURL.init(normalized:)) else { continue }
            result.objections[number] = configuration.entries.exclusion(ofRedirectTo: url)
        }
        for ((number, _), copy) in zip(stale, try reader.copies(of: stale.map(\.resource))) {
            let url = result.batch.url(of: result.batch.records[number])
            guard let copy = copy?.validation,
                let target = copy.location.permanent.flatMap({ RequestURL(remembered: $0.url) }),
                rules.entries.redirectsRemembered(in: copy, from: url, to: target, at: now) != nil
            else { continue }
            result.objections[number] = configuration.entries.exclusion(ofRedirectTo: target)
        }
    }

    private func findBlacklisted(
        in result: inout LookedUpBatch, at now: Timestamp
    ) throws(StorageError) {
        guard hasFailures, !configuration.lifetimes.isOffline else { return }
        let numbers = result.findings.indices.filter { result.findings[$0].mayFail }
        let failures = try reader.failures(ofKeys: numbers.map(result.key))
        for (number, failure) in zip(numbers, failures) {
            guard let failure else { continue }
            result.findings[number].failedBefore = true
            guard !configuration.retriesFailed, failure.isBlacklisted(at: now),
                result.findings[number].state.asksOrigin,
                applies(failure, to: number, of: result)
            else { continue }
            result.findings[number].state = .blacklisted(result.blacklistedBy.count)
            result.blacklistedBy.append(failure)
        }
    }

    private func applies(
        _ failure: FailureRecord, to number: Int, of result: LookedUpBatch
    ) -> Bool {
        let extras = result.extras(of: number)
        switch result.findings[number].state {
        case .stale(.incomplete), .missing: break
        default:
            // It may concern one variant that cannot be made, while the others are to be kept
            // fresh.
            guard
                failure.reason != .unsupportedImage || rules.variants(of: extras).count == 1
            else { return false }
        }
        let url = result.batch.url(of: result.batch.records[number])
        // A key that now stands for another URL has not failed yet, and a run with other settings
        // may succeed.
        guard
            configuration.entries.ignoredQuery.areEqual(failure.url, url.withoutCredentials.text)
        else { return false }
        let settings = rules.failureSettings.at(hostIn: url.text)
        return FailureConditions(text: failure.conditions ?? "").hold {
            settings.value(
                of: $0, url: url, extras: extras,
                variants: extras?.changesVariants == true ? rules.variants(of: extras) : nil)
        }
    }

    private func findImages(
        _ asked: AskedVariants, in result: inout LookedUpBatch
    ) throws(StorageError) {
        var numbers: [Int] = []
        var resources: [Int64] = []
        result.images = ReportedImages(records: result.findings.count, each: images.count)
        for (number, finding) in result.findings.enumerated() {
            guard finding.reportsImages, let resource = finding.resource else { continue }
            guard !asked.isOwn(number) else {
                result.images.setOwn(
                    try asked.variants(of: number).map { variant throws(StorageError) in
                        try reader.images(of: [resource], recipe: variant.recipe)[0]
                    }, of: number)
                continue
            }
            numbers.append(number)
            resources.append(resource)
        }
        for (position, index) in images.enumerated() {
            let found = try index.images(of: resources, with: reader)
            for (number, image) in zip(numbers, found) {
                result.images.set(image, of: number, at: position)
            }
        }
    }
}

private struct VariantRows {
    private(set) var first: FreshnessRecord?
    /// The position of the first variant without a row; -1 when each has one.
    private(set) var missing: Int32 = -1
    private(set) var areInUse = true
    private(set) var isSuperseded = false

    mutating func add(_ row: FreshnessRecord?, at position: Int, _ name: VariantName) {
        guard let row else {
            if missing < 0 { missing = Int32(position) }
            return
        }
        if first == nil { first = row }
        areInUse = areInUse && row.isInUse(as: name)
        isSuperseded = isSuperseded || row.isSuperseded
    }
}

extension EntryFinding {
    /// Makes a stored copy one that is requested again.
    fileprivate mutating func becomeStale(_ cause: EntryState.Staleness) {
        state = .stale(cause)
        newExpiry = nil
        isReturning = false
    }
}

package import PrefetchModel

/// The last line of a report, and the output of `--summary json`: see docs/report.md.
extension RunSummary: JSONRecord {
    /// A summary as it is read, with the hosts as it describes them.
    package struct SummaryDraft: Sendable {
        package var summary = RunSummary(
            counters: RunCounters(), startedAt: Timestamp(milliseconds: 0), elapsed: .zero,
            exitStatus: 0, cacheDirectory: "")
        package var hosts: [HostRow] = []
        var hasStatus = false
    }

    package static var emptyDraft: SummaryDraft { SummaryDraft() }

    package static let sample: RunSummary = {
        var sample = SummaryDraft().summary
        sample.counters[.requested] = 1
        sample.seedCache = ""
        sample.sink = .sample
        sample.shard = .sample
        return sample
    }()

    package func visitMembers(_ members: inout some JSONVisitor, into draft: inout SummaryDraft) {
        members.add("type", "summary")
        members.add("schema_version", 3)
        counters.visitMembers(&members, into: &draft.summary.counters)
        members.add("skipped", skipped.count) { draft.summary.skipped.count = $0 }
        members.time("started_at", startedAt) { draft.summary.startedAt = $0 }
        members.add("elapsed_ms", elapsed) { draft.summary.elapsed = $0 }
        members.add("entries_per_second", perSecond(counters.entriesFinished))
        members.add("bytes_per_second", perSecond(counters.bytesReceived))
        members.add("exit_status", Int(exitStatus)) {
            draft.summary.exitStatus = Int32(clamping: $0)
            draft.hasStatus = true
        }
        members.add("cache_dir", cacheDirectory) { draft.summary.cacheDirectory = $0 }
        members.add("sandbox", sandbox.text) { draft.summary.sandbox.text = $0 }
        members.add("message", fatalMessage.map(redacted)) { draft.summary.fatalMessage = $0 }
        members.add("signal", stoppedBySignal.map(Int.init)) {
            draft.summary.stoppedBySignal = Int32(clamping: $0)
        }
        members.choice("ended_by", endedBy) { draft.summary.endedBy = $0 }
        members.record("pruned", pruned) { draft.summary.pruned = $0 }
        members.add("partial_list", unlistedKeptBy.map { redacted($0.description) })
        members.record("lists", lists) { draft.summary.lists = $0 }
        if let seedCache {
            members.record("seed_cache", SeedCount(path: seedCache, entries: counters.seeded)) {
                draft.summary.seedCache = $0.path
                draft.summary.counters.seeded = $0.entries
            }
        }
        if let sink { members.record("sink", sink) { draft.summary.sink = $0 } }
        if let shard { members.record("shard", shard) { draft.summary.shard = $0.result } }
        members.records("hosts", hosts) { draft.hosts = $0 }
        members.records("pauses", pauses) { pauses in
            draft.summary.pauses = pauses.filter { !$0.host.isEmpty }
        }
        members.record("outage", outage) { draft.summary.outage = $0 }
    }
}

extension RunSummary {
    /// Reads the output of `--summary json`, or the last line of a report. Nil for the report of a
    /// killed run, and for anything else.
    package static func read(lastLineOf file: [UInt8]) -> RunSummary? {
        guard let line = file.split(separator: UInt8(ascii: "\n")).last,
            let read = read(line, type: "summary"), !read.isDamaged, read.draft.hasStatus
        else { return nil }
        return read.draft.summary
    }

    /// Nil when no time passed.
    func perSecond(_ count: Int) -> Double? {
        let seconds = elapsed.secondsValue
        return seconds > 0 ? Double(count) / seconds : nil
    }
}

extension RunCounters {
    /// Entries with a fresh image or a good response, without duplicates.
    package var warm: Int {
        [.downloaded, .revalidated, .fresh, .derived, .requested].reduce(0) { $0 + self[$1] }
    }

    fileprivate func visitMembers(
        _ members: inout some JSONVisitor, into draft: inout RunCounters
    ) {
        members.add("entries", entriesRead) { draft.entriesRead = $0 }
        members.counts("outcomes", Outcome.allCases.map { ($0.rawValue, self[$0]) }) {
            for (name, count) in $0 {
                if let outcome = Outcome(rawValue: name) { draft[outcome] = count }
            }
        }
        members.counts("reasons", counts { !$0.isExclusion }) { draft.read(reasons: $0) }
        members.counts("exclusions", counts(where: \.isExclusion)) { draft.read(reasons: $0) }
        members.add("known_failures", knownFailures) { draft.knownFailures = $0 }
        members.add("requests", requests) { draft.requests = $0 }
        if self[.requested] > 0 {
            members.add("edge_hits", edgeHits) { draft.edgeHits = $0 }
        }
        members.add("bytes_received", bytesReceived) { draft.bytesReceived = $0 }
        members.add("bytes_stored", bytesStored) { draft.bytesStored = $0 }
        members.add("variants_made", variantsMade) { draft.variantsMade = $0 }
        members.add("not_decoded", notDecoded) { draft.notDecoded = $0 }
    }

    private func counts(where isWanted: (FailureReason) -> Bool) -> [(name: String, count: Int)] {
        FailureReason.allCases.filter(isWanted).map { ($0.rawValue, self[$0]) }
    }

    private mutating func read(reasons: [String: Int]) {
        for (name, count) in reasons where count > 0 {
            if let reason = FailureReason(rawValue: name) { self[reason] = count }
        }
    }
}

extension RemovalTotals: JSONRecord {
    package static var emptyDraft: RemovalTotals { RemovalTotals() }
    package static var sample: RemovalTotals { emptyDraft }

    package func visitMembers(_ members: inout some JSONVisitor, into draft: inout RemovalTotals) {
        members.add("images", images) { draft.images = $0 }
        members.add("variants", variants) { draft.variants = $0 }
        members.add("bytes", bytes) { draft.bytes = $0 }
    }
}

extension ListCounts: JSONRecord {
    package static var emptyDraft: ListCounts { ListCounts() }
    package static var sample: ListCounts { ListCounts() }

    package func visitMembers(_ members: inout some JSONVisitor, into draft: inout ListCounts) {
        members.add("fetched", fetched) { draft.fetched = $0 }
        members.add("not_modified", notModified) { draft.notModified = $0 }
        members.add("stored", stored) { draft.stored = $0 }
        members.add("fallback", fallback) { draft.fallback = $0 }
        members.add("failed", failed) { draft.failed = $0 }
        members.add("requests", requests) { draft.requests = $0 }
        members.add("bytes_received", bytesReceived) { draft.bytesReceived = $0 }
    }
}

/// The seed cache of a run, and the entries with images from it.
private struct SeedCount: JSONRecord {
    var path: String
    var entries: Int

    static var emptyDraft: SeedCount { SeedCount(path: "", entries: 0) }
    static var sample: SeedCount { emptyDraft }

    func visitMembers(_ members: inout some JSONVisitor, into draft: inout SeedCount) {
        members.add("path", path) { draft.path = $0 }
        members.add("entries", entries) { draft.entries = $0 }
    }
}

extension SinkResult: JSONRecord {
    package static var emptyDraft: SinkResult { SinkResult(url: "") }
    package static var sample: SinkResult { emptyDraft }

    package func visitMembers(_ members: inout some JSONVisitor, into draft: inout SinkResult) {
        members.add("url", url) { draft.url = $0 }
        members.add("uploaded", uploaded) { draft.uploaded = $0 }
        members.add("bytes_uploaded", uploadedBytes) { draft.uploadedBytes = $0 }
        members.add("present", present) { draft.present = $0 }
        members.add("done", isDone) { draft.isDone = $0 }
    }
}

extension ShardResult: JSONRecord {
    package struct ShardDraft {
        var index = 0
        var result: ShardResult?
    }

    package static var emptyDraft: ShardDraft { ShardDraft() }
    package static var sample: ShardResult { ShardResult(.whole) }

    package func visitMembers(_ members: inout some JSONVisitor, into draft: inout ShardDraft) {
        members.add("index", shard.index) { draft.index = $0 }
        members.add("count", shard.count) {
            draft.result = Shard(index: draft.index, count: $0).map { ShardResult($0) }
        }
        members.add("plan", plan) { draft.result?.plan = $0 }
        members.add("other_entries", otherEntries) { draft.result?.otherEntries = $0 }
        members.add("redirects_elsewhere", redirectsElsewhere) {
            draft.result?.redirectsElsewhere = $0
        }
    }
}

extension HostPace: JSONRecord {
    package static var emptyDraft: HostRow { HostRow(host: "", requests: 0, failures: 0) }

    package static let sample = HostPace(host: "")

    package func visitMembers(_ members: inout some JSONVisitor, into draft: inout HostRow) {
        members.add("host", host) { draft.host = $0 }
        members.choice("protocol", version)
        members.add("requests", requests) { draft.requests = $0 }
        members.add("responses", responses)
        members.add("refusals", refusals) { draft.refusals = $0 }
        members.add("failures", failures.count) { draft.failures = $0 }
        members.add("p50_ms", times?.median) {
            draft.times = TransferTimes(median: $0, percentile95: $0)
        }
        members.add("p95_ms", times?.percentile95) { slow in
            draft.times = draft.times.map { TransferTimes(median: $0.median, percentile95: slow) }
        }
        members.add("concurrency", concurrency)
        members.add("per_second", perSecond)
        members.choice("limited_by", limit) { draft.limit = $0 }
        members.add("hint", HostHint(self)?.text) { draft.hint = $0 }
    }
}

extension HostPause: JSONRecord {
    package static var emptyDraft: HostPause { HostPause(host: "", start: .zero, end: .zero) }
    package static var sample: HostPause { emptyDraft }

    package func visitMembers(_ members: inout some JSONVisitor, into draft: inout HostPause) {
        members.add("host", host) { draft.host = $0 }
        members.add("start_ms", start) { draft.start = $0 }
        members.add("end_ms", end) { draft.end = $0 }
    }
}

extension Outage: JSONRecord {
    package static var emptyDraft: Outage? { nil }

    package static let sample = Outage(
        reason: .dns, failures: 0, heldBack: 0, asked: 0, hostCount: 0, hosts: [])

    package func visitMembers(_ members: inout some JSONVisitor, into draft: inout Outage?) {
        members.choice("reason", reason) {
            draft = Outage.sample
            draft?.reason = $0
        }
        members.add("failures", failures) { draft?.failures = $0 }
        members.add("held_back", heldBack) { draft?.heldBack = $0 }
        members.add("asked", asked) { draft?.asked = $0 }
        members.add("hosts", hostCount) { draft?.hostCount = $0 }
    }
}

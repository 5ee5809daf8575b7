import PrefetchModel

extension RunRecord.Ending {
    /// Reads the members of a summary, see ``JSONObject/init(_:)``. Missing ones are zero or nil.
    init(_ members: [String: JSONMember], by reader: JSONMembers) {
        func integer(_ name: String) -> Int { max(0, members[name]?.integer ?? 0) }
        var summary = RunSummary(
            counters: RunCounters(members, by: reader),
            startedAt: members["started_at"]?.time ?? Timestamp(milliseconds: 0),
            elapsed: members["elapsed_ms"]?.duration ?? .zero,
            exitStatus: Int32(clamping: integer("exit_status")),
            cacheDirectory: members["cache_dir"]?.text ?? "",
            fatalMessage: members["message"]?.text,
            stoppedBySignal: members["signal"]?.integer.map { Int32(clamping: $0) })
        summary.endedBy = members["ended_by"]?.text.flatMap(RunLimit.init)
        if let pruned = members["pruned"]?.members(by: reader), !pruned.isEmpty {
            func count(_ name: String) -> Int { max(0, pruned[name]?.integer ?? 0) }
            summary.pruned = PrunedCounts(
                images: count("images"), variants: count("variants"), bytes: count("bytes"))
        }
        summary.pauses = (members["pauses"]?.elements(by: reader) ?? []).compactMap {
            HostPause($0.members(by: reader))
        }
        if let outage = members["outage"]?.members(by: reader) { summary.outage = Outage(outage) }
        let hosts = members["hosts"]?.elements(by: reader) ?? []
        self.init(summary, hosts: hosts.map { HostRow($0.members(by: reader)) })
    }
}

extension RunCounters {
    fileprivate init(_ members: [String: JSONMember], by reader: JSONMembers) {
        self.init()
        func integer(_ name: String) -> Int { max(0, members[name]?.integer ?? 0) }
        entriesRead = integer("entries")
        requests = integer("requests")
        bytesReceived = integer("bytes_received")
        bytesStored = integer("bytes_stored")
        variantsMade = integer("variants_made")
        notDecoded = integer("not_decoded")
        knownFailures = integer("known_failures")
        let outcomes = members["outcomes"]?.members(by: reader) ?? [:]
        for (outcome, name) in [(Outcome.failed, "reasons"), (.excluded, "exclusions")] {
            for (reason, count) in members[name]?.members(by: reader) ?? [:] {
                guard let reason = FailureReason(rawValue: reason), let count = count.integer,
                    count > 0
                else { continue }
                self.count(outcome, reason: reason, times: count)
            }
        }
        for outcome in Outcome.allCases {
            let rest = (outcomes[outcome.rawValue]?.integer ?? 0) - self[outcome]
            if rest > 0 { count(outcome, times: rest) }
        }
    }
}

extension HostRow {
    fileprivate init(_ members: [String: JSONMember]) {
        var times: HostPace.TransferTimes?
        if let median = members["p50_ms"]?.duration, let slow = members["p95_ms"]?.duration {
            times = HostPace.TransferTimes(median: median, percentile95: slow)
        }
        self.init(
            host: members["host"]?.text ?? "", requests: max(0, members["requests"]?.integer ?? 0),
            refusals: members["refusals"]?.integer,
            failures: max(0, members["failures"]?.integer ?? 0), times: times,
            limit: members["limited_by"]?.text.flatMap(HostPace.Limit.init),
            hint: members["hint"]?.text)
    }
}

extension HostPause {
    fileprivate init?(_ members: [String: JSONMember]) {
        guard let host = members["host"]?.text, let start = members["start_ms"]?.duration,
            let end = members["end_ms"]?.duration
        else { return nil }
        self.init(host: host, start: start, end: end)
    }
}

extension Outage {
    fileprivate init?(_ members: [String: JSONMember]) {
        guard let reason = members["reason"]?.text.flatMap(FailureReason.init) else { return nil }
        func integer(_ name: String) -> Int { max(0, members[name]?.integer ?? 0) }
        self.init(
            reason: reason, failures: integer("failures"), heldBack: integer("held_back"),
            asked: integer("asked"), hostCount: integer("hosts"), hosts: [])
    }
}

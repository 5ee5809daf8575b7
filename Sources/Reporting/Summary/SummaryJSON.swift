package import PrefetchModel

extension JSONObjectWriter {
    /// See ``JSONObject/init(_:)``.
    mutating func appendMembers(of summary: RunSummary) {
        let counters = summary.counters
        string("type", "summary")
        integer("schema_version", 3)
        integer("entries", counters.entriesRead)
        beginObject(named: "outcomes")
        for outcome in Outcome.allCases { integer(.text(outcome.rawValue), counters[outcome]) }
        endObject()
        beginObject(named: "reasons")
        for reason in FailureReason.allCases where !reason.isExclusion {
            integer(.text(reason.rawValue), counters[reason])
        }
        endObject()
        beginObject(named: "exclusions")
        for reason in FailureReason.allCases where reason.isExclusion {
            integer(.text(reason.rawValue), counters[reason])
        }
        endObject()
        integer("known_failures", counters.knownFailures)
        integer("requests", counters.requests)
        if counters[.requested] > 0 { integer("edge_hits", counters.edgeHits) }
        integer("bytes_received", counters.bytesReceived)
        integer("bytes_stored", counters.bytesStored)
        integer("variants_made", counters.variantsMade)
        integer("not_decoded", counters.notDecoded)
        string("started_at", summary.startedAt.description)
        milliseconds("elapsed_ms", summary.elapsed)
        decimal("entries_per_second", summary.perSecond(counters.entriesFinished))
        decimal("bytes_per_second", summary.perSecond(counters.bytesReceived))
        integer("exit_status", Int(summary.exitStatus))
        string("cache_dir", summary.cacheDirectory)
        string("message", summary.fatalMessage.map(redacted))
        integer("signal", summary.stoppedBySignal.map(Int.init))
        string("ended_by", summary.endedBy?.rawValue)
        if let pruned = summary.pruned {
            beginObject(named: "pruned")
            integer("images", pruned.images)
            integer("variants", pruned.variants)
            integer("bytes", pruned.bytes)
            endObject()
        } else {
            null("pruned")
        }
        string("partial_list", summary.unlistedKeptBy.map { redacted($0.description) })
        if let lists = summary.lists {
            beginObject(named: "lists")
            for (name, count) in lists.bySource { integer(.text(name), count) }
            integer("requests", lists.requests)
            integer("bytes_received", lists.bytesReceived)
            endObject()
        } else {
            null("lists")
        }
        if let path = summary.seedCache {
            beginObject(named: "seed_cache")
            string("path", path)
            integer("entries", counters.seeded)
            endObject()
        }
        if let sink = summary.sink {
            beginObject(named: "sink")
            string("url", sink.url)
            integer("uploaded", sink.uploaded)
            integer("bytes_uploaded", sink.uploadedBytes)
            integer("present", sink.present)
            boolean("done", sink.isDone)
            endObject()
        }
        if let shard = summary.shard {
            beginObject(named: "shard")
            integer("index", shard.shard.index)
            integer("count", shard.shard.count)
            string("plan", shard.plan)
            integer("other_entries", shard.otherEntries)
            integer("redirects_elsewhere", shard.redirectsElsewhere)
            endObject()
        }
        beginArray(named: "hosts")
        for pace in summary.hosts {
            beginObject()
            string("host", pace.host)
            string("protocol", pace.version.rawValue)
            integer("requests", pace.requests)
            integer("responses", pace.responses)
            integer("refusals", pace.refusals)
            integer("failures", pace.failures.count)
            milliseconds("p50_ms", pace.times?.median)
            milliseconds("p95_ms", pace.times?.percentile95)
            integer("concurrency", pace.concurrency)
            decimal("per_second", pace.perSecond)
            string("limited_by", pace.limit?.rawValue)
            string("hint", HostHint(pace)?.text)
            endObject()
        }
        endArray()
        beginArray(named: "pauses")
        for pause in summary.pauses {
            beginObject()
            string("host", pause.host)
            milliseconds("start_ms", pause.start)
            milliseconds("end_ms", pause.end)
            endObject()
        }
        endArray()
        guard let outage = summary.outage else { return null("outage") }
        beginObject(named: "outage")
        string("reason", outage.reason.rawValue)
        integer("failures", outage.failures)
        integer("held_back", outage.heldBack)
        integer("asked", outage.asked)
        integer("hosts", outage.hostCount)
        endObject()
    }
}

extension JSONObject {
    /// The last line of a report, and the output of `--summary json`.
    ///
    /// - `type`: `"summary"`. `schema_version`: 3, for the whole report.
    /// - `entries`: entries read.
    /// - `outcomes`: an object with the count of every ``Outcome``, zeros included; they add up to
    ///   `entries`.
    /// - `reasons`: an object with the count of every ``FailureReason`` of failures, zeros
    ///   included; they add up to `outcomes.failed`.
    /// - `exclusions`: the counts of exclusions by properties of the image, part of
    ///   `outcomes.excluded`.
    /// - `known_failures`: entries that failed in an earlier run for the same reason, part of
    ///   `outcomes.failed`.
    /// - `requests`, `bytes_received`, `bytes_stored`: numbers. `variants_made`: variants that the
    ///   run stored and counted in `bytes_stored`. `not_decoded`: entries stored without decoding,
    ///   because of their format.
    /// - `started_at`: RFC 3339, UTC; `elapsed_ms`: milliseconds with three decimals.
    /// - `entries_per_second` (without cancelled ones), `bytes_per_second` (received): three
    ///   decimals, null if no time passed.
    /// - `exit_status`: number; `cache_dir`: text.
    /// - `message`: the error that ended the run; `signal`: the number of the signal that did;
    ///   `ended_by`: the limit that ended it with work left. Each is null without one.
    /// - `lists`: null, or an object with the members of ``ListCounts``.
    /// - `seed_cache`: only with one: an object with `path` and `entries`, whose images were taken
    ///   from it.
    /// - `sink`: only with one: an object with `url`, `uploaded`, `bytes_uploaded`, `present`
    ///   (files that were there) and `done` (whether `_DONE.json` was written).
    /// - `shard`: only for a shard: an object with `index`, `count`, `plan` (the SHA-256 of its
    ///   file, or null), `other_entries` (entries of other shards) and `redirects_elsewhere`
    ///   (entries whose redirects ended at a host of another shard).
    /// - `hosts`: the hosts with most requests or failures, at most ten: `host`, `protocol`,
    ///   `requests`, `responses`, `refusals` (429 and 503 among them), `failures` (images),
    ///   `p50_ms` and `p95_ms` (of complete responses, or null), `concurrency` (limit at the end),
    ///   `per_second`, `limited_by` (a name of ``HostPace/Limit``, or null), `hint` (or null).
    /// - `pauses`: the first hundred pauses of hosts that held up the run: `host`, `start_ms` and
    ///   `end_ms` since the run's start, seen once a second.
    /// - `outage`: null, or an object: the failures that are attributed to an outage, so their URLs
    ///   are not blacklisted. `reason`, `failures` (entries that failed so; of `http-status` not
    ///   404, 410 and statuses that never blacklist), `held_back` (those of them that are not
    ///   blacklisted), `asked` (entries that were requested), `hosts` (number of hosts without any
    ///   success).
    package init(_ summary: RunSummary) {
        self.init { $0.appendMembers(of: summary) }
    }
}

extension RunSummary {
    /// Nil when no time passed.
    func perSecond(_ count: Int) -> Double? {
        let seconds = elapsed.secondsValue
        return seconds > 0 ? Double(count) / seconds : nil
    }
}

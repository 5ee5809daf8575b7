import Foundation
import PrefetchModel
import SeededRandom
import TestSupport
import Testing

@testable import Reporting

@Suite(.timeLimit(.minutes(15)))
struct ReportReaderTests {
    private func results() throws -> [EntryResult] {
        var results: [EntryResult] = []
        for line in 1...60 {
            var result = try Samples.downloaded(line: line)
            result.endedAfter = .milliseconds(line * 37)
            result.attempts = 1 + line % 3
            if line % 4 == 0, let image = result.stored {
                result.replaced = ReplacedImage(
                    fetchedAt: Timestamp(seconds: 1_795_000_000), image: image,
                    thumbHash: [1, 2, 3, 4, 5, 6])
            }
            results.append(result)
            results.append(Samples.failed(line: 100 + line, host: "h\(line % 5).example"))
        }
        for text in HostileTexts.all {
            var result = Samples.failed(line: 1, manifest: text, message: text)
            result.url = "https://example.org/\(text)"
            results.append(result)
        }
        return results
    }

    private func summary(_ results: [EntryResult]) -> RunSummary {
        var summary = Samples.summary()
        var counters = RunCounters()
        counters.entriesRead = results.count
        for result in results { counters.count(result.outcome, reason: result.reason) }
        counters.requests = 5
        counters.bytesReceived = 6
        counters.bytesStored = 7
        summary.counters = counters
        summary.pauses = [
            HostPause(host: "https://example.org", start: .seconds(1), end: .milliseconds(2500))
        ]
        var pace = HostPace(host: "https://example.org")
        (pace.version, pace.limit) = (.http2, .bandwidth)
        (pace.requests, pace.responses, pace.refusals) = (9, 8, 7)
        (pace.concurrency, pace.perSecond) = (6, 5)
        pace.times = HostPace.TransferTimes(
            median: .milliseconds(12), percentile95: .microseconds(34_500))
        pace.failures.note(.init(.dns, httpStatus: nil))
        summary.hosts = [pace]
        return summary
    }

    private func report(_ results: [EntryResult], _ summary: RunSummary?) throws -> [UInt8] {
        try Samples.withTemporaryPath { path in
            var writer = try ReportWriter(path: path)
            for result in results { try writer.write(result) }
            try writer.finish(summary ?? Samples.summary())
            let bytes = Array(try Data(contentsOf: URL(filePath: path)))
            guard summary == nil else { return bytes }
            let lines = bytes.split(separator: UInt8(ascii: "\n"))
            return Array(lines.dropLast().joined(separator: [UInt8(ascii: "\n")])) + [10]
        }
    }

    private func read(_ bytes: [UInt8], pieces: (Int) -> Int = { $0 }) -> RunRecord {
        let reader = ReportReader()
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(max(1, min(pieces(rest.count), rest.count)))
            piece.withUnsafeBytes { reader.read($0) }
            rest = rest.dropFirst(piece.count)
        }
        return reader.finish()
    }

    private func expectEqual(_ first: RunRecord, _ second: RunRecord) {
        #expect(first.lists == second.lists)
        #expect(first.counters == second.counters)
        #expect(first.timeline.slots == second.timeline.slots)
        #expect(first.timeline.width == second.timeline.width)
        #expect(first.failureRows == second.failureRows)
        #expect(first.hosts == second.hosts)
        #expect(first.formats.rows.map(\.totals) == second.formats.rows.map(\.totals))
        #expect(first.largest.elements.map(\.value) == second.largest.elements.map(\.value))
        #expect(first.slowest.elements.map(\.value) == second.slowest.elements.map(\.value))
        func replaced(_ record: RunRecord) -> [String] {
            record.pictures.changed.compactMap(\.replaced).map {
                "\($0.fetchedAt) \($0.image.digest) \($0.image.size) \($0.thumbHash ?? [])"
            }
        }
        #expect(replaced(first) == replaced(second))
        #expect(first.pictures.new.map(\.stored) == second.pictures.new.map(\.stored))
        #expect(first.ending?.summary.pauses == second.ending?.summary.pauses)
        #expect(first.ending?.summary.startedAt == second.ending?.summary.startedAt)
        #expect(first.ending?.summary.elapsed == second.ending?.summary.elapsed)
    }

    /// A run's own record and that of its report agree, however the bytes arrive.
    @Test(arguments: [UInt64(1), 2, 3])
    func recordOfAReportIsThatOfItsRun(seed: UInt64) throws {
        let results = try results()
        let summary = summary(results)
        var record = RunRecord()
        for result in results { record.note(result) }
        record.end(summary)
        let bytes = try report(results, summary)
        var random = SplitMix(seed: seed)
        let read = read(bytes) { Int(random.next() % UInt64(min($0, 4000))) }
        #expect(read.damage.lines == 0, "\(read.damage.first ?? ""), seed \(seed)")
        expectEqual(record, read)
        #expect(record.pictures.changed.count == 15 && record.pictures.newCount == 45)
        #expect(read.hosts.first?.times == summary.hosts[0].times)
    }

    private func wholeSummary() throws -> RunSummary {
        var summary = summary(try results())
        summary.counters.edgeHits = 3
        summary.counters.count(.requested)
        summary.counters.seeded = 4
        summary.counters.knownFailures = 2
        summary.endedBy = .deadline
        summary.stoppedBySignal = 15
        summary.fatalMessage = "no space"
        var pruned = RemovalTotals()
        (pruned.images, pruned.variants, pruned.bytes) = (1, 2, 3)
        summary.pruned = pruned
        summary.outage = Outage(
            reason: .dns, failures: 9, heldBack: 8, asked: 10, hostCount: 2, hosts: [])
        summary.seedCache = "/seed"
        var sink = SinkResult(url: "s3://images/main")
        (sink.uploaded, sink.uploadedBytes, sink.present, sink.isDone) = (1, 2, 3, true)
        summary.sink = sink
        var shard = ShardResult(try #require(Shard(index: 3, count: 8)), plan: "ab")
        (shard.otherEntries, shard.redirectsElsewhere) = (5, 6)
        summary.shard = shard
        var lists = ListCounts()
        (lists.fetched, lists.notModified, lists.stored, lists.fallback) = (1, 2, 3, 4)
        (lists.failed, lists.requests, lists.bytesReceived) = (5, 6, 7)
        summary.lists = lists
        return summary
    }

    private func done(_ summary: RunSummary) throws -> SinkDone {
        let digest = try #require(ContentDigest(hexadecimal: Samples.digestText))
        let replaced = SinkDone.Replaced(digest: digest, at: Timestamp(seconds: 1_795_000_000))
        return SinkDone(summary, digest: digest, size: ByteCount(9), replaced: [replaced])
    }

    /// A summary that is read is written like the first one.
    @Test func summariesAndDoneFilesReadThemselves() throws {
        var summary = try wholeSummary()
        summary.hosts = []
        let line = Array("{}\n".utf8) + summary.json + [10]
        let read = try #require(RunSummary.read(lastLineOf: line))
        #expect(Self.text(read.json) == Self.text(summary.json))

        let done = try done(summary)
        #expect(Self.text(SinkDone(file: done.json)?.json ?? []) == Self.text(done.json))
        #expect(SinkDone(file: summary.json) == nil)
        #expect(RunSummary.read(lastLineOf: Array("{\"type\":\"summary\"}".utf8)) == nil)
    }

    private static let unread: Set<String> = [
        "schema_version", "entries_per_second", "bytes_per_second", "responses", "concurrency",
        "per_second",
    ]

    @Test func damagedSummariesAreRefused() throws {
        let summary = try wholeSummary()
        #expect(RunSummary.read(lastLineOf: summary.json) != nil)
        let copies = DamagedJSON.copies(of: Self.text(summary.json), unread: Self.unread)
        #expect(copies.count > 100)
        for copy in copies {
            #expect(RunSummary.read(lastLineOf: Array(copy.text.utf8)) == nil, "\(copy)")
        }
    }

    @Test func damagedDoneFilesAreRefused() throws {
        let done = try done(try wholeSummary())
        let copies = DamagedJSON.copies(of: Self.text(done.json), unread: Self.unread)
        #expect(copies.contains { $0.description == "bytes: -5" })
        for copy in copies {
            #expect(SinkDone(file: Array(copy.text.utf8)) == nil, "\(copy)")
        }
        let text = Self.text(done.json)
        for (old, new) in [(Samples.digestText, "zz"), ("2026-11-", "2026-31-")] {
            let part = try #require(text.range(of: "\"replaced\""))
            let database = text[part.lowerBound...].replacing(old, with: new)
            let damaged = text[..<part.lowerBound] + database
            #expect(damaged != text && SinkDone(file: Array(damaged.utf8)) == nil, "\(new)")
        }
    }

    /// A damaged number of a result counts like a missing one.
    @Test func damagedNumbersOfResultsAreIgnored() throws {
        let report = Self.text(try report(Array(try results().prefix(8)), nil))
        let copies = DamagedJSON.copies(of: report)
        #expect(copies.contains { $0.description == "bytes_stored: -5" })
        for copy in copies {
            let record = read(Array(copy.text.utf8))
            #expect(record.damage.lines == 0, "\(copy)")
            expectEqual(record, read(Array(copy.absent.utf8)))
        }
    }

    private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    @Test func killedRunHasNoEnding() throws {
        let results = try results()
        let record = read(try report(results, nil))
        #expect(record.ending == nil && record.damage.lines == 0)
        #expect(record.counters[.downloaded] == 60)
        #expect(record.hosts.contains { $0.host == "https://h1.example" && $0.failures == 12 })
    }

    /// Whatever the place of the cut, whole lines before it count.
    @Test func cutReportKeepsItsWholeLines() throws {
        let bytes = try report([try Samples.downloaded(), try Samples.downloaded()], nil)
        let end = try #require(bytes.firstIndex(of: 10))
        for count in stride(from: 1, to: bytes.count, by: 7) {
            let record = read(Array(bytes.prefix(count)))
            let lines = count == bytes.count ? 2 : count > end ? 1 : 0
            #expect(record.counters[.downloaded] == lines, "cut at \(count)")
            let isWhole = count == end + 1
            #expect(record.damage.lines == (isWhole ? 0 : 1), "cut at \(count)")
            if !isWhole { #expect(record.damage.first == "line \(lines + 1): cut off") }
        }
    }

    @Test(arguments: [
        ("{", "invalid JSON at byte"), ("[1]", "not a JSON object"), ("{}", "no line of a report"),
        ("{\"a\":1}", "no line of a report"), ("", "an empty line"), ("\u{0}", "invalid JSON"),
        ("{\"type\":\"result\"}", "a result without an outcome"),
        ("{\"type\":\"result\",\"outcome\":\"odd\"}", "a result without an outcome"),
        ("{\"type\":\"other\"}", "no line of a report"),
        (
            "{\"type\":\(String(repeating: "[", count: 200))\(String(repeating: "]", count: 200))}",
            "levels"
        ),
    ])
    func damagedLinesAreCounted(line: String, problem: String) throws {
        let good = try report([try Samples.downloaded()], Samples.summary())
        let record = read(good + Array("\(line)\n".utf8) + good)
        #expect(record.damage.lines == 1)
        #expect(record.damage.first?.hasPrefix("line 3: ") == true)
        #expect(record.damage.first?.contains(problem) == true, "\(record.damage)")
        #expect(record.ending != nil)
    }

    /// Members of wrong kinds, and numbers that no run writes.
    @Test func strangeMembersAreHarmless() {
        let lines = [
            """
            {"type":"result","outcome":"downloaded","line":-5,"attempts":-3,"bytes_received":-1,\
            "bytes_stored":-9,"ended_ms":-1,"transfer_ms":1e9,"url":7,"manifest":null,\
            "sha256":"zz","format":"jpeg","replaced":[1],"thumbhash":"!","width":"x"}
            """,
            """
            {"type":"summary","entries":-1,"outcomes":[],"hosts":{"a":1},"pauses":[1,{}],\
            "elapsed_ms":"x","exit_status":99999999999,"started_at":"2026-02-31T00:00:00Z",\
            "outage":{"reason":"dns","failures":-1}}
            """,
            "{\"type\":\"result\",\"outcome\":\"failed\",\"ended_ms\":123456789012345678901234}",
        ]
        let record = read(Array((lines.joined(separator: "\n") + "\n").utf8))
        #expect(record.damage.lines == 0, "\(record.damage)")
        #expect(record.ending?.summary.counters.entriesRead == 0)
    }

    @Test func timelineHalvesWithoutLosingEntries() {
        var timeline = RunTimeline()
        for step in 0..<10_000 {
            timeline.note(
                after: .milliseconds(step * 13), isFailure: step % 10 == 0, retries: 1, bytes: 2)
        }
        #expect(timeline.slots.count <= RunTimeline.mostSlots)
        #expect(timeline.slots.reduce(0) { $0 + $1.entries } == 10_000)
        #expect(timeline.slots.reduce(0) { $0 + $1.failed } == 1000)
        #expect(timeline.slots.reduce(0) { $0 + $1.retries } == 10_000)
        timeline.note(after: .seconds(1 << 62), isFailure: false, retries: -1, bytes: -1)
        #expect(timeline.slots.count <= RunTimeline.mostSlots)
    }

    @Test func rankingKeepsTheLargest() {
        var ranking = Ranking<Int>()
        for value in [5, 3, 9, 9, 1, 20, 7, 8, 2, 4, 6, 11, 10, 0] {
            ranking.add(Int64(value), value)
        }
        #expect(ranking.elements.map(\.element) == [20, 11, 10, 9, 9, 8, 7, 6, 5, 4])
    }
}

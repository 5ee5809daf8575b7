import Foundation
import Reporting
import TestSupport
import Testing

@testable import Pages
@testable import PrefetchModel

@Suite(.timeLimit(.minutes(15)))
struct ReportPageTests {
    private static let now = Timestamp(seconds: 1_795_250_000)

    private func summary(_ counters: RunCounters, status: Int32 = 0) -> RunSummary {
        RunSummary(
            counters: counters, startedAt: Timestamp(seconds: 1_795_239_436),
            elapsed: .milliseconds(4200), exitStatus: status, cacheDirectory: "/var/cache/images")
    }

    private func page(_ record: RunRecord) -> ReportPage { ReportPage(record, at: Self.now) }

    private func text(_ page: ReportPage) -> String { String(decoding: page.html(), as: UTF8.self) }

    private func downloaded(_ line: Int, url: String? = nil) throws -> EntryResult {
        let digest = try #require(
            ContentDigest(bytes: Array(repeating: UInt8(line % 251), count: 32)))
        let url = url ?? "https://example.org/\(line).jpg"
        var result = EntryResult(
            manifest: "m.txt", line: line, url: url, key: url, outcome: .downloaded,
            httpStatus: 200, attempts: 1, start: line, bytesReceived: 2000 + line,
            stored: StoredImage(
                digest: digest, format: .jpeg, widthInPixels: 640, heightInPixels: 427,
                size: ByteCount(1000 + line)))
        result.stages.transfer = .milliseconds(line)
        result.endedAfter = .milliseconds(10 * line)
        return result
    }

    private func failed(_ line: Int, url: String, message: String) -> EntryResult {
        var result = EntryResult(
            manifest: "m.txt", line: line, url: url, key: url, outcome: .failed,
            reason: .httpStatus, message: message, httpStatus: 404, attempts: 2)
        result.endedAfter = .milliseconds(line)
        return result
    }

    @Test func emptyRunHasAPage() async throws {
        var record = RunRecord()
        record.end(summary(RunCounters()))
        #expect(try await PageJudge.complaints(page(record).html()) == "")
        #expect(text(page(record)).contains("The lists have no entry: there was nothing to do."))
    }

    @Test func killedRunIsNamed() async throws {
        var record = RunRecord()
        record.note(try downloaded(1))
        #expect(try await PageJudge.complaints(page(record).html()) == "")
        let text = text(page(record))
        #expect(text.contains("The run was killed, or still runs: 1 of 1 entry is warm"))
        // Its lines name its hosts.
        #expect(text.contains("https://example.org</span>"))
    }

    @Test func verdictNamesTheMainCause() {
        var record = RunRecord()
        var counters = RunCounters()
        counters.entriesRead = 1000
        counters.count(.fresh, times: 962)
        counters.count(.failed, reason: .httpStatus, times: 38)
        for line in 1...38 {
            record.note(failed(line, url: "https://example.org/\(line)", message: "HTTP 404"))
        }
        record.end(summary(counters, status: 1))
        #expect(
            RunVerdict(record).sentence
                == "962 of 1,000 entries are warm; 38 failed, at https://example.org (HTTP 404).")
        #expect(RunVerdict(record).mood == .bad)
    }

    @Test(arguments: [
        (EndingSample.warm, "All 3 entries are warm: 2 downloaded, the rest fresh.", "good"),
        (
            .message, "The run could not be completed: a.db: disk full. 3 of 3 entries are warm.",
            "bad"
        ),
        (.signal, "The run was stopped by SIGTERM: 3 of 3 entries are warm.", "bad"),
        (.deadline, "The run ended at a limit (deadline): 3 of 3 entries are warm.", "warn"),
    ])
    func verdictNamesTheEnd(sample: EndingSample, sentence: String, mood: String) {
        var counters = RunCounters()
        counters.entriesRead = 3
        counters.count(.fresh)
        counters.count(.downloaded, times: 2)
        var summary = summary(counters)
        switch sample {
        case .warm: break
        case .message: summary.fatalMessage = "a.db: disk full"
        case .signal: summary.stoppedBySignal = 15
        case .deadline: summary.endedBy = .deadline
        }
        var record = RunRecord()
        record.end(summary)
        #expect(RunVerdict(record).sentence == sentence)
        #expect(RunVerdict(record).mood.rawValue == mood)
    }

    enum EndingSample: Sendable {
        case warm, message, signal, deadline
    }

    /// Hostile texts in every place that a list or server can fill.
    @Test func hostileTextStaysText() async throws {
        let texts = [
            "</style><script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "]]><!--",
            "\u{202E}gpj.exe\u{1B}[31m\u{0}\u{7F}\u{9F}", "'; DROP TABLE x; --", "&lt;&amp;#0;",
            "a\n</td></table>", "\u{FFFE}\u{FFFF}", "javascript:alert(1)",
        ]
        func names(_ texts: [String]) async throws -> [String] {
            var record = RunRecord()
            for (index, text) in texts.enumerated() {
                var result = try downloaded(index + 1, url: "https://example.org/\(text)")
                result.manifest = text
                record.note(result)
                record.note(failed(index + 1, url: "https://example.org/\(text)", message: text))
            }
            var counters = record.counters
            counters.requests = 2
            var summary = summary(counters, status: 1)
            summary.cacheDirectory = texts[0]
            summary.pauses = [HostPause(host: texts[1], start: .zero, end: .seconds(2))]
            record.end(summary)
            let page = page(record).html()
            #expect(try await PageJudge.complaints(page) == "")
            let html = String(decoding: page, as: UTF8.self)
            #expect(!html.contains("<script") && !html.contains("onerror=alert(1)>"))
            return html.matches(of: /<([a-z0-9]+)/).map { String($0.output.1) }
        }
        #expect(
            try await names(texts) == names(texts.indices.map { "plain\($0)" }),
            "hostile texts make other elements than plain ones")
    }

    /// Every place is as long as possible.
    @Test func largestPageStaysWithinItsLimit() async throws {
        var record = RunRecord()
        let long = String(repeating: "&\u{202E}", count: 5000)
        for line in 1...3000 {
            var result = try downloaded(line, url: "https://example.org/\(line)\(long)")
            result.manifest = "\(line % 40)\(long)"
            if line % 2 == 0, let image = result.stored {
                result.replaced = ReplacedImage(fetchedAt: Self.now, image: image, thumbHash: nil)
            }
            record.note(result)
            record.note(
                failed(line, url: "https://h\(line).example/\(long)", message: long))
        }
        var summary = summary(record.counters, status: 1)
        summary.pauses = (0..<100).map {
            HostPause(host: "\($0)\(long)", start: .seconds($0), end: .seconds($0 + 1))
        }
        summary.hosts = (0..<10).map {
            var pace = HostPace(host: "\($0)\(long)")
            (pace.version, pace.limit) = (.http2, .latency)
            (pace.requests, pace.responses, pace.concurrency, pace.perSecond) = (1, 1, 1, 1)
            return pace
        }
        record.end(summary)
        var page = page(record)
        for byte in 0..<255 {
            let digest = try #require(
                ContentDigest(bytes: Array(repeating: UInt8(byte), count: 32)))
            page.images.add(
                PageImage(Array(repeating: 0xFF, count: 30_000), isBlurred: false), for: digest)
        }
        let html = page.html()
        #expect(html.count <= ReportPage.mostBytes, "\(html.count)")
        #expect(html.count > 1_000_000, "the sample is not large")
        #expect(try await PageJudge.complaints(html) == "")
    }

    @Test func expiriesAreCountedByDay() {
        var forecast = ExpiryForecast(at: Self.now)
        for (day, count) in [(-1, 2), (0, 3), (29, 5), (30, 7), (1 << 40, 11)] as [(Int64, Int)] {
            forecast.note(day: Self.now.day + day, count: count)
        }
        forecast.note(day: .min, count: 1)
        #expect(forecast.expired == 2 && forecast.later == 7 + 11 + 1)
        #expect(forecast.byDay[0] == 3 && forecast.byDay[29] == 5)
        #expect(forecast.byDay.reduce(0, +) == 8)
    }

    @Test(
        arguments: [
            (
                FailureReason.httpStatus, 404,
                "prefetch failed list --host https://a.example --status 404 "
                    + "--since 2026-11-28T05:37:16Z --cache-dir c --urls"
            ),
            (
                .notAnImage, 200,
                "prefetch failed list --host https://a.example --reason not-an-image "
                    + "--since 2026-11-28T05:37:16Z --cache-dir c"
            ),
            (.dns, nil, "prefetch doctor --online --cache-dir c"),
            (
                .tooLarge, nil,
                "prefetch 'my list.txt' --retry-failed --cache-dir c --max-filesize 256MiB"
            ),
            (.invalidEntry, nil, "prefetch plan 'my list.txt'"),
        ] as [(FailureReason, Int?, String)])
    func remediesAreCommands(reason: FailureReason, status: Int?, command: String) throws {
        var record = RunRecord()
        record.note(
            EntryResult(
                manifest: "my list.txt", line: 1, url: "https://a.example/x", key: "k",
                outcome: .failed, reason: reason, message: "m", httpStatus: status, attempts: 1))
        let row = try #require(record.failureRows.first)
        let since = Timestamp(milliseconds: 1_795_844_236_789)
        #expect(since.description == "2026-11-28T05:37:16Z")
        let remedy = Remedy(
            row, lists: record.lists, place: " --cache-dir c", since: since, isPaceRefused: false)
        #expect(remedy.command == command)
    }

    @Test(arguments: [
        ("a.txt", "a.txt"), ("a b", "'a b'"), ("it's", "'it'\\''s'"), ("-rf", "./'-rf'"),
        ("$(x)", "'$(x)'"), ("", "''"),
    ])
    func wordsAreQuotedForTheShell(text: String, word: String) {
        #expect(Remedy.quoted(text) == word)
    }

    /// The judge finds the faults that a page must not have.
    @Test(arguments: [
        ("<h2>", "<h3>"), ("<caption>", "<b>"), ("scope=\"col\"", "lang=\"col\""),
        ("color-scheme: light dark;", "color-scheme: light;"), ("<p ", "<p onclick=\"x\" "),
        ("--muted: #59636e", "--muted: #b9c3ce"), ("lang=\"en\"", "lang=\"\""),
        ("</header>", "</header><script></script>"),
    ])
    func judgeFindsFaults(part: String, fault: String) async throws {
        var record = RunRecord()
        record.note(try downloaded(1))
        let text = text(page(record))
        let broken = text.replacing(part, with: fault, maxReplacements: 1)
        #expect(broken != text)
        #expect(try await PageJudge.complaints(Array(broken.utf8)) != "")
    }
}

extension ContentDigest {
    fileprivate init?(bytes: [UInt8]) {
        guard let digest = bytes.withUnsafeBytes({ ContentDigest(bytes: $0) }) else { return nil }
        self = digest
    }
}

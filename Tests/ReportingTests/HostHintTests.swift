import PrefetchModel
import Testing

@testable import Reporting

@Suite(.timeLimit(.minutes(15)))
struct HostHintTests {
    private static func pace(
        failures: [(FailureReason, Int?, Int)] = [], refusals: Int = 0, responses: Int = 200,
        limit: HostPace.Limit? = nil
    ) -> HostPace {
        var pace = HostPace(host: "https://example.org")
        (pace.version, pace.limit) = (.http2, limit)
        (pace.requests, pace.responses, pace.refusals) = (responses, responses, refusals)
        (pace.concurrency, pace.perSecond) = (8, 12.5)
        for (reason, status, count) in failures {
            for _ in 0..<count {
                pace.failures.note(HostFailures.Cause(reason, httpStatus: status))
            }
        }
        return pace
    }

    @Test(
        arguments: [
            (pace(failures: [(.httpStatus, 403, 8), (.httpStatus, 404, 2)]), "--user-agent"),
            (pace(failures: [(.httpStatus, 401, 3)]), "--user"),
            (pace(failures: [(.httpStatus, 429, 3)]), "--host-interval"),
            (pace(failures: [(.httpStatus, 503, 3)], responses: 20), "--host-rate"),
            (pace(failures: [(.httpStatus, 503, 3)]), "serves other images"),
            (pace(failures: [(.timeout, nil, 3)], responses: 0), "--connect-timeout"),
            (pace(failures: [(.dns, nil, 3)], responses: 0), "prefetch doctor"),
            (pace(refusals: 30), "--host-interval"),
            (pace(limit: .settings), "--host-concurrency"),
            (pace(limit: .codecs), "--effort"),
        ])
    func oneCauseHasOneHint(pace: HostPace, flag: String) throws {
        let hint = try #require(HostHint(pace))
        #expect(hint.text.contains(flag), "\(hint.text)")
        #expect(hint.isAboutTrouble == (pace.limit == nil))
    }

    @Test(
        arguments: [
            pace(), pace(failures: [(.httpStatus, 403, 2)]),
            pace(failures: [(.httpStatus, 403, 5), (.timeout, nil, 5)]),
            pace(failures: [(.httpStatus, 404, 50)]), pace(refusals: 5),
            pace(responses: 20, limit: .settings),
            // One image that the host cannot serve, tried five times.
            pace(failures: [(.httpStatus, 503, 1)], refusals: 5, responses: 33),
        ])
    func noCauseHasNoHint(pace: HostPace) {
        #expect(HostHint(pace) == nil)
    }

    @Test func summariesHaveTheHostsFigures() throws {
        var pace = HostHintTests.pace(failures: [(.timeout, nil, 4)], limit: .latency)
        pace.times = HostPace.TransferTimes(
            median: .milliseconds(40), percentile95: .milliseconds(2100))
        var summary = Samples.summary()
        summary.hosts = [pace]
        let text = SummaryText().render(summary)
        #expect(
            text.contains(
                "  https://example.org: 200 requests, p50 40 ms, p95 2.1 s, 4 failures, "
                    + "8 at once, 12.5/s, h2, limited by latency\n"), "\(text)")
        #expect(
            text.contains(
                "hint: https://example.org: 4 of 4 failures: timeout: the host is slow or does not "
                    + "respond; see --connect-timeout and --timeout\n"), "\(text)")
        let object = try #require(
            try Samples.objects(String(decoding: summary.json, as: UTF8.self)).first)
        let host = try #require((object["hosts"] as? [[String: Any]])?.first)
        #expect(host["requests"] as? Int == 200)
        #expect(host["failures"] as? Int == 4)
        #expect(host["p50_ms"] as? Double == 40)
        #expect(host["p95_ms"] as? Double == 2100)
        #expect((host["hint"] as? String)?.contains("--connect-timeout") == true)
    }

    /// The message of the group has the same advice.
    @Test func theTextDoesNotRepeatAdvice() {
        var text = SummaryText()
        for line in 1...4 {
            text.note(
                Samples.failed(
                    line: line, message: "HTTP 403: \(Advice.about(httpStatus: 403) ?? "")"))
        }
        var summary = Samples.summary()
        summary.hosts = [HostHintTests.pace(failures: [(.httpStatus, 403, 4)])]
        #expect(!text.render(summary).contains("hint: https://example.org"))
        summary.hosts = [HostHintTests.pace(limit: .settings)]
        #expect(!text.render(summary).contains("hint: https://example.org"))
    }
}

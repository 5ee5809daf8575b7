import TestSupport
import Testing

private func line(_ number: Int, _ outcome: String, reason: String = "null", start: String = "null")
    -> String
{
    """
    {"type":"result","manifest":"m","line":\(number),"url":"u","key":"k","outcome":"\(outcome)",\
    "reason":\(reason),"start":\(start)}

    """
}

private let summary = """
    {"type":"summary","schema_version":3,"entries":2,"outcomes":{"fresh":1,"failed":1,"derived":0},\
    "reasons":{"dns":1},"exit_status":1}

    """

@Suite(.timeLimit(.minutes(15)))
struct ReportTests {
    @Test func acceptsConsistentReport() throws {
        let report = try Report(
            text: line(2, "failed", reason: "\"dns\"", start: "1") + line(1, "fresh") + summary)
        #expect(report.verdicts == ["fresh", "failed/dns"])
        #expect(report.linesByStart == [2])
        #expect(report.summary["fresh"] == 1)
    }

    @Test(arguments: [
        "", summary, line(1, "fresh"),
        line(1, "fresh") + summary,
        line(1, "fresh") + line(2, "failed") + summary,
        line(1, "fresh") + line(1, "failed", reason: "\"dns\"") + summary,
        line(1, "fresh") + line(2, "failed", reason: "\"dns\"", start: "2") + summary,
        line(1, "fresh") + line(2, "failed", reason: "\"tls\"") + summary,
        summary + line(1, "fresh") + line(2, "failed", reason: "\"dns\""),
        line(1, "fresh") + "{\n" + summary,
    ])
    func rejectsInconsistentReports(text: String) {
        #expect(throws: Report.Invalid.self) { try Report(text: text) }
    }
}

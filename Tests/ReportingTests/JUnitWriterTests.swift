import Foundation
import PrefetchModel
import TestSupport
import Testing

@testable import Reporting

extension XMLDocument {
    /// Checks that both heads have the numbers of elements.
    fileprivate func checkCounts() {
        for head in ["testsuites", "testsuite"] {
            let attributes = all(head).first ?? [:]
            #expect(attributes["tests"] == "\(all("testcase").count)")
            #expect(attributes["failures"] == "\(all("failure").count)")
            #expect(attributes["errors"] == "\(all("error").count)")
        }
        #expect(all("testsuite").first?["skipped"] == "\(all("skipped").count)")
    }
}

@Suite(.timeLimit(.minutes(15)))
struct JUnitWriterTests {
    private func result(_ outcome: Outcome, line: Int = 1) -> EntryResult {
        var result = Samples.failed(line: line)
        result.outcome = outcome
        return result
    }

    private func summary(_ counts: [Outcome: Int]) -> RunSummary {
        var counters = RunCounters()
        for (outcome, count) in counts {
            counters.count(outcome, times: count)
            counters.entriesRead += count
        }
        var summary = Samples.summary()
        summary.counters = counters
        return summary
    }

    @Test func everyOutcomeHasItsElement() throws {
        try Samples.withTemporaryPath { path in
            var writer = try JUnitWriter(path: path, lists: ["m.txt"], ignoresKnown: false)
            for outcome in Outcome.allCases { writer.write(result(outcome)) }
            try writer.finish(
                summary(Dictionary(uniqueKeysWithValues: Outcome.allCases.map { ($0, 1) })))
            let document = try XMLDocument(path)
            document.checkCounts()
            let suite = try #require(document.all("testsuite").first)
            #expect(suite["name"] == "m.txt" && suite["time"] == "4.200")
            #expect(suite["timestamp"] == "2026-11-21T05:37:16")
            // A duplicate has none.
            #expect(suite["tests"] == "9" && suite["failures"] == "2" && suite["skipped"] == "2")
            #expect(document.all("failure").map { $0["type"] } == ["http-status", "http-status"])
            #expect(
                document.all("failure").map { $0["message"] } == [
                    "blacklisted: 404 Not Found", "404 Not Found",
                ])
            #expect(document.text.contains("m.txt:1: https://example.org/1.jpg: 404 Not Found"))
            let cases = document.all("testcase")
            #expect(cases.allSatisfy { $0["classname"] == "m.txt" })
            #expect(cases.allSatisfy { $0["name"] == "https://example.org/1.jpg" })
        }
    }

    @Test(arguments: HostileTexts.all)
    func hostileTextIsWellFormed(text: String) throws {
        try Samples.withTemporaryPath { path in
            var writer = try JUnitWriter(path: path, lists: [text], ignoresKnown: false)
            for reason in [FailureReason.invalidEntry, .httpStatus] {
                var result = Samples.failed(line: 1, manifest: text, reason: reason, message: text)
                result.url = text
                result.key = text
                writer.write(result)
            }
            var summary = summary([.failed: 2])
            summary.fatalMessage = text
            try writer.finish(summary)
            let document = try XMLDocument(path)
            document.checkCounts()
            #expect(document.all("testcase").count == 3)
        }
    }

    @Test func secretsAreMasked() throws {
        try Samples.withTemporaryPath { path in
            var writer = try JUnitWriter(path: path, lists: ["m.txt"], ignoresKnown: false)
            var result = Samples.failed(
                line: 1, message: "refused by https://u:HUSH@h/?sig=HUSH")
            result.url = "https://u:HUSH@example.org/a.jpg?sig=HUSH"
            writer.write(result)
            try writer.finish(summary([.failed: 1]))
            let text = try Samples.text(of: path)
            #expect(text.contains("example.org/a.jpg") && !text.contains("HUSH"))
        }
    }

    /// One case stands for the rest of each kind.
    @Test func casesAreLimited() throws {
        try Samples.withTemporaryPath { path in
            var writer = try JUnitWriter(path: path, lists: ["a", "b"], passing: 2, others: 3)
            #expect(writer.wantsResults(of: .fresh) && !writer.wantsResults(of: .duplicate))
            for line in 1...5 {
                for outcome in [Outcome.fresh, .failed, .cancelled] {
                    writer.write(result(outcome, line: line))
                }
            }
            #expect(!writer.wantsResults(of: .fresh) && !writer.wantsResults(of: .failed))
            try writer.finish(summary([.fresh: 1_000_000, .failed: 5, .cancelled: 5]))
            let document = try XMLDocument(path)
            document.checkCounts()
            #expect(document.all("testsuite").first?["name"] == "prefetch")
            #expect(
                document.all("testcase").suffix(3).map { $0["name"] } == [
                    "999998 more warm", "2 more failed", "2 more skipped",
                ])
            #expect(document.all("testcase").count == 2 + 3 + 3 + 3)
        }
    }

    @Test func olderFilesStayUntilTheEnd() throws {
        try Samples.withTemporaryPath { path in
            try Data("old".utf8).write(to: URL(filePath: path))
            do {
                var abandoned = try JUnitWriter(path: path, lists: ["m.txt"], ignoresKnown: false)
                abandoned.write(result(.failed))
            }
            #expect(try Samples.text(of: path) == "old")
            var writer = try JUnitWriter(path: path, lists: ["m.txt"], ignoresKnown: false)
            writer.write(result(.failed))
            #expect(try Samples.text(of: path) == "old")
            try writer.finish(summary([.failed: 1]))
            #expect(try XMLDocument(path).all("testcase").count == 1)
            let folder = URL(filePath: path).deletingLastPathComponent().path
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["out"])
        }
    }

    /// Results are wanted as long as they get a case, and warm lines are not used.
    @Test func reporterWantsResultsWhileTheyGetACase() throws {
        try Samples.withTemporaryPath { path in
            var configuration = RunReporter.Settings()
            configuration.verbosity = .quiet
            let reporter = RunReporter(
                configuration, report: try ReportWriter(path: path + ".report"),
                junit: try JUnitWriter(path: path, lists: ["m"], passing: 1, others: 1))
            #expect(reporter.warmLineWriter == nil)
            let bare = RunReporter(
                configuration,
                junit: try JUnitWriter(path: path, lists: ["m"], passing: 1, others: 1))
            #expect(
                Outcome.allCases.filter { !bare.wantsResults(of: $0) } == [.duplicate])
            try bare.entryFinished(result(.fresh))
            #expect(!bare.wantsResults(of: .downloaded) && bare.wantsResults(of: .failed))
            #expect(reporter.wantsResults(of: .downloaded))
        }
    }
}

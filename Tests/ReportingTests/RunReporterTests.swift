import FileOutput
import Glibc
import PrefetchModel
import Synchronization
import Testing
import Threading

@testable import Reporting

@Suite(.timeLimit(.minutes(15)))
struct RunReporterTests {
    private func configuration(_ output: Int32, _ error: Int32) -> RunReporter.Settings {
        var configuration = RunReporter.Settings()
        configuration.standardOutput = output
        configuration.standardError = error
        return configuration
    }

    @Test func wantsOnlyWhatItShows() throws {
        var configuration = RunReporter.Settings()
        let normal = RunReporter(configuration)
        #expect(Outcome.allCases.filter(normal.wantsResults) == [.blacklisted, .excluded, .failed])
        configuration.verbosity = .quiet
        #expect(
            Outcome.allCases.filter(RunReporter(configuration).wantsResults) == [
                .excluded, .failed,
            ])
        configuration.verbosity = .normal
        try Samples.withTemporaryPath { path in
            let reporting = RunReporter(configuration, report: try ReportWriter(path: path))
            #expect(Outcome.allCases.filter(reporting.wantsResults) == Outcome.allCases)
        }
        configuration.verbosity = .verbose
        #expect(
            Outcome.allCases.filter(RunReporter(configuration).wantsResults) == Outcome.allCases)
    }

    @Test func keepsStandardOutputForData() throws {
        let captured = try Samples.captured { output, error in
            let reporter = RunReporter(configuration(output, error))
            try reporter.entryFinished(Samples.failed(line: 1))
            try reporter.finish(Samples.summary(), style: .text)
        }
        #expect(captured.output.isEmpty)
        #expect(captured.error.hasPrefix("prefetch: 3000 entries: "))
        #expect(captured.error.contains("  m.txt:1: https://example.org/1.jpg: http-status"))
    }

    @Test func writesTheSameSummaryAsJSON() throws {
        try Samples.withTemporaryPath { path in
            let captured = try Samples.captured { output, error in
                let reporter = RunReporter(
                    configuration(output, error), report: try ReportWriter(path: path))
                try reporter.entryFinished(Samples.downloaded())
                try reporter.finish(Samples.summary(), style: .json)
            }
            #expect(captured.error.isEmpty)
            let report = try Samples.text(of: path).split(separator: "\n")
            #expect(report.count == 2)
            #expect(captured.output == "\(report[1])\n")
        }
    }

    @Test(arguments: [(Int32(0), true), (1, false)])
    func quietSpeaksOnlyOfFailure(exitStatus: Int32, isEmpty: Bool) throws {
        let captured = try Samples.captured { output, error in
            var configuration = configuration(output, error)
            configuration.verbosity = .quiet
            configuration.progress = .line { 80 }
            let reporter = RunReporter(configuration)
            reporter.progressed(
                RunProgress(
                    counters: RunCounters(), inFlight: 0, isTotalKnown: true, elapsed: .zero))
            try reporter.finish(Samples.summary(exitStatus: exitStatus), style: .text)
        }
        #expect(captured.error.isEmpty == isEmpty)
        #expect(!captured.error.contains("\r"))
    }

    @Test func styleNoneWritesNothing() throws {
        let captured = try Samples.captured { output, error in
            try RunReporter(configuration(output, error)).finish(Samples.summary(), style: .none)
        }
        #expect(captured == ("", ""))
    }

    @Test func verboseHasALineForEachEntry() throws {
        let captured = try Samples.captured { output, error in
            var configuration = configuration(output, error)
            configuration.verbosity = .verbose
            let reporter = RunReporter(configuration)
            try reporter.entryFinished(Samples.downloaded())
            try reporter.entryFinished(Samples.failed(line: 3))
        }
        #expect(
            captured.error == """
                prefetch: m.txt:12: https://example.org/a.jpg?size=3: downloaded: jpeg 640x427, \
                79.3 KiB received, 68.5 KiB stored
                prefetch: m.txt:3: https://example.org/3.jpg: failed: http-status: 404 Not Found

                """)
    }

    /// Lines every half minute, and the line that SIGUSR1 requests.
    @Test func ratesCoverTheLastSecondsHoweverRarelyShown() throws {
        let captured = try Samples.captured { output, error in
            var configuration = configuration(output, error)
            configuration.progress = .lines(from: .seconds(60))
            let reporter = RunReporter(configuration)
            for tenth in 1...600 {
                var counters = RunCounters()
                counters.entriesRead = 10_000
                // A hundred a second for half a minute, and then ten.
                counters.count(.fresh, times: min(tenth, 300) * 10 + max(0, tenth - 300))
                if tenth == 450 { reporter.showStatus() }
                reporter.progressed(
                    RunProgress(
                        counters: counters, inFlight: 1, isTotalKnown: true,
                        elapsed: .milliseconds(100 * tenth)))
            }
        }
        let rates = captured.error.split(separator: "\n").map { line in
            line.split(separator: ", ").first { $0.hasSuffix("/s") }
        }
        #expect(rates.count == 2)
        #expect(rates.allSatisfy { $0?.hasPrefix("10.") == true }, "\(captured.error)")
    }

    @Test func messagesStandAboveTheProgressLine() throws {
        let clock = Monitor(ContinuousClock.now)
        let captured = try Samples.captured { output, error in
            var configuration = configuration(output, error)
            configuration.progress = .line { 40 }
            let start = clock.withLock { $0 }
            let calls = Atomic(0)
            configuration.now = {
                start.advanced(
                    by: .milliseconds(60 * calls.add(1, ordering: .relaxed).oldValue))
            }
            let reporter = RunReporter(configuration)
            let progress = RunProgress(
                counters: RunCounters(), inFlight: 1, isTotalKnown: false, elapsed: .seconds(1))
            for _ in 0..<3 { reporter.progressed(progress) }
            reporter.message("https://u:SECRET@h/: \u{1B}[2J")
            try reporter.finish(Samples.summary(), style: .none)
        }
        let line = "\rprefetch: 0 done, 0.00/s, 1 in flight\u{1B}[K"
        #expect(
            captured.error
                == line + line + "\r\u{1B}[Kprefetch: https://***@h/: \\u{1B}[2J\n" + line
                + "\r\u{1B}[K")
    }

    @Test(.enabled(if: isFullDeviceThere)) func aFullReportBecomesExitStatus2() throws {
        let captured = try Samples.captured { output, error in
            let reporter = RunReporter(
                configuration(output, error), report: try ReportWriter(path: "/dev/full"))
            let failure = #expect(throws: OutputError.self) {
                try reporter.finish(Samples.summary(exitStatus: 0), style: .json)
            }
            #expect(
                failure == .system(operation: "write", subject: "/dev/full", code: ENOSPC))
        }
        let object = try #require(try Samples.objects(captured.output).first)
        #expect(object["exit_status"] as? Int == 2)
        #expect(object["message"] as? String == "/dev/full: cannot write: No space left on device")
    }

    @Test(arguments: [1, 1000])
    func continuesWithoutAReportAfterAClosedPipe(entries: Int) throws {
        try Samples.withClosedPipe { pipe in
            let captured = try Samples.captured { output, error in
                let reporter = RunReporter(
                    configuration(output, error),
                    report: ReportWriter(OutputFile(borrowing: pipe, name: "standard output")))
                for _ in 0..<entries { try reporter.entryFinished(Samples.downloaded()) }
                try reporter.finish(Samples.summary(), style: .text)
            }
            #expect(captured.output.isEmpty)
            let lines = captured.error.split(separator: "\n")
            let said =
                "prefetch: standard output: the reader has closed the report; continuing without it"
            #expect(lines.filter { $0 == said }.count == 1)
            #expect(lines.first.map(String.init) == said)
            #expect(lines.count > 1)
            let json = try Samples.captured { _, error in
                #expect(throws: OutputError.closedPipe(subject: "standard output")) {
                    try RunReporter(configuration(pipe, error))
                        .finish(Samples.summary(), style: .json)
                }
            }
            #expect(json.error.isEmpty)
        }
    }

    @Test func ignoresAFailureOfStandardError() throws {
        try Samples.withClosedPipe { pipe in
            _ = try Samples.captured { output, _ in
                let reporter = RunReporter(configuration(output, pipe))
                reporter.message("one")
                reporter.message("two")
                try reporter.finish(Samples.summary(), style: .text)
                #expect(reporter.diagnosticsError == .closedPipe(subject: "standard error"))
            }
        }
    }

    @Test func hidesSecretsInVerboseLines() throws {
        let captured = try Samples.captured { output, error in
            var configuration = configuration(output, error)
            configuration.verbosity = .verbose
            let reporter = RunReporter(configuration)
            var result = Samples.failed(line: 1, message: "see https://u:SECRET@h/?sig=SECRET.")
            result.url = "https://u:SECRET@h/?sig=SECRET"
            try reporter.entryFinished(result)
            try reporter.finish(Samples.summary(), style: .text)
        }
        #expect(captured.error.contains("https://***@h/?sig=***"))
        #expect(!captured.error.contains("SECRET"))
    }
}

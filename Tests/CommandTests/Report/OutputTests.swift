import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15)))
struct OutputTests {
    @Test func printsOnlyTextSummaryToStandardError() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(3)
            try await withWorkspace { workspace in
                let run = try await workspace.prefetch(urls)
                #expect(run.result.output.isEmpty, "\(run.result)")
                #expect(run.result.error.contains("downloaded"), "\(run.result)")
                #expect(!run.result.error.contains("\r"))
                #expect(!run.result.error.contains("\u{1B}"))
            }
        }
    }

    @Test func printsJSONSummaryToStandardOutput() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(3)
            try await withWorkspace { workspace in
                let run = try await workspace.prefetch(urls, "--summary", "json")
                #expect(run.result.outputLines.count == 1, "\(run.result)")
                let printed = try Report.Summary(json: run.result.output)
                #expect(printed.outcomes == ["downloaded": 3])
                #expect(printed.exitStatus == 0)
                #expect(run.result.error.isEmpty, "\(run.result)")
                let report = try String(
                    contentsOfFile: "\(workspace.folder)/report-1.jsonl", encoding: .utf8)
                #expect(report.hasSuffix("\n" + run.result.output))
            }
        }
    }

    /// More bad lines than a report buffers, before the entries to fetch.
    @Test(arguments: ["json", "text"])
    func failsIfReportCannotBeWritten(style: String) async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(40)
            try await withWorkspace { workspace in
                try workspace.manifest(Array(repeating: "nonsense", count: 2000) + urls)
                let result = try await workspace.run(
                    "manifest.txt", "--report", "/dev/full", "--summary", style)
                #expect(result.status == 2, "\(result)")
                let message = "prefetch: /dev/full: cannot write: No space left on device"
                #expect(result.errorLines.count { $0 == message } == 1, "\(result)")
                if style == "json" {
                    let summary = try Report.Summary(json: result.output)
                    #expect(summary.outcomes.values.reduce(0, +) == 2040, "\(result)")
                }
                try await workspace.judge()
            }
        }
    }

    /// `--report - | head`: the run completes its work.
    @Test(arguments: [true, false])
    func continuesAfterReportReaderCloses(isQuiet: Bool) async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(40)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                // More than a report buffers, before the entries to fetch.
                try workspace.manifest(Array(repeating: "nonsense", count: 2000) + urls)
                var command = workspace.command([
                    "-o", "pipefail", "-c", #""$@" | head -n 1"#, "bash", Workspace.binary,
                    "manifest.txt", "--report", "-", "--max-failures", "2000",
                ])
                command.executable = "/bin/bash"
                if isQuiet { command.arguments.append("-q") }
                let result = try await command.run()
                #expect(result.status == 0, "\(result)")
                #expect(result.outputLines.count == 1)
                let said =
                    "standard output: the reader has closed the report; continuing without it"
                #expect(result.error.contains(said) == !isQuiet, "\(result)")
                #expect(try await workspace.judge() == urls.count)
            }
        }
    }

    @Test func refusesToOverwriteManifestWithReport() async throws {
        try await withWorkspace(without: [.retries, .probes]) { workspace in
            try workspace.manifest(["http://127.0.0.1:1/a.png"])
            let result = try await workspace.run("manifest.txt", "--report", "./manifest.txt")
            #expect(result.status == 64, "\(result)")
            let text = try String(
                contentsOfFile: "\(workspace.folder)/manifest.txt", encoding: .utf8)
            #expect(text == "http://127.0.0.1:1/a.png\n")
        }
    }

    @Test func printsNothingWithoutSummary() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(3)
            try await withWorkspace { workspace in
                let run = try await workspace.prefetch(urls, "--summary", "none")
                #expect(run.result.output.isEmpty && run.result.error.isEmpty, "\(run.result)")
            }
        }
    }

    @Test func showsProgressOnOneTerminalLine() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            let urls = origin.serveImages(6, gate: gate)
            try await withWorkspace(without: [.stalls]) { workspace in
                var command = try workspace.prefetchCommand(urls, ["-j", "2"])
                command.hasTerminal = true
                let running = try command.start()
                try await origin.wait(for: "two held") { $0.inFlight == 2 }
                gate.release(2)
                // The terminal expands each line feed.
                try await eventually("a progress line with two done") {
                    let text = running.errorSoFar.replacing("\r\n", with: "\n")
                    return (text.contains("\r") || text.contains("\u{1B}[")) && text.contains("2/6")
                }
                gate.open()
                let run = try workspace.finish(await running.wait(), entries: 6)
                #expect(run.result.status == 0 && run.result.output.isEmpty, "\(run.result)")
                #expect(run.result.error.contains("downloaded"), "\(run.result)")
            }
        }
    }

    @Test func masksSecretsInReportAndLog() async throws {
        try await withOrigin { origin in
            origin.serve("/a.png", .image(Fixtures.png()))
            let secrets = ["hunter2", "opensesame"]
            let host = "127.0.0.1:\(origin.port)"
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.prefetch(
                    [
                        "http://user:hunter2@\(host)/a.png?sig=opensesame",
                        "http://user:hunter2@\(host)/missing.png?sig=opensesame",
                    ], "-v")
                let report = try String(
                    contentsOfFile: "\(workspace.folder)/report-1.jsonl", encoding: .utf8)
                for secret in secrets {
                    #expect(!run.result.error.contains(secret), "\(run.result)")
                    #expect(!report.contains(secret))
                }
            }
        }
    }

    @Test func printsHelpAndVersionToStandardOutput() async throws {
        try await withWorkspace { workspace in
            for option in ["--help", "--version"] {
                let result = try await workspace.run(option)
                #expect(result.status == 0 && !result.output.isEmpty, "\(result)")
                #expect(result.error.isEmpty, "\(result)")
            }
        }
    }
}

import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15)))
struct OutputTests {
    @Test func printsTheSummaryInOnePlace() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(3)
            let host = "127.0.0.1:\(origin.port)"
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let text = try await workspace.prefetch(urls)
                #expect(text.result.output.isEmpty, "\(text.result)")
                #expect(text.result.error.contains("downloaded"), "\(text.result)")
                #expect(!text.result.error.contains("\r"))
                #expect(!text.result.error.contains("\u{1B}"))

                let json = try await workspace.prefetch(urls, "--summary", "json")
                #expect(json.result.outputLines.count == 1, "\(json.result)")
                let printed = try Report.Summary(json: json.result.output)
                #expect(printed.outcomes == ["fresh": 3])
                #expect(printed.exitStatus == 0)
                #expect(json.result.error.isEmpty, "\(json.result)")
                let report = try String(
                    contentsOfFile: "\(workspace.folder)/report-2.jsonl", encoding: .utf8)
                #expect(report.hasSuffix("\n" + json.result.output))

                let none = try await workspace.prefetch(urls, "--summary", "none")
                #expect(none.result.output.isEmpty && none.result.error.isEmpty, "\(none.result)")

                let secret = try await workspace.prefetch(
                    ["image/0.png", "missing.png"].map {
                        "http://user:hunter2@\(host)/\($0)?sig=opensesame"
                    }, "-v")
                let masked = try String(
                    contentsOfFile: "\(workspace.folder)/report-4.jsonl", encoding: .utf8)
                for word in ["hunter2", "opensesame"] {
                    #expect(!secret.result.error.contains(word), "\(secret.result)")
                    #expect(!masked.contains(word))
                }
            }
        }
    }

    /// Files that are replaced at the end of a run.
    @Test(arguments: ["--junit", "--html", "--prometheus", "--report"])
    func namesFilesThatCannotBeReplaced(flag: String) async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(1)
            try await withWorkspace { workspace in
                let manifest = try workspace.manifest(urls)
                // A device cannot be replaced, but a report may be written to it.
                let device = flag == "--report" ? [] : ["/dev/null"]
                for path in ["missing/a"] + device {
                    let result = try await workspace.run(manifest, flag, path)
                    #expect(result.status == 2 && result.error.contains(path), "\(result)")
                    #expect(flag == "--report" || result.error.contains(flag), "\(result)")
                }
                for path in [manifest, "./" + manifest] {
                    let result = try await workspace.run(manifest, flag, path)
                    #expect(result.status == 64 && result.error.contains(flag), "\(result)")
                }
                #expect(origin.requests.isEmpty)
                let path = "\(workspace.folder)/\(manifest)"
                #expect(try workspace.bytes(of: path) == Array("\(urls[0])\n".utf8))
                guard flag != "--report" else { return }
                // Files of a link are written behind it.
                try FileManager.default.createSymbolicLink(
                    atPath: workspace.folder + "/link",
                    withDestinationPath: workspace.folder + "/target")
                _ = try workspace.write([], to: "target")
                let link = try await workspace.run(manifest, flag, "link")
                #expect(link.status == 0, "\(link)")
                let target = try String(
                    contentsOfFile: workspace.folder + "/target", encoding: .utf8)
                #expect(target.contains(flag == "--prometheus" ? "\nprefetch_" : "<"), "\(target)")
                try workspace.write(
                    Array("\(flag.dropFirst(2)) = \"a\"\n".utf8), to: "prefetch.toml")
                let refused = try await workspace.run(manifest)
                #expect(refused.status == 64, "\(refused)")
                #expect(refused.error.contains(flag.dropFirst(2)), "\(refused)")
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
}

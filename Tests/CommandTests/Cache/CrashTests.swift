import Foundation
import TestSupport
import Testing

/// Images that crashed a decoder, in later runs.
@Suite(.timeLimit(.minutes(15)), .enabled(if: !Sanitizer.isActive, "a sanitizer is loaded first"))
struct CrashTests {
    /// The marks of ``FaultyJPEG``, each with the signal that it causes.
    private static let crashSignals: [(mark: String, signal: Int32)] = [
        ("abort", SIGABRT), ("segment", SIGSEGV),
    ]

    /// Runs the command with the faulty decoder preloaded.
    static func faulty(_ command: Command) -> Command {
        var command = command
        command.environment["LD_PRELOAD"] = Workspace.product("libFaultyJPEG.so")
        return command
    }

    static func crashes(_ workspace: Workspace) -> String? {
        try? String(contentsOfFile: workspace.cache + "/crashes", encoding: .utf8)
    }

    @Test(arguments: crashSignals)
    func laterRunsSkipImagesThatCrashedDecoders(mark: String, signal: Int32) async throws {
        let bytes = try Fixtures.jpegForFaultyDecoder(mark)
        try await withOrigin { origin in
            origin.serve("/bad.jpg", .picture(bytes))
            let bad = origin.url("/bad.jpg")
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let crashed = try await workspace.finish(
                    CrashTests.faulty(workspace.prefetchCommand([bad])).run(), entries: 1)
                #expect(crashed.report.verdicts == ["failed/unsupported-image"])
                let noted = try #require(CrashTests.crashes(workspace))
                #expect(noted.hasSuffix(" \(signal)\n"))
                #expect(noted.split(separator: "\n").count == 1)

                // Other URLs with the same bytes are skipped, also by a decoder without the fault.
                origin.serve("/same.jpg", .picture(bytes))
                let same = try await workspace.prefetch([origin.url("/same.jpg")])
                #expect(same.report.verdicts == ["failed/unsupported-image"], "\(same.result)")
                #expect(same.report.entries.first?.message?.contains("by signal \(signal)") == true)

                // Retried on request.
                let repaired = try await workspace.prefetch([bad], "--retry-failed")
                #expect(repaired.result.status == 0, "\(repaired.result)")
                #expect(CrashTests.crashes(workspace) == nil)
                try await workspace.judge(sources: [bad: bytes])
            }
        }
    }

    /// Without workers, a crash ends the run, and nothing that was stored is lost.
    @Test func crashWithoutWorkersEndsRun() async throws {
        let bytes = try Fixtures.jpegForFaultyDecoder("abort")
        try await withOrigin { origin in
            origin.serve("/bad.jpg", .picture(bytes))
            let pictures = origin.serveImages(3)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let first = try await workspace.prefetch(pictures)
                #expect(first.result.status == 0, "\(first.result)")
                let dead = try await CrashTests.faulty(
                    workspace.prefetchCommand(
                        pictures + [origin.url("/bad.jpg")], ["--sandbox", "off"])
                ).run()
                #expect(dead.signal == SIGABRT, "\(dead)")
                let next = try await workspace.prefetch(pictures, "--sandbox", "off")
                #expect(next.result.status == 0, "\(next.result)")
                #expect(try await workspace.judge() == 3)
            }
        }
    }

    @Test(arguments: [SIGSEGV, SIGABRT])
    func externalSignalRecordsNoCrash(signal: Int32) async throws {
        try await withOrigin { origin in
            let gate = Gate()
            let lines = origin.serveImages(2, gate: gate)
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let running = try workspace.prefetchCommand(lines).start()
                try await origin.wait(for: "one held") { $0.inFlight > 0 }
                kill(running.process, signal)
                let result = await running.wait()
                gate.open()
                #expect(result.signal == signal, "\(result)")
                #expect(CrashTests.crashes(workspace) == nil)
            }
        }
    }

    @Test func dropsOldCrashRecordsAndRefusesOtherFiles() async throws {
        let bytes = try Fixtures.file("baseline.jpg")
        try await withOrigin { origin in
            origin.serve("/a.jpg", .picture(bytes, ("Cache-Control", "max-age=3600")))
            let url = origin.url("/a.jpg")
            try await withWorkspace { workspace in
                let first = try await workspace.prefetch([url], "--encode", "original")
                let digest = try #require(first.report.entries.first?.sha256)
                let other = String(repeating: "ab", count: 32)
                let now = Int(Date.now.timeIntervalSince1970)
                let kept = "\(other) \(now - 86400) 11\n"
                let text = "\(digest) \(now - 31 * 86400) 6\n\(digest)\nnonsense\n" + kept
                try Data(text.utf8).write(to: URL(filePath: workspace.cache + "/crashes"))
                let run = try await workspace.prefetch([url])
                #expect(run.report.verdicts == ["derived"], "\(run.result)")
                #expect(CrashTests.crashes(workspace) == kept)

                let path = workspace.cache + "/crashes"
                try FileManager.default.removeItem(atPath: path)
                try FileManager.default.createSymbolicLink(
                    atPath: path, withDestinationPath: "/dev/zero")
                let lines = [url] + origin.serveImages(1)
                let link = try await workspace.prefetch(lines, "--retry", "0")
                #expect(link.result.status == 2, "\(link.result)")
                #expect(link.result.error.contains("crashes: is not a regular file"))
                try FileManager.default.removeItem(atPath: path)
            }
        }
    }
}

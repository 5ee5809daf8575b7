import Foundation
import TestSupport
import Testing

/// The samples for array jobs run on their engines. A script says so if an engine is missing.
@Suite(.timeLimit(.minutes(15)))
struct ScaleSampleTests {
    @Test(arguments: ["scale/check-samples", "scale/local", "scale/slurm"])
    func scriptsRun(_ script: String) async throws {
        try await withWorkspace { workspace in
            let tests = URL(filePath: scaleScript("")).deletingLastPathComponent()
                .deletingLastPathComponent()
            var command = workspace.command([])
            command.executable = tests.appending(path: script).path
            command.environment["PREFETCH_BINARY"] = Workspace.binary
            command.environment["PATH"] = "/usr/local/sbin:/usr/sbin:/usr/local/bin:/usr/bin:/bin"
            command.timeLimit = .seconds(600)
            let result = try await command.run()
            #expect(result.status == 0, "\(result)")
            #expect(
                (result.output + result.error).contains { !$0.isWhitespace }, "it says something")
        }
    }
}

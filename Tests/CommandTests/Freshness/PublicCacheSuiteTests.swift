import Foundation
import TestSupport
import Testing

/// In the parent of the shared data's folder.
private enum Player {
    static let path = SharedData.folder?.deletingLastPathComponent()
        .appending(path: "tools/run_cache_tests.py").path

    static var isAvailable: Bool {
        path.map(FileManager.default.fileExists(atPath:)) ?? false
    }
}

/// The cases of http-tests/cache-tests for a private client cache, played by a separate program:
/// it is origin and judge, and one step of a case is one run.
@Suite(
    .timeLimit(.minutes(15)),
    .enabled(if: Player.isAvailable, "the shared data is not there"))
struct PublicCacheSuiteTests {
    /// The cases depend on time: a copy that is fresh for some seconds has to be requested within
    /// them. On a busy machine one may be too late, and is repeated alone, up to five times; a
    /// real fault fails every time.
    @Test func everyRequiredAndOptimalCasePasses() async throws {
        try await withWorkspace(without: [.retries, .probes]) { workspace in
            let result = try await play(in: workspace)
            #expect(result.status == 0, "\(result)")
            // "Required" can be passed by never caching, so only both numbers together mean
            // anything.
            for (kind, count) in [("required", 27), ("optimal", 15)] {
                let total = try #require(
                    result.outputLines.first { $0.hasPrefix("\(kind): ") },
                    "\(result)")
                #expect(total.contains(" of \(count) pass"), "\(result)")
                for line in result.outputLines
                where line.hasPrefix("\(kind)\t") {
                    let name = try #require(line.split(separator: "\t").dropFirst().first)
                    var again = result
                    for _ in 0..<5 where !again.output.contains("\(kind): 1 of 1 pass") {
                        again = try await play(in: workspace, "--only", String(name))
                    }
                    #expect(again.output.contains("\(kind): 1 of 1 pass"), "\(line)\n\(again)")
                }
            }
        }
    }

    private func play(in workspace: Workspace, _ options: String...) async throws -> CommandResult {
        let player = try #require(Player.path)
        let definitions = try #require(SharedData.folder).appending(path: "http").path
        let command = Command(
            executable: "/usr/bin/python3",
            arguments: [
                "-B", player, definitions + "/cache-tests-shared.json",
                definitions + "/cache-tests-shared.tsv", "--verbose", "--jobs", "8", "--cmd",
                "'\(Workspace.binary)' {manifest} --cache-dir {dir} --quiet",
            ] + options,
            environment: workspace.environment, folder: workspace.folder)
        return try await command.run()
    }
}

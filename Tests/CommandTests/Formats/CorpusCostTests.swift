import Foundation
import TestSupport
import Testing

/// Limits of the cost of the shared images; a sanitizer takes several times as much.
@Suite(
    .timeLimit(.minutes(15)), .enabled(if: SharedData.isAvailable, "the shared data is not there"),
    .enabled(if: !Sanitizer.isActive, "costs are not measured under a sanitizer"))
struct CorpusCostTests {
    private static let ways = ["same", "jpeg", "png", "original", "same --effort small"]

    private static func options(_ way: String) -> [String] {
        ["-j", "1", "--encode"] + way.split(separator: " ").map(String.init)
    }

    /// On one processor, where one image is in work at a time. Their time,
    /// `CorpusWayTests` measures.
    @Test(arguments: ways)
    func noFileTakes200Megabytes(way: String) async throws {
        let files = try Corpus.files().sorted { $0.pixels > $1.pixels }.prefix(16)
        try await withOrigin { origin in
            try await withWorkspace(without: [.retries, .probes], measuresMemory: true) {
                workspace in
                let command = try workspace.prefetchCommand(
                    files, from: origin, CorpusCostTests.options(way))
                let run = try await workspace.finish(
                    CorpusCostTests.onOneProcessor(command).run(), entries: files.count)
                #expect(try #require(run.result.peakMemoryInBytes) < 200_000_000, "\(run.result)")
                try workspace.removeCache()
            }
        }
    }

    private static func onOneProcessor(_ command: Command) -> Command {
        // The first one that the tests may use.
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let number = status.firstMatch(of: /Cpus_allowed_list:\s*(\d+)/)?.output.1 ?? "0"
        var command = command
        command.arguments =
            ["--cpu-list", String(number), command.executable] + command.arguments
        command.executable = "/usr/bin/taskset"
        return command
    }

    /// The report has no times of refused files, so all are measured together.
    @Test func refusingTakesNeitherTimeNorMemory() async throws {
        let files = try Corpus.files(.refused)
        try await withOrigin { origin in
            try await withWorkspace(without: [.retries, .probes], measuresMemory: true) {
                workspace in
                let (run, _) = try await workspace.prefetch(files, from: origin, ["-j", "1"])
                #expect(run.result.processorTime < .seconds(5))
                #expect(try #require(run.result.peakMemoryInBytes) < 200_000_000)
            }
        }
    }

    @Test func aBombTakesHalfASecondAnd50MegabytesAtMost() async throws {
        let bombs = try Corpus.files().filter { $0.path.hasPrefix("bombs/") }
        #expect(bombs.count > 4)
        try await withOrigin { origin in
            try await withWorkspace(without: [.retries, .probes], measuresMemory: true) {
                workspace in
                let plain = try await workspace.prefetch(origin.serveImages(1)).result
                for bomb in bombs {
                    let (run, _) = try await workspace.prefetch(
                        [bomb], from: origin, ["-j", "1"])
                    let name = "\(bomb)"
                    #expect(
                        run.result.processorTime < plain.processorTime + .milliseconds(500),
                        "\(name)")
                    #expect(
                        try #require(run.result.peakMemoryInBytes)
                            < #require(plain.peakMemoryInBytes) + 50_000_000,
                        "\(name)")
                }
                try workspace.removeCache()
            }
        }
    }
}

import Foundation
import TestSupport
import Testing

/// Samples of the cases that `Scripts/torture/run` runs by the thousand.
@Suite(
    .timeLimit(.minutes(20)),
    .enabled(if: !Sanitizer.isActive, "the script preloads libraries and kills by the clock"))
struct TortureTests {
    private static let seed = String(UInt32.random(in: 0...999_999))

    private func torture(_ arguments: [String]) async throws {
        let script = SourceTree.root.appending(path: "Scripts/torture/run")
        try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
            var command = workspace.command(["-B", script.path] + arguments)
            command.executable = "/usr/bin/python3"
            command.environment["PREFETCH_BINARY"] = Workspace.binary
            command.timeLimit = .seconds(600)
            let result = try await command.run()
            #expect(result.status == 0, "\(arguments): \(result)")
        }
    }

    /// Every command, again and again, in each of the script's surroundings: none dies while it
    /// ends.
    @Test func everyCommandEndsWithItsStatus() async throws {
        try await torture(["exits", "--runs", "40", "--others", "4"])
    }

    @Test(
        .enabled(if: ProcessLimitTests.allowsTracing, "tracing is not allowed"),
        arguments: ["first run", "prune", "remove"])
    func aSystemCallThatFailsCostsNothingButItsCommand(command: String) async throws {
        try await torture([
            "syscalls", "--of", command, "--sample", "20", "--seed", TortureTests.seed,
        ])
    }

    @Test(
        .enabled(if: ProcessLimitTests.allowsTracing, "tracing is not allowed"),
        arguments: [
            "run", "run --max-size", "run --prune", "prune", "remove", "put", "verify --repair",
            "chmod", "snapshot", "salvage",
        ])
    func aKillAtASystemCallCostsNothing(command: String) async throws {
        try await torture([
            "syscalls", "--kill", "--of", command, "--sample", "8", "--seed", TortureTests.seed,
        ])
    }

    /// Between the rows and the files, and while two databases change places: all of these moments.
    @Test(
        .enabled(if: ProcessLimitTests.allowsTracing, "tracing is not allowed"),
        arguments: ["verify --repair", "salvage"])
    func noKillBetweenTwoFilesCostsAnything(command: String) async throws {
        try await torture([
            "syscalls", "--kill", "--of", command, "--call", "unlinkat", "--call", "renameat",
            "--call", "linkat",
        ])
    }

    /// Commands that write files or rows and remove no image; some of them each time.
    @Test(
        .enabled(if: ProcessLimitTests.allowsTracing, "tracing is not allowed"),
        arguments: [
            "attr", "config init", "export", "export --update", "failed clear", "failed rm",
            "gallery", "hosts clear", "import", "merge", "placeholders", "plan", "pull", "report",
            "run --sink",
        ].shuffled().prefix(3))
    func noFaultOfACommandThatWritesCostsAFile(command: String) async throws {
        let mode = Bool.random() ? ["--kill"] : []
        try await torture(
            ["syscalls", "--of", command, "--sample", "5", "--seed", TortureTests.seed] + mode)
    }

    /// Also with lists that are read in part, which cost no image.
    @Test func killsCostNothing() async throws {
        try await torture(["kills", "--kills", "130", "--small", "--seed", TortureTests.seed])
    }

    @Test func pairsOfCommandsGetOnWithEachOther() async throws {
        try await torture(["pairs", "--sample", "16", "--seed", TortureTests.seed])
    }

    @Test func commandsOverOneCacheGetOnWithEachOther() async throws {
        try await torture(["mixed", "--seconds", "10", "--seed", TortureTests.seed])
    }
}

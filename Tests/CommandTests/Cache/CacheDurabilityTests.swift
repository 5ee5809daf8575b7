import Foundation
import Glibc
import TestSupport
import Testing

/// Short samples of the scripts in `Scripts/torture`. Their last line is `N passed, N failed`.
@Suite(
    .timeLimit(.minutes(20)),
    .enabled(if: !Sanitizer.isActive, "times and crashes are not the program's own"))
struct CacheDurabilityTests {
    private static let root = SourceTree.root

    private func runScript(_ script: String, _ arguments: [String]) async throws -> CommandResult {
        var command = Command(
            executable: "/usr/bin/python3",
            arguments: ["-B", Self.root.appending(path: "Scripts/torture/\(script)").path]
                + arguments + ["--binary", Workspace.binary],
            environment: ["HOME": "/", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"], folder: "/")
        command.timeLimit = .seconds(900)
        return try await command.run()
    }

    /// The numbers of passed and failed cases.
    private func counts(of result: CommandResult) throws -> [Int] {
        let last = try #require(result.outputLines.last, "\(result)")
        return last.split(separator: " ").compactMap { Int($0) }
    }

    /// The power fails during runs in each mode, during other commands and directly after them, and
    /// while each command replaces files outside of the cache. `off` promises only that the next
    /// run removes damaged images.
    @Test(
        .enabled(if: PowerCut.isPossible, "needs root, loop devices and mkfs.xfs"),
        arguments: [
            (["--mode", "normal"], 20), (["--mode", "full"], 20), (["--mode", "off"], 20),
            (["--command", "all"], 25), (["--files"], 48),
        ])
    func powerCutsLeaveNoTornRowOrFile(arguments: [String], cuts: Int) async throws {
        let result = try await runScript("power-cut", arguments + ["--cuts", "\(cuts)"])
        // Some systems have the devices but forbid their use.
        if result.status == 77 { return }
        #expect(result.status == 0, "\(result)")
        let counts = try counts(of: result)
        #expect(counts.count == 2 && counts[0] >= cuts && counts[1] == 0, "\(result)")
    }

    @Test func detectsDatabaseDamageWithoutCrashing() async throws {
        let seed = String(UInt32.random(in: 0...999_999))
        let result = try await runScript(
            "damage", ["pages", "--sample", "40", "--seed", seed])
        #expect(result.status == 0, "seed \(seed): \(result)")
        // Some values cannot be written.
        let counts = try counts(of: result)
        #expect(counts.count == 2 && counts[0] >= 30 && counts[1] == 0, "seed \(seed): \(result)")
    }

    /// Two cases of each kind; a manual run uses 200. The seed is fixed, since the salvaged share
    /// of two cases varies.
    @Test func salvagesNearlyAllRowsCorrectly() async throws {
        let seed = "16"
        let result = try await runScript(
            "damage", ["salvage", "--cases", "28", "--seed", seed])
        #expect(result.status == 0, "seed \(seed): \(result)")
        #expect(try counts(of: result) == [28, 0], "seed \(seed): \(result)")
    }
}

private enum PowerCut {
    static let isPossible =
        geteuid() == 0 && FileManager.default.fileExists(atPath: "/dev/loop-control")
        && ["/sbin/mkfs.xfs", "/usr/sbin/mkfs.xfs"].contains {
            FileManager.default.isExecutableFile(atPath: $0)
        }
}

import Foundation
import Glibc
import TestSupport
import Testing

/// Commands on a cache on a network file system, simulated by preloading `libNetworkFileSystem.so`.
@Suite(.timeLimit(.minutes(15)), .enabled(if: !Sanitizer.isActive, "a sanitizer is loaded first"))
struct NetworkFileSystemCommandTests {
    static func onNetwork(_ command: Command) -> Command {
        var command = command
        command.environment["LD_PRELOAD"] = Workspace.product("libNetworkFileSystem.so")
        return command
    }

    private func companions(_ workspace: Workspace) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: workspace.cache)
            .filter { $0.hasPrefix("prefetch.sqlite-") }
    }

    @Test(arguments: ["normal", "full", "off"])
    func usesRollbackJournalAndWarnsOnce(sync: String) async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(12)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                func run(_ lines: [String]) async throws -> Workspace.Run {
                    let command = try workspace.prefetchCommand(lines, ["--sync", sync])
                    return try await workspace.finish(Self.onNetwork(command).run())
                }
                let first = try await run(Array(urls[..<6]))
                #expect(first.summary.outcomes == ["downloaded": 6], "\(first.result)")
                let warning =
                    "on a network file system (nfs), so the database has no write-ahead log"
                #expect(first.result.error.contains(warning), "\(first.result)")
                #expect(try companions(workspace) == [])
                let second = try await run(urls)
                #expect(
                    second.summary.outcomes == ["fresh": 6, "downloaded": 6], "\(second.result)")
                #expect(!second.result.error.contains("network"), "\(second.result)")
                let listing = try await Self.onNetwork(workspace.command(["list"])).run()
                #expect(
                    listing.status == 0 && listing.outputLines.count == 12,
                    "\(listing)")
                let verification = try await Self.onNetwork(workspace.command(["verify"])).run()
                #expect(verification.status == 0, "\(verification)")
                let removal = try await Self.onNetwork(workspace.command(["remove", urls[0]])).run()
                #expect(removal.status == 0, "\(removal)")
                #expect(try companions(workspace) == [])
                // The cache is on a local disk again.
                let local = try await workspace.prefetch(urls)
                #expect(
                    local.summary.outcomes == ["fresh": 11, "downloaded": 1], "\(local.result)")
            }
        }
    }

    @Test func cacheMovedToNetworkKeepsItsRows() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(8)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                _ = try await workspace.prefetch(Array(urls[..<4]))
                // A read-only command does not change the log.
                let get = try await Self.onNetwork(workspace.command(["get", urls[0]])).run()
                #expect(get.status == 0 && get.error.isEmpty, "\(get)")
                let command = try workspace.prefetchCommand(urls)
                let run = try await workspace.finish(Self.onNetwork(command).run())
                #expect(run.summary.outcomes == ["fresh": 4, "downloaded": 4], "\(run.result)")
                #expect(run.result.error.contains("network file system"), "\(run.result)")
            }
        }
    }

    /// Killed at any moment; the next run rolls the journal back and continues.
    @Test(arguments: [1, 3, 7])
    func continuesAfterKilledRun(arrivals: Int) async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(40)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let command = try workspace.prefetchCommand(urls, ["-j", "2"])
                let running = try Self.onNetwork(command).start()
                try await origin.wait(for: "requests") { $0.requests.count >= arrivals }
                running.signal(SIGKILL)
                _ = await running.wait()
                let next = try workspace.prefetchCommand(urls)
                let run = try await workspace.finish(Self.onNetwork(next).run())
                #expect(run.result.status == 0, "\(run.result)")
                #expect(try await workspace.judge() == 40)
            }
        }
    }
}

import Foundation
import Glibc
import TestSupport
import Testing

/// Commands on a cache on a network file system, or on one that refuses system calls: simulated by
/// preloading `libNetworkFileSystem.so`.
@Suite(.timeLimit(.minutes(15)), .enabled(if: !Sanitizer.isActive, "a sanitizer is loaded first"))
struct NetworkFileSystemCommandTests {
    static func onNetwork(_ command: Command, refusing calls: String? = nil) -> Command {
        var command = command
        command.environment["LD_PRELOAD"] = Workspace.product("libNetworkFileSystem.so")
        command.environment["REFUSED_CALLS"] = calls
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

    /// Commands that read a cache before and after the first run on the file system.
    @Test(
        arguments: [
            (nil, "on a network file system (nfs)"),
            ("shmap=EOPNOTSUPP", "shares no memory between processes"),
            ("shmap=ENODEV", "shares no memory between processes"),
        ] as [(String?, String)])
    func cacheMovedToFileSystemWithoutLogKeepsItsRows(calls: String?, reason: String) async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(8)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                func read() async throws {
                    let commands = [
                        ["get", urls[0]], ["list"], ["stats"], ["history"], ["verify"], ["doctor"],
                        ["export", "out", "--layout", "mirror"], ["gallery", "-o", "g"],
                    ]
                    for command in commands {
                        let result = try await Self.onNetwork(
                            workspace.command(command), refusing: calls
                        ).run()
                        #expect(result.status == 0, "\(command): \(result)")
                        #expect(!result.error.contains("hint:"), "\(command): \(result)")
                    }
                }
                func run(_ lines: [String]) async throws -> Workspace.Run {
                    let command = try workspace.prefetchCommand(lines)
                    return try await workspace.finish(
                        Self.onNetwork(command, refusing: calls).run())
                }
                _ = try await workspace.prefetch(Array(urls[..<4]))
                try await read()
                let first = try await run(urls)
                #expect(first.summary.outcomes == ["fresh": 4, "downloaded": 4], "\(first.result)")
                #expect(first.result.error.contains(reason), "\(first.result)")
                #expect(try companions(workspace) == [])
                try await read()
                let second = try await run(urls)
                #expect(second.summary.outcomes == ["fresh": 8], "\(second.result)")
                #expect(!second.result.error.contains("write-ahead"), "\(second.result)")
                let doctor = try await Self.onNetwork(
                    workspace.command(["doctor"]), refusing: calls
                ).run()
                #expect(doctor.output.contains("the database has no log"), "\(doctor)")
                // A local disk again.
                let local = try await workspace.prefetch(urls)
                #expect(local.summary.outcomes == ["fresh": 8], "\(local.result)")
                #expect(!local.result.error.contains("write-ahead"), "\(local.result)")
            }
        }
    }

    /// Calls that file systems refuse: commands do without them, or name the reason.
    @Test(
        arguments: [
            ("lock=ENOLCK", 2, "has no file locks"), ("lock=EOPNOTSUPP", 2, "has no file locks"),
            ("flock=ENOLCK", 2, "has no file locks"), ("flock=ENOSYS", 2, "has no file locks"),
            ("lock=EIO", 2, "Input/output error"), ("flock=EIO", 2, "Input/output error"),
            ("fsync=EIO", 2, "Input/output error"),
            ("utimensat=EPERM", 0, "does not let times be set"),
            ("utimensat=ENOSYS,fchmod=EPERM", 0, "does not let times be set"),
            ("fchmod=EOPNOTSUPP", 0, ""), ("linkat=EPERM", 0, ""), ("linkat=ENOSYS", 0, ""),
            ("linkat=EXDEV", 0, ""), ("exchange=EINVAL", 0, ""), ("exchange=EPERM", 0, ""),
            ("syncfs=ENOSYS", 0, ""), ("syncfs=EPERM", 0, ""), ("clone=EPERM", 0, ""),
            ("fstatfs=ENOSYS", 0, ""), ("fallocate=EOPNOTSUPP,fsetxattr=EOPNOTSUPP", 0, ""),
            ("utimensat=EIO", 2, "Input/output error"), ("syncfs=EIO", 2, "Input/output error"),
        ] as [(String, Int32, String)])
    func refusedCallsAreLetPassOrNamed(calls: String, status: Int32, text: String) async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(3)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                func run(_ arguments: String...) async throws -> CommandResult {
                    try await Self.onNetwork(workspace.command(arguments), refusing: calls).run()
                }
                try workspace.manifest(urls, name: "list.txt")
                try workspace.manifest([urls[0]], name: "short.txt")
                let first = try await run("run", "list.txt")
                if calls.contains("lock=") || calls.contains("fsync=") {
                    #expect(first.status == status && first.error.contains(text), "\(first)")
                    #expect(first.error.contains("docs/cache.md") == text.hasPrefix("has"))
                    let doctor = try await run("doctor")
                    #expect(doctor.status == 1 && doctor.output.contains(text), "\(doctor)")
                    return
                }
                _ = try await workspace.run("run", "list.txt")
                // The second one takes the place of the first.
                for list in ["list.txt", "short.txt"] {
                    let export = try await run(
                        "export", "m", list, "--layout", "mirror", "--mode", "0640")
                    #expect(export.status == status, "\(export)")
                    // A second export that writes nothing refuses nothing.
                    guard status != 0 || list == "list.txt" else { continue }
                    #expect(text.isEmpty || export.error.contains(text), "\(export)")
                }
                guard status == 0 else { return }
                #expect(first.status == 0, "\(first)")
                let gallery = try await run("gallery", "-o", "g")
                #expect(gallery.status == 0, "\(gallery)")
                try workspace.write(Fixtures.png(seed: 1), to: "image.png")
                let put = try await run("put", urls[0], "image.png")
                #expect(put.status == 0, "\(put)")
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

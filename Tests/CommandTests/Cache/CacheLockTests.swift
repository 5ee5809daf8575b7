import Foundation
import Glibc
import TestSupport
import Testing

/// The lock of a cache from its creation on, and runs that lose it.
@Suite(.timeLimit(.minutes(15)))
struct CacheLockTests {
    /// The first run creates the cache and the others wait. Readers see no cache or a complete one.
    @Test(arguments: 0..<4)
    func simultaneousFirstRunsCreateOneCache(round: Int) async throws {
        try await withOrigin { origin in
            let lines = (0..<6).map { index in
                origin.serve("/\(index)", .image(Fixtures.png(seed: index)))
                return origin.url("/\(index)")
            }
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let manifests = try lines.enumerated().map { index, line in
                    try workspace.manifest([line], name: "\(index).txt")
                }
                let runs = try manifests.map {
                    try workspace.command([$0, "--lock", "wait", "-q"]).start()
                }
                let readers = try [["list"], ["get", lines[0], "--stale"], ["stats"]].map {
                    try workspace.command($0).start()
                }
                for run in runs {
                    let result = await run.wait()
                    #expect(result.status == 0, "\(result)")
                    #expect(result.error.isEmpty, "\(result)")
                }
                for reader in readers {
                    let result = await reader.wait()
                    // Before the first commit the cache is missing or empty.
                    let isEarly =
                        result.error.contains("there is no cache yet")
                        || result.error.contains("holds no images yet")
                        || result.error.contains("not in the cache")
                    #expect(result.status == 0 || isEarly, "\(result)")
                }
                #expect(try await workspace.judge() == lines.count)
            }
        }
    }

    /// Stores two images, the first with the attribute `n`, and hands over a run that waits for a
    /// third one.
    private func withHeldRun(
        _ body: (
            _ workspace: Workspace, _ urls: [String], _ running: RunningCommand, _ gate: Gate
        ) async throws -> Void
    ) async throws {
        try await withOrigin { origin in
            let gate = Gate()
            let urls = origin.serveImages(2)
            origin.serve("/held", .image(Fixtures.png(seed: 9), gate: gate))
            try await withWorkspace(without: [.retries, .probes, .stalls, .placeholders]) {
                workspace in
                _ = try await workspace.prefetch([urls[0] + " attr.n=1", urls[1]])
                let running = try workspace.prefetchCommand([origin.url("/held")]).start()
                try await origin.wait(for: "one held") { $0.inFlight == 1 }
                try await body(workspace, urls + [origin.url("/held")], running, gate)
                gate.open()
            }
        }
    }

    private func expect(
        _ status: Int32, _ commands: [[String]], in workspace: Workspace
    ) async throws {
        for arguments in commands {
            let result = try await workspace.command(arguments).run()
            #expect(result.status == status, "\(result)")
            #expect((status == 75) == result.error.contains("another process holds"), "\(result)")
        }
    }

    @Test func writersAreRefusedOrWait() async throws {
        try await withHeldRun { workspace, urls, running, gate in
            let holder = "another process holds this cache (pid \(running.process) on "
            let failed = try await workspace.run("manifest-2.txt")
            #expect(failed.status == 75 && failed.error.contains(holder), "\(failed)")
            #expect(failed.error.contains("hint: --lock wait waits for it"), "\(failed)")
            try workspace.write(Array("earlier".utf8), to: "report")
            let skipped = try await workspace.run(
                "manifest-2.txt", "--lock", "skip", "--report", "report", "--summary", "json")
            #expect(skipped.output.isEmpty, "\(skipped)")
            #expect(try workspace.bytes(of: "../report") == Array("earlier".utf8))
            #expect(skipped.status == 0 && skipped.error.contains(holder), "\(skipped)")
            let quiet = try await workspace.run("manifest-2.txt", "--lock", "skip", "-q")
            #expect(quiet.status == 0 && quiet.error.isEmpty, "\(quiet)")
            let change = try await workspace.run("failed", "clear")
            #expect(change.status == 75 && change.error.contains(holder), "\(change)")
            let pull = try await workspace.run(
                "pull", "s3://b/p", "--sink-credentials", "none", "--lock", "wait", "--deadline",
                "300ms")
            #expect(pull.status == 75 && pull.error.contains("; waited "), "\(pull)")
            try workspace.write(Fixtures.png(seed: 1), to: "a.png")
            try await expect(
                75,
                [
                    ["attr", "set", urls[0], "n", "2"], ["attr", "rm", urls[0], "n"],
                    ["attr", "set", urls[0], "n", "2", "--lock", "wait=10ms"],
                    ["failed", "rm", urls[0]], ["remove", "--all"], ["put", urls[0], "a.png"],
                    ["placeholders"],
                ], in: workspace)
            let waiting = try [
                ["manifest-2.txt", "--lock", "wait"],
                ["attr", "set", urls[0], "n", "3", "--lock", "wait"],
                ["remove", urls[1], "--lock", "wait"],
            ].map { try workspace.command($0).start() }
            for command in waiting {
                try await eventually("it says that it waits") {
                    command.errorSoFar.contains(holder)
                        && command.errorSoFar.contains("; waiting for it\n")
                }
            }
            let before = try await workspace.run("attr", "get", urls[0], "n")
            #expect(before.output == "1", "\(before)")
            gate.open()
            #expect(await running.wait().status == 0)
            for command in waiting {
                let result = await command.wait()
                #expect(result.status == 0, "\(result)")
            }
            #expect(await waiting[2].wait().error.contains("1 image (1 variant)"))
            let after = try await workspace.run("attr", "get", urls[0], "n")
            #expect(after.output == "3", "\(after)")
            // A finished holder is not reported.
            let next = try await workspace.run("manifest-2.txt")
            #expect(next.status == 0 && !next.error.contains("holds"), "\(next)")
        }
    }

    @Test func readersWorkBesideARun() async throws {
        try await withHeldRun { workspace, urls, running, gate in
            try await expect(
                0,
                [
                    ["attr", "list", urls[0]], ["attr", "get", urls[0], "n"], ["failed", "list"],
                    ["list", "--json"], ["get", "--json", urls[0]], ["stats"],
                    ["remove", "--all", "-n"],
                ], in: workspace)
            let doctor = try await workspace.run("doctor", "--json")
            #expect(doctor.status == 0, "\(doctor)")
            func message(_ check: String) throws -> String? {
                try doctor.jsonLines().first { $0["check"] as? String == check }?["message"]
                    as? String
            }
            #expect(try message("lock")?.contains("pid \(running.process) on") == true)
            #expect(try message("runs")?.contains("has been running since") == true, "\(doctor)")
            // A plan takes no lock, nor waits for it.
            let manifest = try workspace.manifest([urls[0], urls[2]], name: "plan.txt")
            let plan = try await workspace.run("plan", manifest, "--json")
            let planned = try #require(try plan.jsonLines().first)
            #expect(planned["entries"] as? Int == 2, "\(plan)")
            #expect((planned["states"] as? [String: Int])?["new"] ?? 0 >= 1, "\(plan)")
            // Being unable to save the position is not a failure.
            let verify = try await workspace.run("verify", "--time-limit", "1ms")
            #expect(verify.status == 0, "\(verify)")
            #expect(
                verify.error.contains(
                    "cannot store the position for --resume: another process holds the cache\n"),
                "\(verify)")
            gate.open()
            #expect(await running.wait().status == 0)
            let position = "SELECT value FROM property WHERE name = 'verified_folders'"
            #expect(try await workspace.query(position).isEmpty)
        }
    }

    /// Otherwise another run could take its own lock and write to the same cache.
    @Test(arguments: ["lock", "prefetch.sqlite"], [true, false])
    func exits2IfLockOrDatabaseIsReplaced(name: String, isReplaced: Bool) async throws {
        try await withOrigin { origin in
            let gate = Gate()
            let lines = (0..<4).map { index in
                origin.serve(
                    "/\(index)", .image(Fixtures.png(seed: index), gate: index < 2 ? nil : gate))
                return origin.url("/\(index)")
            }
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let running = try workspace.prefetchCommand(lines, ["-j", "4"]).start()
                try await origin.wait(for: "two held") { $0.inFlight == 2 && $0.answered == 2 }
                try workspace.removeFile(name)
                if isReplaced {
                    #expect(
                        FileManager.default.createFile(
                            atPath: "\(workspace.cache)/\(name)", contents: nil,
                            attributes: [.posixPermissions: 0o600]))
                }
                gate.open()
                let run = try workspace.finish(await running.wait(), entries: lines.count)
                #expect(run.result.status == 2, "\(run.result)")
                #expect(
                    run.result.error.contains(
                        "\(workspace.cache)/\(name): was removed or replaced"), "\(run.result)")
                let next = try await workspace.prefetch(lines)
                #expect(next.result.status == 0, "\(next.result)")
                #expect(try await workspace.judge() == lines.count)
            }
        }
    }

    /// A warm run commits nothing, but still reports that its result is void.
    @Test func exits2IfCacheDirectoryIsReplaced() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            origin.serve("/held", .image(Fixtures.png(seed: 1), gate: gate))
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let running = try workspace.prefetchCommand([origin.url("/held")]).start()
                try await origin.wait(for: "one held") { $0.inFlight == 1 }
                try FileManager.default.moveItem(
                    atPath: workspace.cache, toPath: workspace.folder + "/moved")
                try FileManager.default.createDirectory(
                    atPath: workspace.cache, withIntermediateDirectories: false,
                    attributes: [.posixPermissions: 0o700])
                gate.open()
                let result = await running.wait()
                #expect(result.status == 2, "\(result)")
                #expect(result.error.contains("was removed or replaced"), "\(result)")
                let next = try await workspace.prefetch([origin.url("/held")])
                #expect(next.result.status == 0, "\(next.result)")
            }
        }
    }
}

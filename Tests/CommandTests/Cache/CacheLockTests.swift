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

    @Test func namesProcessHoldingTheLock() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            origin.serve("/a", .image(Fixtures.png(), gate: gate))
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let running = try workspace.prefetchCommand([origin.url("/a")], []).start()
                try await origin.wait(for: "one held") { $0.inFlight == 1 }
                let holder = "another process holds this cache (pid \(running.process) on "
                let failed = try await workspace.run("manifest-1.txt")
                #expect(failed.status == 75 && failed.error.contains(holder), "\(failed)")
                #expect(failed.error.contains("hint: --lock wait waits for it"), "\(failed)")
                try workspace.write(Array("earlier".utf8), to: "report")
                let skipped = try await workspace.run(
                    "manifest-1.txt", "--lock", "skip", "--report", "report", "--summary", "json")
                #expect(skipped.output.isEmpty, "\(skipped)")
                #expect(try workspace.bytes(of: "../report") == Array("earlier".utf8))
                #expect(skipped.status == 0 && skipped.error.contains(holder), "\(skipped)")
                let quiet = try await workspace.run("manifest-1.txt", "--lock", "skip", "-q")
                #expect(quiet.status == 0 && quiet.error.isEmpty, "\(quiet)")
                let change = try await workspace.run("failed", "clear")
                #expect(change.status == 75 && change.error.contains(holder), "\(change)")
                let pull = try await workspace.run(
                    "pull", "s3://b/p", "--sink-credentials", "none", "--lock", "wait",
                    "--deadline", "300ms")
                #expect(pull.status == 75 && pull.error.contains("; waited "), "\(pull)")
                let waiting = try workspace.command(["manifest-1.txt", "--lock", "wait"]).start()
                try await eventually("the run says that it waits") {
                    let text = waiting.errorSoFar
                    return text.contains(holder) && text.contains("; waiting for it\n")
                }
                gate.open()
                #expect(await running.wait().status == 0)
                let last = await waiting.wait()
                #expect(last.status == 0, "\(last)")
                // A finished holder is not reported.
                let next = try await workspace.run("manifest-1.txt")
                #expect(next.status == 0 && !next.error.contains("holds"), "\(next)")
            }
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

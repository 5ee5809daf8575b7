import Foundation
import Glibc
import TestSupport
import Testing

/// Readers of a cache that belongs to another user.
@Suite(
    .timeLimit(.minutes(15)),
    .enabled(if: OtherUser.isPossible, "needs root, and a program that everybody may start"))
struct OtherReaderTests {
    private func withImages(
        _ body: (Origin, Workspace) async throws -> Void
    ) async throws {
        try await withOrigin { origin in
            for seed in 0..<4 { origin.serve("/\(seed)", .image(Fixtures.png(seed: seed))) }
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                try workspace.openFolder()
                try await body(origin, workspace)
            }
        }
    }

    /// Checks that every read-only command works as for the owner and creates no files.
    private func expectReadable(
        _ workspace: Workspace, _ url: String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: workspace.cache).sorted()
        for arguments in [
            ["get", url], ["get", url, "--json"], ["list"], ["list", "--json"], ["history"],
            ["attr", "list", url], ["failed", "list"], ["verify", "-q"],
        ] {
            let other = try await workspace.command(arguments).asOtherUser().run()
            #expect(other.status == 0, "\(other)", sourceLocation: sourceLocation)
            let own = try await workspace.command(arguments).run()
            #expect(other.output == own.output, "\(other)", sourceLocation: sourceLocation)
        }
        let stats = try await workspace.asOtherUser("stats", "--json")
        #expect(stats.status == 0, "\(stats)", sourceLocation: sourceLocation)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: workspace.cache).sorted() == names,
            sourceLocation: sourceLocation)
    }

    @Test func readsAndChangesNothing() async throws {
        try await withImages { origin, workspace in
            _ = try await workspace.prefetch([origin.url("/0")], "--mode", "0644")
            try await expectReadable(workspace, origin.url("/0"))
            // A warm run keeps the cache readable, and so does a change by a command.
            _ = try await workspace.prefetch([origin.url("/0")])
            try await expectReadable(workspace, origin.url("/0"))
            let url = origin.url("/0")
            let attribute = try await workspace.run("attr", "set", url, "a", "b")
            #expect(attribute.status == 0, "\(attribute)")
            try await expectReadable(workspace, url)
            for arguments in [
                [url], ["attr", "set", url, "a", "b"], ["remove", url], ["failed", "clear"],
                ["chmod", "0600"], ["verify", "--repair"], ["placeholders"],
            ] {
                let result = try await workspace.command(arguments).asOtherUser().run()
                #expect(
                    result.status == 2 && result.error.contains("belongs to another user (uid 0)"),
                    "\(result)")
            }
            try await expectReadable(workspace, url)

            // SQLite's shell and other programs remove the log when they close a writable database.
            try await workspace.query("SELECT 1 FROM resource")
            for name in ["-wal", "-shm"] {
                try? workspace.removeFile("prefetch.sqlite" + name)
            }
            try await expectReadableWithoutALog(workspace, url)

            try FileManager.default.setAttributes(
                [.posixPermissions: 0o757], ofItemAtPath: workspace.cache)
            let list = try await workspace.asOtherUser("list")
            #expect(
                list.status == 2 && list.error.contains("is writable by all users"), "\(list)")
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o755], ofItemAtPath: workspace.cache)
        }
    }

    @Test func readsAfterChmodUntilReverted() async throws {
        try await withImages { origin, workspace in
            _ = try await workspace.prefetch([origin.url("/0")])
            let hidden = try await workspace.asOtherUser("get", origin.url("/0"))
            #expect(hidden.status == 2 && hidden.output.isEmpty, "\(hidden)")
            #expect(try await workspace.run("chmod", "0644").status == 0)
            try await expectReadable(workspace, origin.url("/0"))
            #expect(try await workspace.run("chmod", "0600").status == 0)
            let again = try await workspace.asOtherUser("list")
            #expect(again.status == 2 && again.output.isEmpty, "\(again)")

            // Members of the group read what the group may read.
            #expect(try await workspace.run("chmod", "0640").status == 0)
            let before = try await workspace.asOtherUser("list")
            #expect(before.status == 2, "\(before)")
            let manager = FileManager.default
            for path in try manager.subpathsOfDirectory(atPath: workspace.cache) + ["."] {
                #expect(
                    lchown("\(workspace.cache)/\(path)", 0, gid_t(OtherUser.number)) == 0)
            }
            try await expectReadable(workspace, origin.url("/0"))
        }
    }

    /// Reads while a run has rows in its log, and after it was killed.
    @Test func readsDuringRunAndAfterItsKill() async throws {
        try await withImages { origin, workspace in
            let gate = Gate()
            origin.serve("/held", .image(Fixtures.png(seed: 9), gate: gate))
            let running = try workspace.prefetchCommand(
                [origin.url("/0"), origin.url("/held")], ["--mode", "0644"]
            ).start()
            try await eventually("the first image is committed") {
                try await workspace.asOtherUser("get", origin.url("/0")).status == 0
            }
            for arguments in [["list"], ["stats"], ["history"], ["get", origin.url("/0")]] {
                let result = try await workspace.command(arguments).asOtherUser().run()
                #expect(result.status == 0 && result.output.count > 20, "\(result)")
            }
            running.signal(SIGKILL)
            _ = await running.wait()
            gate.open()
            for arguments in [["list"], ["stats"], ["history"], ["get", origin.url("/0")]] {
                let result = try await workspace.command(arguments).asOtherUser().run()
                #expect(result.status == 0 && result.output.count > 20, "\(result)")
            }
            _ = try await workspace.prefetch([origin.url("/0"), origin.url("/held")])
            try await expectReadable(workspace, origin.url("/held"))
        }
    }

    private func expectReadableWithoutALog(_ workspace: Workspace, _ url: String) async throws {
        for arguments in [["get", url], ["list"], ["stats"], ["history"]] {
            let result = try await workspace.command(arguments).asOtherUser().run()
            #expect(result.status == 0 && result.output.count > 20, "\(result)")
        }
    }

    /// Root may read any cache, and creates no files in it.
    @Test func rootReadsCacheOfAnotherUser() async throws {
        try await withImages { origin, workspace in
            let url = origin.url("/0")
            _ = try await workspace.prefetch([url])
            let owner = uid_t(OtherUser.number)
            let manager = FileManager.default
            func paths() throws -> [String] {
                (try manager.subpathsOfDirectory(atPath: workspace.cache) + ["."]).map {
                    "\(workspace.cache)/\($0)"
                }
            }
            for path in try paths() { #expect(lchown(path, owner, owner) == 0) }
            for arguments in [["get", url], ["list"], ["stats"], ["history"], ["verify"]] {
                let result = try await workspace.command(arguments).run()
                #expect(result.status == 0, "\(result)")
            }
            for path in try paths() {
                let attributes = try manager.attributesOfItem(atPath: path)
                #expect(attributes[.ownerAccountID] as? Int == OtherUser.number, "\(path)")
            }
            let run = try await workspace.run(url)
            #expect(
                run.status == 2 && run.error.contains("belongs to another user (uid 65534)"),
                "\(run)")
            for path in try paths() { #expect(lchown(path, 0, 0) == 0) }
        }
    }
}

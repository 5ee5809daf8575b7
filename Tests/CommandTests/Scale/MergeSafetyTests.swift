import Foundation
import Glibc
import TestSupport
import Testing

/// A merge that fails or is killed leaves the destination as it was, and never changes a source.
@Suite(.timeLimit(.minutes(15)))
struct MergeSafetyTests {
    private static let count = 30

    /// Makes the caches `a` and `b` with one image in common, and a cache of the workspace's own.
    private func withCaches(_ body: (Workspace, [String]) async throws -> Void) async throws {
        try await withOrigin { origin in
            let lines = (0..<MergeSafetyTests.count).map { index in
                origin.serve("/\(index).png", .image(Fixtures.png(seed: index)))
                return origin.url("/\(index).png")
            }
            try await withWorkspace { workspace in
                for (name, part) in [
                    ("cache", lines[..<5]), ("a", lines[4..<18]), ("b", lines[17...]),
                ] {
                    let run = try await workspace.prefetch(Array(part), "--cache-dir", name)
                    #expect(run.result.status == 0, "\(run.result)")
                }
                try await body(workspace, lines)
            }
        }
    }

    /// The digest of the names, bytes, times and permissions below a folder, without its own locks.
    private func digest(_ folder: String, in workspace: Workspace) async throws -> String {
        var command = workspace.command([
            "-c",
            "cd \(folder) && find . ! -name lock -printf '%p %m %s %T@\\n' | sort && "
                + "find . -type f -print0 | sort -z | xargs -0 sha256sum",
        ])
        command.executable = "/bin/sh"
        return try await command.run().output
    }

    private static let images =
        "SELECT key, recipe, sha256 FROM resource JOIN variant "
        + "ON id = resource_id ORDER BY key"

    @Test func sourcesAreNotChanged() async throws {
        try await withCaches { workspace, _ in
            let before = try await [digest("a", in: workspace), digest("b", in: workspace)]
            let merge = try await workspace.run("merge", "cache", "a", "b")
            #expect(merge.status == 0, "\(merge)")
            #expect(
                try await [digest("a", in: workspace), digest("b", in: workspace)] == before)
            // Also when nothing may be written there.
            chmod(workspace.folder + "/a", 0o500)
            defer { chmod(workspace.folder + "/a", 0o700) }
            let again = try await workspace.command(["merge", "other", "a"]).withoutPrivileges()
                .run()
            #expect(again.status == 0, "\(again)")
        }
    }

    /// Killed at each of its file operations in turn, by strace. The next run collects the files of
    /// a merge that is not repeated.
    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/strace")))
    func killedMergeGoesOn() async throws {
        try await withCaches { workspace, lines in
            let old = try await workspace.query(MergeSafetyTests.images)
            #expect(try await workspace.run("merge", "wanted", "cache", "a", "b").status == 0)
            let new = try await workspace.query(MergeSafetyTests.images, of: "wanted")
            #expect(new.count == lines.count)
            let sources = try await [digest("a", in: workspace), digest("b", in: workspace)]
            var ends: Set<Bool> = []
            for call in [
                "linkat", "openat", "pwrite64", "unlinkat", "syncfs", "renameat", "fsync",
                "ftruncate", "flock",
            ] {
                for number in [1, 2, 3, 5, 8, 13, 21, 34, 60] {
                    let name = "d-\(call)-\(number)"
                    try FileManager.default.copyItem(
                        atPath: workspace.cache, toPath: "\(workspace.folder)/\(name)")
                    var traced = workspace.command(
                        [
                            "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)", "-e",
                            "inject=\(call):signal=KILL:when=\(number)", Workspace.binary,
                            "merge", name, "a", "b", "-q",
                        ])
                    traced.executable = "/usr/bin/strace"
                    let killed = try await traced.run()
                    let found = try await workspace.query(MergeSafetyTests.images, of: name)
                    #expect(found == old || found == new, "\(call) \(number): \(killed)")
                    ends.insert(found == new)
                    let list = try await workspace.run("verify", "-q", "--cache-dir", name)
                    // Files without rows are left, and nothing else.
                    let problems = list.outputLines.filter { !$0.contains(": orphan: ") }
                    #expect(problems.isEmpty, "\(call) \(number): \(list)")
                    let again = try await workspace.run("merge", name, "a", "b", "-q")
                    #expect(again.status == 0, "\(call) \(number): \(again)")
                    #expect(
                        try await workspace.query(MergeSafetyTests.images, of: name) == new)
                    try FileManager.default.removeItem(atPath: "\(workspace.folder)/\(name)")
                    // It has no more calls than these.
                    if killed.status == 0 { break }
                }
            }
            #expect(ends == [false, true], "some merges are killed before their end")
            #expect(
                try await [digest("a", in: workspace), digest("b", in: workspace)] == sources)

            var traced = workspace.command(
                [
                    "-f", "-qq", "-o", "/dev/null", "-e", "trace=renameat", "-e",
                    "inject=renameat:signal=KILL:when=1", Workspace.binary, "merge", "cache", "a",
                ])
            traced.executable = "/usr/bin/strace"
            _ = try await traced.run()
            let verify = try await workspace.run("verify")
            #expect(verify.output.contains(": orphan: "), "\(verify)")
            let run = try await workspace.prefetch(Array(lines[..<5]))
            #expect(run.summary.outcomes == ["fresh": 5], "\(run.result)")
            let after = try await workspace.run("verify")
            #expect(after.status == 0, "\(after)")
        }
    }

    /// A database with an overwritten page.
    @Test func damagedSourceGivesItsReadableRows() async throws {
        try await withCaches { workspace, lines in
            let path = workspace.folder + "/a/prefetch.sqlite"
            let handle = try #require(FileHandle(forUpdatingAtPath: path))
            let size = try handle.seekToEnd()
            // The last pages hold entries of indexes and rows of variants.
            try handle.seek(toOffset: size / 4096 / 2 * 4096)
            try handle.write(contentsOf: Data(repeating: 0xA5, count: 4096))
            try handle.close()
            let before = try await digest("a", in: workspace)
            let merge = try await workspace.run("merge", "cache", "b", "a")
            #expect(merge.status == 1, "\(merge)")
            #expect(merge.error.contains("prefetch: a: damaged; "), "\(merge)")
            #expect(try await digest("a", in: workspace) == before)
            let verify = try await workspace.run("verify")
            #expect(verify.status == 0, "\(verify)")
            let run = try await workspace.prefetch(lines)
            #expect(run.result.status == 0, "\(run.result)")
            #expect(run.summary.outcomes["fresh", default: 0] >= 5 + 12, "\(run.result)")
            #expect(
                try FileManager.default.contentsOfDirectory(
                    atPath: workspace.cache + "/tmp"
                ).isEmpty)
        }
    }

    /// A content file is missing, one is truncated, and another cache has a third that is missing.
    @Test func missingFilesAreReported() async throws {
        try await withCaches { workspace, lines in
            var files: [String] = []
            for key in [lines[10], lines[11], lines[17]] {
                let row = try await workspace.query(
                    """
                    SELECT lower(hex(sha256)) FROM variant JOIN resource ON id = resource_id
                    WHERE key = '\(key)'
                    """, of: "a")
                let digest = try #require(row.first?.first ?? nil)
                files.append("a/content/\(digest.prefix(2))/\(digest).png")
            }
            unlink(workspace.folder + "/" + files[0])
            truncate(workspace.folder + "/" + files[1], 3)
            unlink(workspace.folder + "/" + files[2])
            let merge = try await workspace.run("merge", "cache", "a", "b")
            #expect(merge.status == 1, "\(merge)")
            #expect(merge.error.contains("2 files of the sources are missing"), "\(merge)")
            let run = try await workspace.prefetch(lines)
            #expect(run.summary.outcomes == ["fresh": 28, "downloaded": 2], "\(run.result)")
        }
    }

    /// The destination keeps its image if the other cache has lost the file of the same image, or
    /// of a newer one.
    @Test(arguments: [false, true]) func lostFilesOfASourceRemoveNothing(
        _ isNewer: Bool
    ) async throws {
        try await withOrigin { origin in
            origin.serve(
                "/a.png", .image(Fixtures.png(seed: 1)),
                .image(Fixtures.png(seed: isNewer ? 2 : 1)))
            try await withWorkspace { workspace in
                for name in ["cache", "other"] {
                    let run = try await workspace.prefetch(
                        [origin.url("/a.png")], "--cache-dir", name)
                    #expect(run.result.status == 0, "\(run.result)")
                }
                try FileManager.default.removeItem(atPath: workspace.folder + "/other/content")
                let merge = try await workspace.run("merge", "cache", "other")
                #expect(merge.status == (isNewer ? 1 : 0), "\(merge)")
                try await workspace.judge(
                    sources: [origin.url("/a.png"): Fixtures.png(seed: 1)])
                let get = try await workspace.run("get", origin.url("/a.png"), "--stale")
                #expect(get.status == 0, "\(get)")
                let verify = try await workspace.run("verify")
                #expect(verify.status == 0, "\(verify)")
            }
        }
    }

    /// A power cut has torn a file of a run that did not synchronise it.
    @Test func tornFilesAreNotTaken() async throws {
        try await withOrigin { origin in
            origin.serve("/a.png", .image(Fixtures.png(seed: 1)))
            try await withWorkspace { workspace in
                let url = origin.url("/a.png")
                let run = try await workspace.prefetch(
                    [url], "--cache-dir", "other", "--sync", "off")
                #expect(run.result.status == 0, "\(run.result)")
                try await workspace.runSQL("UPDATE run SET boot_id = 'another'", of: "other")
                let path = try #require(run.report.entries.first?.path)
                let file = "other/" + path
                let size = try workspace.bytes(of: workspace.folder + "/" + file).count
                try workspace.write([UInt8](repeating: 0, count: size), to: file)
                let merge = try await workspace.run("merge", "cache", "other")
                #expect(merge.status == 1, "\(merge)")
                let again = try await workspace.prefetch([url])
                #expect(again.summary.outcomes == ["downloaded": 1], "\(again.result)")
            }
        }
    }

    /// Values that no version of this program writes do not reach the destination.
    @Test(arguments: [
        "UPDATE resource SET color = 99999999 WHERE id = 3",
        "UPDATE resource SET source_bytes = 9223372036854775807 WHERE id = 3",
        "UPDATE variant SET superseded = 5 WHERE resource_id = 3",
        "UPDATE resource SET key = '' WHERE id = 3",
    ])
    func invalidRowsAreSkipped(_ change: String) async throws {
        try await withCaches { workspace, lines in
            // Without the triggers of totals, which stay in the schema.
            try await workspace.runSQL(
                """
                CREATE TEMP TABLE kept AS SELECT * FROM sqlite_schema
                    WHERE name IN ('resource_resized', 'variant_used');
                DROP TRIGGER resource_resized; DROP TRIGGER variant_used; \(change);
                PRAGMA writable_schema = ON;
                INSERT INTO sqlite_schema SELECT * FROM kept;
                """, of: "a")
            let merge = try await workspace.run("merge", "cache", "a", "b")
            #expect(merge.status == 1, "\(merge)")
            #expect(merge.error.contains("prefetch: a: damaged; skipped 1 invalid row"), "\(merge)")
            let verify = try await workspace.run("verify")
            #expect(verify.status == 0, "\(verify)")
            let run = try await workspace.prefetch(lines)
            #expect(run.summary.outcomes["fresh", default: 0] >= 28, "\(run.result)")
        }
    }

    /// More sources than one step merges, and the last one is not a cache: nothing changes.
    @Test func allSourcesAreCheckedFirst() async throws {
        try await withCaches { workspace, _ in
            try await workspace.runSQL("PRAGMA user_version = 99", of: "b")
            let many = (0..<65).map { "copy-\($0)" }
            for name in many {
                try FileManager.default.createSymbolicLink(
                    atPath: "\(workspace.folder)/\(name)", withDestinationPath: "a")
            }
            for destination in ["cache", "new"] {
                let merge = try await workspace.command(
                    ["merge", destination] + many + ["b"]
                ).run()
                #expect(merge.status == 2, "\(merge)")
                #expect(
                    merge.error.contains("prefetch: b: has schema version 99"),
                    "\(merge)")
                #expect(merge.error.contains("\nhint: "), "\(merge)")
            }
            #expect(try await workspace.query("SELECT count(*) FROM resource") == [["5"]])
            #expect(!FileManager.default.fileExists(atPath: workspace.folder + "/new"))
            let merge = try await workspace.command(["merge", "cache"] + many).run()
            #expect(merge.status == 0, "\(merge)")
            #expect(merge.error.contains("65 caches merged: 18 images"), "\(merge)")
        }
    }

    /// `get --batch` waits for lines while a merge replaces the database.
    @Test func batchReadsTheMergedCache() async throws {
        try await withCaches { workspace, lines in
            var command = workspace.command(["get", "--batch", "--stale"])
            command.input = .open
            let batch = try command.start()
            batch.send(Array("\(lines[0])\n".utf8))
            try await eventually("the first answer") { batch.outputSoFar.hasSuffix("\n") }
            #expect(try await workspace.run("merge", "cache", "a").status == 0)
            batch.send(Array("\(lines[10])\n".utf8))
            batch.closeInput()
            let result = await batch.wait()
            #expect(result.status == 0, "\(result)")
            #expect(result.outputLines.count == 2, "\(result)")
        }
    }

    /// Someone else's database: views, triggers, rows and links that lead elsewhere.
    @Test func hostileSourceHasNoEffect() async throws {
        try await withCaches { workspace, _ in
            try workspace.write(Array("secret".utf8), to: "secret.txt")
            try await workspace.runSQL(
                """
                ALTER TABLE host RENAME TO hidden;
                CREATE VIEW host AS WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n)
                    SELECT 'http://' || i AS host, 1 AS concurrency, 0 AS failures_in_a_row,
                        NULL AS cooling_until, 1 AS updated_at FROM n;
                """, of: "a")
            let merge = try await workspace.run("merge", "cache", "a")
            #expect(merge.status == 1, "\(merge)")
            #expect(merge.error.contains("a: damaged"), "\(merge)")
            // A symbolic link in place of a content file.
            let row = try await workspace.query(
                "SELECT lower(hex(sha256)) FROM variant LIMIT 1", of: "b")
            let digest = try #require(row.first?.first ?? nil)
            let file = workspace.folder + "/b/content/\(digest.prefix(2))/\(digest).png"
            unlink(file)
            symlink(workspace.folder + "/secret.txt", file)
            try await workspace.runSQL(
                "UPDATE variant SET bytes = 6 WHERE lower(hex(sha256)) = '\(digest)'", of: "b")
            let linked = try await workspace.run("merge", "other", "b")
            #expect(linked.status == 1, "\(linked)")
            let verify = try await workspace.run("verify", "--cache-dir", "other")
            #expect(verify.status == 0, "\(verify)")
        }
    }

    /// A run holds a source, or the destination.
    @Test func heldCachesAreRefused() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            var slow = Response.image(Fixtures.png(seed: 1))
            slow.gate = gate
            origin.serve("/a.png", slow)
            origin.serve("/b.png", .image(Fixtures.png(seed: 2)))
            try await withWorkspace(without: [.stalls]) { workspace in
                for name in ["b", "held"] {
                    let run = try await workspace.prefetch(
                        [origin.url("/b.png")], "--cache-dir", name)
                    #expect(run.result.status == 0, "\(run.result)")
                }
                let running = try workspace.prefetchCommand(
                    [origin.url("/a.png")], ["--cache-dir", "held"]
                ).start()
                try await eventually("the request arrives") {
                    origin.requests.contains { $0.path == "/a.png" }
                }
                for arguments in [["cache", "b", "held"], ["held", "b"]] {
                    let merge = try await workspace.command(["merge"] + arguments).run()
                    #expect(merge.status == 75, "\(merge)")
                    #expect(merge.error.contains("another process holds this cache"), "\(merge)")
                }
                gate.open()
                #expect(await running.wait().status == 0)
                let merge = try await workspace.run("merge", "cache", "b", "held")
                #expect(merge.status == 0, "\(merge)")
            }
        }
    }

    /// The destination's mode is not given to files that it shares with a source.
    @Test func otherModeCopiesFiles() async throws {
        try await withCaches { workspace, _ in
            #expect(try await workspace.run("chmod", "0644", "-q").status == 0)
            let before = try await digest("a", in: workspace)
            let merge = try await workspace.run("merge", "cache", "a", "--json")
            #expect(merge.status == 0, "\(merge)")
            let result = try #require(try merge.jsonLines().first)
            #expect(result["linked"] as? Int == 0)
            let others = ["cloned", "copied"].compactMap { result[$0] as? Int }.reduce(0, +)
            #expect(others == 13)
            #expect(try await digest("a", in: workspace) == before)
            let modes = try FileManager.default.subpathsOfDirectory(
                atPath: workspace.cache + "/content"
            ).filter { $0.hasSuffix(".png") }.map { path in
                let attributes = try FileManager.default.attributesOfItem(
                    atPath: workspace.cache + "/content/" + path)
                return attributes[.posixPermissions] as? Int
            }
            #expect(modes == Array(repeating: 0o644, count: 18))
        }
    }
}

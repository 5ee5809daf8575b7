import Foundation
import TestSupport
import Testing

/// `prefetch verify` finds all damage and nothing else; repaired images are complete after the next
/// run.
@Suite(.timeLimit(.minutes(15)))
struct VerifyTests {
    /// Serves four images, as `main` and as `web`; two of them have the same bytes.
    private func withImages(
        _ body: (Origin, Workspace, _ urls: [String]) async throws -> Void
    ) async throws {
        try await withOrigin { origin in
            let urls = ["/a", "/b", "/twin", "/photo"].map(origin.url)
            origin.serve("/a", .image(Fixtures.png(seed: 1)))
            origin.serve("/b", .image(Fixtures.png(seed: 2)))
            origin.serve("/twin", .image(Fixtures.png(seed: 2)))
            origin.serve("/photo", .image(try Fixtures.file("baseline.jpg")))
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.prefetch(urls, "--variant", "web=webp,q=50")
                #expect(run.summary.outcomes == ["downloaded": 4], "\(run.result)")
                try await body(origin, workspace, urls)
                // The next run restores everything that the test has damaged.
                let last = try await workspace.prefetch(urls, "--variant", "web=webp,q=50")
                #expect(last.result.status == 0, "\(last.result)")
            }
        }
    }

    private func path(
        of url: String, _ variant: String = "main", in workspace: Workspace
    ) async throws -> String {
        let get = try await workspace.run("get", url, "--variant", variant, "--no-check")
        #expect(get.status == 0, "\(get)")
        return get.output.trimmingCharacters(in: .newlines)
    }

    /// The kinds of the findings, and whether each was repaired.
    private func findings(
        _ workspace: Workspace, _ options: String...
    ) async throws -> [String] {
        let result = try await workspace.command(["verify", "--json"] + options)
            .withoutPrivileges().run()
        let objects = try result.jsonLines()
        let summary = try #require(objects.last)
        #expect(summary["type"] as? String == "summary")
        let found = objects.dropLast()
        #expect(summary["findings"] as? Int == found.count, "\(result)")
        #expect(result.status == (found.isEmpty ? 0 : 1), "\(result)")
        return try found.map { object in
            let kind = try #require(object["kind"] as? String)
            let isRepaired = try #require(object["repaired"] as? Bool)
            return kind + (isRepaired ? " repaired" : "")
        }.sorted()
    }

    // MARK: Healthy caches

    private func expectSound(_ workspace: Workspace) async throws {
        let result = try await workspace.run("verify")
        #expect(result.status == 0 && result.output.isEmpty, "\(result)")
        #expect(result.error.hasPrefix("prefetch: 6 files, "), "\(result)")
        #expect(result.error.hasSuffix(": no problems\n"), "\(result)")
        let before = try await workspace.query("SELECT * FROM variant ORDER BY 1, 2")
        #expect(try await findings(workspace, "--repair") == [])
        #expect(
            try await workspace.query("SELECT * FROM variant ORDER BY 1, 2") == before)
        let quiet = try await workspace.run("verify", "-q", "--sample", "50%")
        #expect(quiet.status == 0 && quiet.error.isEmpty, "\(quiet)")
    }

    /// Good, unusual and hostile files of every format, stored unchanged and re-encoded, match
    /// their rows.
    @Test func acceptsEveryFormat() async throws {
        let tests = SourceTree.tests
        try await withOrigin { origin in
            var urls: [String] = []
            for folder in ["BitmapSamples", "FormatSamples"] {
                let samples = tests.appending(path: folder)
                let paths = try FileManager.default.subpathsOfDirectory(atPath: samples.path)
                for path in paths.sorted() where !path.hasSuffix(".tsv") {
                    guard let bytes = try? Data(contentsOf: samples.appending(path: path)) else {
                        continue
                    }
                    origin.serve("/\(folder)/\(path)", .image([UInt8](bytes)))
                    urls.append(origin.url("/\(folder)/\(path)"))
                }
            }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.prefetch(
                    urls, "--store-original", "--variant", "web=webp")
                #expect((run.summary.outcomes["downloaded"] ?? 0) > 100, "\(run.result)")
                let result = try await workspace.run("verify")
                #expect(result.status == 0 && result.output.isEmpty, "\(result)")
                // Pillow, which the judge uses, does not read all of these.
                let removed = try await workspace.run("remove", "--all")
                #expect(removed.status == 0, "\(removed)")
            }
        }
    }

    // MARK: Damage

    private enum Damage: String, CaseIterable {
        case removed, cut, longer, emptied, flipped, zeroed, otherFile, folder, link, pipe, renamed
        case unreadable

        var kind: String {
            switch self {
            case .removed, .folder, .link, .pipe, .renamed: "missing"
            case .cut, .emptied: "truncated"
            case .flipped, .zeroed, .otherFile, .longer: "damaged"
            case .unreadable: "unreadable"
            }
        }

        /// The kind of an additional finding.
        var other: String? {
            switch self {
            case .link: "unexpected"
            case .renamed: "orphan"
            case .removed, .cut, .longer, .emptied, .flipped, .zeroed, .otherFile, .folder, .pipe,
                .unreadable:
                nil
            }
        }

        /// The last line's description of a repair.
        var advice: String {
            switch self {
            case .folder, .unreadable: "1 problem found, which --repair cannot fix"
            case .link: "2 problems found; --repair fixes 1 of them"
            case .renamed: "2 problems found; --repair fixes them"
            case .removed, .cut, .longer, .emptied, .flipped, .zeroed, .otherFile, .pipe:
                "1 problem found; --repair fixes it"
            }
        }

        /// Damages a file of the cache.
        func apply(to path: String) throws {
            let manager = FileManager.default
            var bytes = try Data(contentsOf: URL(filePath: path))
            switch self {
            case .removed: try manager.removeItem(atPath: path)
            case .cut: try bytes.dropLast().write(to: URL(filePath: path))
            case .longer: try (bytes + [0]).write(to: URL(filePath: path))
            case .emptied: try Data().write(to: URL(filePath: path))
            case .flipped:
                bytes[bytes.count / 2] ^= 1
                try bytes.write(to: URL(filePath: path))
            case .zeroed:
                // The effect of a power cut on a page.
                let start = bytes.count / 2
                bytes.replaceSubrange(
                    start..., with: Data(repeating: 0, count: bytes.count - start))
                try bytes.write(to: URL(filePath: path))
            case .renamed:
                let file = URL(filePath: path)
                let digest = file.deletingPathExtension().lastPathComponent
                let other = digest.dropLast() + (digest.last == "0" ? "1" : "0")
                try manager.moveItem(
                    at: file,
                    to: file.deletingLastPathComponent().appending(
                        path: "\(other).\(file.pathExtension)"))
            case .otherFile:
                try Data(repeating: 7, count: bytes.count).write(to: URL(filePath: path))
            case .folder:
                try manager.removeItem(atPath: path)
                try manager.createDirectory(atPath: path, withIntermediateDirectories: false)
            case .link:
                try manager.moveItem(atPath: path, toPath: path + ".moved")
                try manager.createSymbolicLink(
                    atPath: path, withDestinationPath: path + ".moved")
            case .pipe:
                try manager.removeItem(atPath: path)
                #expect(mkfifo(path, 0o600) == 0)
            case .unreadable:
                try manager.setAttributes([.posixPermissions: 0], ofItemAtPath: path)
            }
        }
    }

    @Test(arguments: Damage.allCases)
    private func findsAndRepairsDamage(damage: Damage) async throws {
        try await withImages { _, workspace, urls in
            let path = try await path(of: urls[0], in: workspace)
            try damage.apply(to: path)
            let others = [damage.other].compactMap(\.self)
            #expect(try await findings(workspace) == [damage.kind] + others)
            // Root may read everything.
            let text = try await workspace.command(["verify"]).withoutPrivileges().run()
            let relative = path.dropFirst(workspace.cache.count + 1)
            #expect(text.output.contains("\(relative): \(damage.kind): "), "\(text)")
            #expect(text.output.contains("(\(urls[0]))"), "\(text)")
            #expect(text.error.hasSuffix(": \(damage.advice)\n"), "\(text)")

            // Foreign files at the path of a content file are not removed.
            let isRepairable = damage != .folder && damage != .unreadable
            let repaired = damage.kind + (isRepairable ? " repaired" : "")
            #expect(
                try await findings(workspace, "--repair")
                    == [repaired] + others.map { $0 == "orphan" ? "orphan repaired" : $0 })
            if damage == .folder { try FileManager.default.removeItem(atPath: path) }
            if damage == .link { try FileManager.default.removeItem(atPath: path + ".moved") }
            if damage == .unreadable {
                try FileManager.default.setAttributes(
                    [.posixPermissions: 0o600], ofItemAtPath: path)
            }
            #expect(try await findings(workspace) == [])
            let web = try await workspace.run("get", urls[0], "--variant", "web")
            #expect(web.status == 0, "\(web)")
        }
    }

    @Test func removesRowsOfADamagedFileAndFilesWithoutRows() async throws {
        try await withImages { origin, workspace, urls in
            let shared = try await path(of: urls[1], in: workspace)
            try Damage.flipped.apply(to: shared)
            let result = try await workspace.run("verify", "--repair")
            #expect(result.output.contains("(\(urls[1]) and 1 more): repaired\n"), "\(result)")
            #expect(
                result.error.contains("1 problem found and repaired; the next run"), "\(result)")
            let again = try await workspace.prefetch(urls, "--variant", "web=webp,q=50")
            #expect(again.summary.outcomes == ["downloaded": 2, "fresh": 2], "\(again.result)")

            let path = try await path(of: urls[0], in: workspace)
            try await workspace.runSQL("DELETE FROM resource WHERE key = '\(urls[0])'")
            let folder = URL(filePath: path).deletingLastPathComponent()
            try Data([1]).write(to: folder.appending(path: "notes.txt"))
            #expect(try await findings(workspace) == ["orphan", "orphan", "unexpected"])
            #expect(
                try await findings(workspace, "--repair") == [
                    "orphan repaired", "orphan repaired", "unexpected",
                ])
            #expect(!FileManager.default.fileExists(atPath: path))
            try FileManager.default.removeItem(at: folder.appending(path: "notes.txt"))
            #expect(try await findings(workspace) == [])
        }
    }

    /// Kept for rows that a damaged database has lost, until a repair.
    @Test func keepsOrphansUntilRepair() async throws {
        try await withImages { _, workspace, urls in
            for name in ["prefetch.sqlite", "prefetch.sqlite-wal", "snapshot.sqlite"] {
                try? FileManager.default.removeItem(atPath: workspace.cache + "/" + name)
            }
            let run = try await workspace.prefetch([urls[0]])
            #expect(run.summary.outcomes == ["downloaded": 1], "\(run.result)")
            #expect(try await findings(workspace).allSatisfy { $0 == "orphan" })
            let property = "SELECT name FROM property WHERE name = 'orphans_kept_before'"
            #expect(try await workspace.query(property).count == 1)
            #expect(try await findings(workspace, "--repair").count == 5)
            #expect(try await workspace.query(property).isEmpty)
            #expect(try await findings(workspace) == [])
        }
    }

    @Test func repairsInconsistentRows() async throws {
        try await withImages { _, workspace, urls in
            try await expectSound(workspace)
            let before = try await workspace.query("SELECT * FROM freshness ORDER BY 1")
            for (sql, kind, count) in [
                ("DELETE FROM freshness WHERE resource_id = 1", "freshness", 2),
                (
                    "UPDATE freshness SET expires_at = expires_at + 1 WHERE resource_id = 2",
                    "freshness", 2
                ),
                ("UPDATE freshness SET superseded = 1 WHERE resource_id = 3", "freshness", 2),
                (
                    "INSERT INTO freshness VALUES (1, 1, 1, 0, 9000000000000, NULL, 0)",
                    "freshness", 1
                ),
                ("UPDATE resource SET vary = 'accept: x' WHERE id = 1", "freshness", 2),
                // The file has another width.
                (
                    "UPDATE variant SET width = width + 1 WHERE resource_id = 4 AND name = 0",
                    "mismatch", 1
                ),
                // There is no such part of a body.
                (
                    """
                    INSERT INTO partial (key, url, etag, bytes, sha256, created_at)
                    VALUES ('k', 'https://example.com/k', '"e"', 2000000, zeroblob(32), 1)
                    """, "partial", 1
                ),
            ] {
                try await workspace.runSQL(sql)
                let found = Array(repeating: kind, count: count)
                #expect(try await findings(workspace) == found, "\(sql)")
                #expect(
                    try await findings(workspace, "--repair") == found.map { $0 + " repaired" },
                    "\(sql)")
                #expect(try await findings(workspace) == [], "\(sql)")
                if kind == "freshness", !sql.contains("vary") {
                    let after = try await workspace.query("SELECT * FROM freshness ORDER BY 1")
                    #expect(after == before, "\(sql)")
                }
            }
            #expect(try await workspace.query("SELECT * FROM partial").isEmpty)
        }
    }

    @Test func leavesDamagedDatabaseToNextRun() async throws {
        try await withImages { _, workspace, urls in
            try await workspace.runSQL(
                """
                PRAGMA writable_schema = ON;
                UPDATE sqlite_schema SET sql = replace(sql, 'source_bytes INTEGER', 'source_bytes TEXT')
                WHERE name = 'resource';
                """)
            let result = try await workspace.run("verify", "--json")
            #expect(
                result.status == 2 && result.error.contains("not as this prefetch makes it"),
                "\(result)")
            let run = try await workspace.prefetch(urls, "--variant", "web=webp,q=50")
            #expect(run.result.error.contains("damaged"), "\(run.result)")
            #expect(try await findings(workspace) == [])
            let set = try FileManager.default.contentsOfDirectory(atPath: workspace.cache)
            for name in set where name.contains("damaged-") {
                try FileManager.default.removeItem(atPath: workspace.cache + "/" + name)
            }
        }
    }

    // MARK: Concurrent runs

    /// Files are stored before their rows are committed, and replaced after them.
    @Test func findsNothingDuringRun() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(300)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                _ = try await workspace.prefetch([urls[0]])
                let running = try workspace.prefetchCommand(
                    urls, ["--host-interval", "3ms", "--refresh", "force"]
                ).start()
                for _ in 0..<8 {
                    let result = try await workspace.run("verify")
                    #expect(result.status == 0 && result.output.isEmpty, "\(result)")
                }
                #expect(await running.wait().status == 0)
            }
        }
    }
}

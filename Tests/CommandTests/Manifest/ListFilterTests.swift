import Foundation
import TestSupport
import Testing

/// `list`: filters, order, limits and errors.
@Suite(.timeLimit(.minutes(15)))
struct ListFilterTests {
    private static let hour: Int64 = 3_600_000

    /// Makes a cache of five images of two hosts, with rows altered by SQL.
    private func withImages(_ body: (Workspace, Origin) async throws -> Void) async throws {
        try await withOrigin { origin in
            let names = ["a", "b", "c", "d", "e"]
            for (index, name) in names.enumerated() {
                origin.serve("/\(name)", .image(Fixtures.png(seed: index)))
            }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.prefetch(
                    names.map { origin.url("/\($0)") } + ["\(origin.url("/a"))?2 attr.n=v"],
                    "--variant", "web=jpeg,q=50")
                #expect(run.summary.outcomes == ["downloaded": 6], "\(run.result)")
                try await body(workspace, origin)
                // Rows that no run has written are nothing for the judge.
                try FileManager.default.removeItem(atPath: workspace.cache)
            }
        }
    }

    /// The last parts of the keys with the variants' names, in the order of the lines.
    private func listed(_ workspace: Workspace, _ options: [String]) async throws -> [String] {
        let text = try await workspace.command(["list"] + options).run()
        #expect(text.status == 0 && text.error.isEmpty, "\(text)")
        let rows = text.outputLines.map {
            $0.split(separator: "\t").map(String.init)
        }
        let lines = rows.map { row in
            "\(row[6].split(separator: "/").last ?? "") \(row.count > 7 ? row[7] : "main")"
        }
        // Programs are told the same.
        let json = try await workspace.command(["list", "--json"] + options).run()
        let objects = try json.jsonLines()
        #expect(
            objects.map { object in
                let key = object["key"] as? String ?? ""
                return
                    "\(key.split(separator: "/").last ?? "") \(object["variant"] as? String ?? "")"
            } == lines, "\(json)")
        for (object, row) in zip(objects, rows) {
            #expect((object["fresh"] as? Bool) == (row[0] == "fresh"), "\(row)")
            #expect(object["format"] as? String == row[2] && "\(object["bytes"] ?? "")" == row[4])
            #expect(object["path"] as? String == row[5], "\(row)")
        }
        return lines
    }

    /// Each of the rows has something of its own.
    private func setApart(_ workspace: Workspace) async throws {
        let now = Int64(Date().timeIntervalSince1970 * 1000)
        let hour = Self.hour
        try await workspace.runSQL(
            """
            DELETE FROM variant WHERE name <> 0 AND resource_id <>
                (SELECT id FROM resource WHERE key LIKE '%/a');
            UPDATE resource SET validated_at = \(now - hour), fetched_at = \(now - hour),
                expires_at = \(now + 1000 * hour);
            UPDATE resource SET fetched_at = \(now - 50 * hour) WHERE key LIKE '%/b';
            UPDATE resource SET fetched_at = \(now - 20 * hour), expires_at = \(now + 10 * hour)
                WHERE key LIKE '%/c';
            UPDATE resource SET expires_at = \(now - hour) WHERE key LIKE '%/d';
            UPDATE resource SET expires_at = 0 WHERE key LIKE '%/e';
            UPDATE resource SET validated_at = \(now + 1000 * hour) WHERE key LIKE '%?2';
            """)
    }

    private static let selections = [
        ([], "a web,a main,a?2 main,b main,c main,d main,e main"),
        (["--limit", "2"], "a web,a main"),
        (["-n", "1", "--reverse"], "e main"),
        (["--reverse"], "e main,d main,c main,b main,a?2 main,a main,a web"),
        (["--format", "jpg"], "a web"),
        (["--format", "gif", "--format", "png", "-n", "2"], "a main,a?2 main"),
        (["--format", "gif"], ""),
        (["--older-than", "10h"], "b main,c main"),
        (["--newer-than", "10h"], "a web,a main,a?2 main,d main,e main"),
        (["--older-than", "10h", "--newer-than", "30h"], "c main"),
        (["--fresh"], "a web,a main,b main,c main"),
        (["--expired"], "a?2 main,d main,e main"),
        (["--expires-within", "1d"], "a?2 main,c main,d main,e main"),
        (["--expires-within", "1d", "--fresh"], "c main"),
        (["--variant", "web"], "a web"),
        (["--variant", "main", "--limit", "2"], "a main,a?2 main"),
        (["--variant", "jpeg;q=50;strip=safe"], "a web"),
        (["--variant", "jpeg;q=51;strip=safe"], ""),
        (["--sort", "age", "--limit", "3"], "b main,c main,a web"),
        (["--sort", "age", "--reverse", "--limit", "3"], "e main,d main,a?2 main"),
        (["--sort", "expiry", "--limit", "3"], "e main,d main,c main"),
        (["--host", "127.0.0.1", "--host", "example.com", "-n", "1"], "a web"),
        (["--host", "example.com", "--sort", "host"], ""),
        (["--sort", "key"], "a web,a main,a?2 main,b main,c main,d main,e main"),
    ]

    @Test func imagesArePickedAndSorted() async throws {
        try await withImages { workspace, _ in
            try await expectSizesOfTheLines(workspace)
            try await setApart(workspace)
            for (options, expected) in ListFilterTests.selections {
                let lines = try await listed(workspace, options)
                #expect(lines == expected.split(separator: ",").map(String.init), "\(options)")
            }
            let unknown = try await workspace.run("list", "--variant", "webb")
            #expect(unknown.status == 64 && unknown.output.isEmpty, "\(unknown)")
            #expect(unknown.error.contains("did you mean 'web'"), "\(unknown)")
        }
    }

    /// Order and limits match the printed values.
    private func expectSizesOfTheLines(_ workspace: Workspace) async throws {
        func sizes(_ options: String...) async throws -> [Int] {
            let result = try await workspace.command(["list"] + options).run()
            #expect(result.status == 0, "\(result)")
            return result.outputLines.compactMap { Int($0.split(separator: "\t")[4]) }
        }
        let all = try await sizes()
        #expect(all.count == 12)
        let sorted = all.sorted()
        #expect(try await sizes("--sort", "bytes") == sorted.reversed())
        let least4 = try await sizes("--sort", "bytes", "--reverse", "-n", "4")
        #expect(least4 == Array(sorted.prefix(4)))
        let (least, most) = (sorted[3], sorted[8])
        let within = sorted.filter { $0 >= least && $0 <= most }
        #expect(
            try await sizes(
                "--min-bytes", "\(least)", "--max-bytes", "\(most)", "--sort", "bytes",
                "--reverse") == within)
    }

    // MARK: Keys other than plain text, and damage

    @Test func unusualRowsAreShownSafelyOrRefused() async throws {
        try await withImages { workspace, _ in
            try await workspace.runSQL("PRAGMA user_version = 7")
            let manifest = try workspace.manifest(["http://127.0.0.1:9/a"])
            for command in [
                ["list"], ["list", "--json"], ["history"], ["hosts"], ["stats"],
                ["plan", manifest],
                ["plan", "--shards", "2", "-o", "plan.json", manifest],
            ] {
                let result = try await workspace.command(command).run()
                #expect(result.status == 2 && result.output.isEmpty, "\(result)")
                #expect(result.error.contains("has schema version 7"), "\(result)")
                #expect(result.error.contains("hint: use the prefetch that made it"), "\(result)")
            }
            try await workspace.runSQL("PRAGMA user_version = 1")
            #expect(try await listed(workspace, ["-n", "1"]) == ["a web"])
            try await workspace.runSQL(
                """
                UPDATE resource SET key = '1 ' || key WHERE key LIKE '%/a';
                UPDATE resource SET key = '2 ü' || char(9, 10, 27, 8238) || key WHERE key LIKE '%/b';
                UPDATE resource SET key = '3 ' || CAST(x'80FF41' AS TEXT) || key WHERE key LIKE '%/c';
                UPDATE resource SET key = '4 ' || printf('%.*c', 300000, 'x') WHERE key LIKE '%/d';
                """)
            let list = try await workspace.run("list", "--variant", "main", "-n", "4")
            let keys = list.outputLines.map {
                $0.split(separator: "\t").last.map(String.init) ?? ""
            }
            try #require(list.status == 0 && keys.count == 4, "\(list.error)")
            #expect(keys[0].hasPrefix("1 http://"))
            #expect(keys[1].hasPrefix(#"2 ü\t\n\u{1B}\u{202E}http://"#), "\(keys[1])")
            #expect(keys[2].hasPrefix("3 \u{FFFD}\u{FFFD}Ahttp://"), "\(keys[2])")
            #expect(keys[3].count == 300_002)

            try await workspace.runSQL("UPDATE variant SET width = -1 WHERE name <> 0")
            let result = try await workspace.run("list")
            #expect(result.status == 2 && result.error.contains("damaged"), "\(result)")
        }
    }

    // MARK: Its end

    /// Longer than a pipe's buffer: the reader closes it before all is written.
    @Test func aClosedPipeIsNoErrorAndAFullDiskIs() async throws {
        try await withImages { workspace, _ in
            try await workspace.runSQL(
                """
                WITH RECURSIVE more(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more WHERE n < 3000)
                INSERT INTO resource (key, url, host, fetched_at, validated_at, expires_at, source_bytes,
                    source_format, source_sha256, source_width, source_height)
                SELECT key || '?x' || n, url || '?x' || n, host, fetched_at, validated_at, expires_at,
                    source_bytes, source_format, source_sha256, source_width, source_height
                FROM more, resource WHERE key LIKE '%/a';
                INSERT INTO variant (resource_id, recipe, sha256, format, width, height, bytes, created_at,
                    last_access_at)
                SELECT new.id, recipe, sha256, format, width, height, bytes, created_at, last_access_at
                FROM resource AS old JOIN variant ON resource_id = old.id AND name = 0,
                    resource AS new
                WHERE old.key LIKE '%/a' AND new.key LIKE old.key || '?x%';
                """)
            for options in [[], ["--json"], ["--sort", "bytes"]] {
                let whole = try await workspace.command(["list"] + options).run()
                #expect(whole.outputBytes.count > 100_000)
                let command = workspace.command(["list"] + options)
                let result = try await command.inShell(
                    #""$0" "$@" | head -n 1; exit "${PIPESTATUS[0]}""#
                ).run()
                #expect(result.status == 0 && result.error.isEmpty, "\(result)")
                #expect(result.output == whole.output.prefix { $0 != "\n" } + "\n")
                let full = try await command.inShell(#"exec "$0" "$@" > /dev/full"#).run()
                #expect(full.status == 2, "\(full)")
                #expect(full.error.contains("No space left"), "\(full)")
            }
        }
    }

    /// Images stored while the list is written are in the next list.
    @Test func aRunContinuesBesideAnUnreadList() async throws {
        try await withImages { workspace, origin in
            origin.serve("/f", .image(Fixtures.png(seed: 77)))
            var slow = workspace.command(["list"])
            // The reader opens the pipe, and reads when it is told to by the end of the run.
            slow = slow.inShell(
                #""$0" "$@" | (read -r line; echo "$line"; until test -e done; do read -t 0.05 <> <(:); done; cat)"#
            )
            let list = try slow.start()
            let run = try await workspace.prefetch([origin.url("/f")])
            #expect(run.summary.outcomes == ["downloaded": 1], "\(run.result)")
            try workspace.write([], to: "done")
            let result = await list.wait()
            #expect(result.status == 0, "\(result)")
            #expect(try await listed(workspace, []).contains("f main"))
        }
    }
}

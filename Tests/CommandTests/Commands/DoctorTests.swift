import Foundation
import Glibc
import TestSupport
import Testing

/// `prefetch doctor` reports each problem with its remedy, reports no false problems, and changes
/// nothing.
@Suite(.timeLimit(.minutes(15)))
struct DoctorTests {
    private struct Line: Equatable {
        let state: String
        let message: String
        let remedy: String?
    }

    /// The lines of the JSON output by check; the last one of equal names.
    private func lines(_ result: CommandResult) throws -> [String: Line] {
        let objects = try result.jsonLines()
        let summary = try #require(objects.last)
        #expect(summary["type"] as? String == "summary", "\(result)")
        #expect(summary["exit_status"] as? Int == result.status.map(Int.init), "\(result)")
        #expect(summary["checks"] as? Int == objects.count - 1, "\(result)")
        var lines: [String: Line] = [:]
        for object in objects.dropLast() {
            #expect(object["type"] as? String == "check", "\(result)")
            let name = try #require(object["check"] as? String)
            lines[name] = Line(
                state: try #require(object["state"] as? String),
                message: try #require(object["message"] as? String),
                remedy: object["remedy"] as? String)
        }
        return lines
    }

    private func doctor(_ workspace: Workspace, _ options: String...) async throws -> CommandResult
    {
        try await workspace.command(["doctor", "--json"] + options).run()
    }

    /// The only problem in the output.
    private func onlyProblem(_ result: CommandResult) throws -> (check: String, line: Line) {
        let wrong = try lines(result).filter { $0.value.state != "ok" }
        #expect(wrong.count == 1 && result.status == 1, "\(result)")
        let (check, line) = try #require(wrong.first, "\(result)")
        #expect(line.state == "wrong" && line.remedy != nil, "\(result)")
        return (check, line)
    }

    private func withCache(_ body: (Origin, Workspace, [String]) async throws -> Void) async throws
    {
        try await withOrigin { origin in
            let urls = origin.serveImages(3)
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                _ = try await workspace.prefetch(urls)
                try await body(origin, workspace, urls)
            }
        }
    }

    /// A fingerprint of all files below the cache: names, inodes, modes, sizes and times.
    private func cacheState(_ workspace: Workspace) async throws -> String {
        let script = """
            import os
            for parent, folders, names in os.walk("cache"):
                for name in ["."] + names:
                    path = os.path.join(parent, name)
                    s = os.lstat(path)
                    # SQLite gives a log that root opens to the database's owner, who has it.
                    changed = 0 if "sqlite-" in name else s.st_ctime_ns
                    print(path, s.st_ino, s.st_mode, s.st_uid, s.st_size, s.st_mtime_ns, changed)
            """
        let answer = try await PythonServer.run(script, folder: workspace.folder)
        #expect(answer.status == 0)
        return answer.text.split(separator: "\n").sorted().joined(separator: "\n")
    }

    // MARK: Healthy caches

    @Test func printsOneLinePerCheckAndChangesNothing() async throws {
        try await withCache { _, workspace, _ in
            let before = try await cacheState(workspace)
            let result = try await doctor(workspace)
            #expect(result.status == 0 && result.error.isEmpty, "\(result)")
            let lines = try lines(result)
            #expect(
                Set(lines.keys)
                    == [
                        "directory", "owner", "modes", "file-system", "space", "database", "log",
                        "lock", "runs", "leftovers", "hosts", "failures", "open-files", "libraries",
                        "sandbox",
                    ], "\(result)")
            #expect(lines.values.allSatisfy { $0.state == "ok" && $0.remedy == nil }, "\(result)")
            #expect(lines["owner"]?.message.contains("(uid \(geteuid()))") == true)
            #expect(lines["lock"]?.message == "free" && lines["log"]?.message == "empty")
            #expect(lines["runs"]?.message.contains("ended with 0") == true)
            #expect(try await cacheState(workspace) == before)

            let text = try await workspace.run("doctor")
            #expect(text.status == 0 && text.output.hasPrefix("✓ directory    /"), "\(text)")
            #expect(
                text.outputLines.count { $0.hasPrefix("✓ ") } == 15, "\(text)")
            try workspace.write([1], to: "cache/tmp/left")
            var command = workspace.command(["doctor"])
            command.environment["LC_ALL"] = "C"
            let plain = try await command.run()
            #expect(plain.output.utf8.allSatisfy { $0 < 0x80 } && plain.status == 1, "\(plain)")
            #expect(
                plain.output.contains("\nwrong   leftovers    1 file of 1 B in tmp\n"), "\(plain)")
            #expect(plain.output.contains("\n                     -> the next run "), "\(plain)")
            try workspace.removeFile("tmp/left")
        }
    }

    /// Files that the owner may not write, which a run has to.
    @Test func namesFilesThatARunCannotWrite() async throws {
        try await withCache { _, workspace, _ in
            for (name, mode) in [
                ("lock", 0o444), ("prefetch.sqlite", 0o444), ("tmp", 0o555), (".", 0o555),
                (".", 0o500),
            ] {
                let path = "\(workspace.cache)/\(name)"
                let isFolder = name == "." || name == "tmp"
                try #require(chmod(path, mode_t(mode)) == 0)
                defer { chmod(path, isFolder ? 0o700 : 0o600) }
                let result = try await workspace.command(["doctor", "--json"])
                    .withoutPrivileges().run()
                let lines = try lines(result)
                let modes = try #require(lines["modes"])
                #expect(modes.state == "wrong" && result.status == 1, "\(result)")
                let bits = String(mode, radix: 8)
                #expect(modes.message.contains("\(name) (0\(bits))"), "\(result)")
                #expect(modes.remedy?.contains("chmod u+rwX \(name)") == true, "\(result)")
                if mode == 0o500 { #expect(lines["runs"]?.state == "ok", "\(result)") }
            }
        }
    }

    // MARK: No cache

    @Test func reportsMissingCacheWithoutCreatingOne() async throws {
        try await withWorkspace { workspace in
            let wrong = try onlyProblem(await doctor(workspace))
            #expect(wrong.check == "directory" && wrong.line.message == "there is no cache yet")
            #expect(wrong.line.remedy?.contains("`prefetch run` creates it") == true)
            let online = try await doctor(workspace, "--online")
            #expect(online.status == 1, "\(online)")
            #expect(!FileManager.default.fileExists(atPath: workspace.cache))
            let manager = FileManager.default
            try manager.createDirectory(
                atPath: workspace.cache, withIntermediateDirectories: false,
                attributes: [.posixPermissions: 0o700])
            try workspace.write([1], to: "cache/thesis.txt")
            let foreign = try onlyProblem(await doctor(workspace))
            #expect(foreign.line.message == "is not a prefetch cache")
            try manager.removeItem(atPath: workspace.cache)
        }
    }

    // MARK: After runs

    @Test func reportsKilledRun() async throws {
        try await withCache { origin, workspace, urls in
            let gate = Gate()
            origin.serve("/held", .image(Fixtures.png(seed: 50), gate: gate))
            let running = try workspace.prefetchCommand([origin.url("/held")]).start()
            try await origin.wait(for: "one held") { $0.inFlight == 1 }
            running.signal(SIGKILL)
            _ = await running.wait()
            gate.open()
            let before = try await cacheState(workspace)
            let wrong = try onlyProblem(await doctor(workspace))
            #expect(wrong.check == "runs" && wrong.line.message.contains("was killed"))
            #expect(try await cacheState(workspace) == before)
            _ = try await workspace.prefetch(urls)
            #expect(try await doctor(workspace).status == 0)
        }
    }

    @Test func reportsEachProblem() async throws {
        try await withCache { _, workspace, urls in
            func expect(
                _ check: String, _ text: String, sourceLocation: SourceLocation = #_sourceLocation
            ) async throws {
                let wrong = try onlyProblem(await doctor(workspace))
                #expect(wrong.check == check, "\(wrong)", sourceLocation: sourceLocation)
                #expect(
                    wrong.line.message.contains(text), "\(wrong)", sourceLocation: sourceLocation)
            }
            let future = Int64(Date().timeIntervalSince1970 * 1000) + 3_600_000
            try await workspace.runSQL(
                "INSERT INTO host (host, concurrency, failures_in_a_row, cooling_until, updated_at) VALUES ('https://a.test', NULL, 5, \(future), \(future - 3_600_000))"
            )
            try await expect("hosts", "https://a.test is not requested until")
            try await workspace.runSQL("DELETE FROM host")
            try await workspace.runSQL("INSERT INTO property VALUES ('removal_unfinished', 1)")
            try await expect("leftovers", "a removal was interrupted")
            try await workspace.runSQL("DELETE FROM property")
            try await workspace.runSQL("INSERT INTO property VALUES ('file_mode', 420)")
            try await expect(
                "modes", "these do not have the remembered mode 0644: ., CACHEDIR.TAG")
            try await workspace.runSQL("DELETE FROM property")
            try await workspace.runSQL("UPDATE run SET exit_status = 2")
            try await expect("runs", "could not be completed")
            try await workspace.runSQL("UPDATE run SET exit_status = 0")
            try workspace.write([1, 2], to: "cache/prefetch.sqlite.damaged-20260101T000000Z")
            try await expect("leftovers", "prefetch.sqlite.damaged-20260101T000000Z")
            try workspace.removeFile("prefetch.sqlite.damaged-20260101T000000Z")
            try workspace.write([], to: "cache/suspect")
            try await expect("database", "a command found it damaged")
            try workspace.removeFile("suspect")
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o770], ofItemAtPath: workspace.cache)
            try await expect("modes", "the group may write")
            try FileManager.default.setAttributes(
                [.posixPermissions: 0o700], ofItemAtPath: workspace.cache)
            var command = workspace.command(["doctor", "--json"])
            command = command.inShell("ulimit -n 128; exec \"$0\" \"$@\"")
            let limit = try onlyProblem(await command.run())
            #expect(limit.check == "open-files" && limit.line.message.contains("(--jobs)"))
            #expect(try await doctor(workspace).status == 0)
        }
    }

    // MARK: The database

    @Test(arguments: [
        ("damaged", "is damaged: ", "replaces it and salvages"),
        ("newer", "has schema version 99", "another directory"),
        ("foreign", "is the database of another program", "--cache-dir"),
    ])
    func reportsUnreadableDatabaseWithoutChanges(
        kind: String, message: String, remedy: String
    ) async throws {
        try await withCache { _, workspace, _ in
            let path = workspace.cache + "/prefetch.sqlite"
            let whole = try Data(contentsOf: URL(filePath: path))
            switch kind {
            case "newer":
                try await workspace.runSQL("PRAGMA user_version = 99")
            case "foreign":
                try await workspace.runSQL(
                    "PRAGMA application_id = 77; DROP TABLE freshness")
            default:
                var bytes = whole
                bytes.replaceSubrange(4096..<12288, with: Data(repeating: 0x41, count: 8192))
                try bytes.write(to: URL(filePath: path))
            }
            let before = try await cacheState(workspace)
            let result = try await doctor(workspace)
            let line = try #require(try lines(result)["database"])
            #expect(result.status == 1 && line.state == "wrong", "\(result)")
            #expect(line.message.contains(message), "\(result)")
            #expect(line.remedy?.contains(remedy) == true, "\(result)")
            // The other checks still run.
            #expect(try lines(result)["lock"]?.state == "ok", "\(result)")
            #expect(try await cacheState(workspace) == before)
            try whole.write(to: URL(filePath: path))
        }
    }

    // MARK: Location and permissions

    @Test(
        .enabled(if: OtherUser.isPossible, "needs root, and a program that everybody may start"))
    func reportsAccessOfOtherUsers() async throws {
        try await withCache { _, workspace, _ in
            try workspace.openFolder()
            let hidden = try await workspace.asOtherUser("doctor", "--json")
            #expect(hidden.status == 2, "\(hidden)")
            #expect(try lines(hidden)["directory"]?.state == "unknown", "\(hidden)")
            #expect(try await workspace.run("chmod", "0644").status == 0)
            let shown = try await workspace.asOtherUser("doctor", "--json")
            #expect(shown.status == 0, "\(shown)")
            #expect(
                try lines(shown)["owner"]?.message.contains("you can read it") == true, "\(shown)")
            #expect(try lines(shown)["modes"]?.message.contains("0644") == true, "\(shown)")
        }
    }

    @Test(.enabled(if: !Sanitizer.isActive, "a sanitizer is loaded first"))
    func namesNetworkFileSystem() async throws {
        try await withCache { _, workspace, _ in
            let result = try await NetworkFileSystemCommandTests.onNetwork(
                workspace.command(["doctor", "--json"])
            ).run()
            #expect(result.status == 0, "\(result)")
            #expect(
                try lines(result)["file-system"]?.message.hasPrefix("nfs, a network") == true)
        }
    }

    // MARK: Online

    /// The origins of requested roots.
    private func origins(_ result: CommandResult) throws -> [String] {
        try result.jsonLines().filter { $0["check"] as? String == "origin" }
            .compactMap { $0["message"] as? String }
    }

    @Test func onlineChecksOriginsAndClock() async throws {
        try await withCache { origin, workspace, _ in
            var root = Response.picture(Fixtures.png())
            root.headers.append(("Date", HTTPDateText.now()))
            origin.serve("/", root)
            let before = try await cacheState(workspace)
            let right = try await doctor(workspace, "--online")
            #expect(right.status == 0, "\(right)")
            #expect(try origins(right).first?.contains(": 200 in ") == true, "\(right)")
            #expect(try lines(right)["clock"]?.message.hasSuffix("by 1 origin") == true, "\(right)")
            root.headers[root.headers.count - 1].value = "Sun, 06 Nov 1994 08:49:37 GMT"
            origin.serve("/", root)
            let wrong = try onlyProblem(await doctor(workspace, "--online"))
            #expect(wrong.check == "clock" && wrong.line.message.contains("ahead of 1 origin"))
            #expect(try await cacheState(workspace) == before)
            // Without --online there are no requests.
            let count = origin.snapshot.count(of: "/")
            _ = try await doctor(workspace)
            #expect(origin.snapshot.count(of: "/") == count)

            // The port is closed.
            try await workspace.runSQL("UPDATE resource SET host = 'http://127.0.0.1:1'")
            let closed = try await doctor(workspace, "--online")
            #expect(closed.status == 1, "\(closed)")
            #expect(
                try origins(closed).first?.hasPrefix("http://127.0.0.1:1: connect: ") == true,
                "\(closed)")
            #expect(try lines(closed)["clock"]?.state == "unknown", "\(closed)")
            var command = workspace.command(["doctor", "--json", "--online"])
            command.environment["http_proxy"] = "gopher://nobody"
            let proxy = try await command.run()
            let problem = try #require(try lines(proxy)["requests"])
            #expect(problem.message.hasPrefix("a proxy in the environment is not "), "\(proxy)")
            #expect(try origins(proxy).isEmpty && lines(proxy)["database"]?.state == "ok")
            try await workspace.runSQL("UPDATE resource SET host = 'http://nobody.invalid'")
            let unknown = try await doctor(workspace, "--online")
            #expect(unknown.status == 1, "\(unknown)")
            #expect(
                try origins(unknown).first?.hasPrefix("http://nobody.invalid: ") == true,
                "\(unknown)")
            let own = origin.url("").trimmingCharacters(in: ["/"])
            try await workspace.runSQL("UPDATE resource SET host = '\(own)'")
        }
    }

    /// The request flags of a run.
    @Test func onlineSendsWhatRunSends() async throws {
        try await withCache { origin, workspace, _ in
            origin.serve { request in
                request.path == "/" && request.header("authorization") == "Basic bWU6c2VjcmV0"
                    && request.header("x-token") == "7" && request.header("cookie") == "a=1"
                    && request.header("user-agent") == "checker"
                    ? Response(200, headers: [("Set-Cookie", "b=2; Max-Age=999")])
                    : Response(418)
            }
            let jar = URL(filePath: workspace.folder + "/jar.txt")
            let cookies = "127.0.0.1\tFALSE\t/\tFALSE\t0\ta\t1\n"
            try Data(cookies.utf8).write(to: jar)
            let flags = [
                "--user", "me:secret", "--header", "X-Token: 7", "--cookie-jar", jar.path,
                "--user-agent", "checker",
            ]
            let right = try await workspace.command(["doctor", "--json", "--online"] + flags).run()
            #expect(try origins(right).first?.contains(": 200 in ") == true, "\(right)")
            #expect(try String(contentsOf: jar, encoding: .utf8) == cookies)
            let bare = try await doctor(workspace, "--online")
            #expect(try origins(bare).first?.contains(": 418 in ") == true, "\(bare)")

            // A run could not use these; the other checks are still made.
            var command = workspace.command(["doctor", "--json"])
            command.environment["SSL_CERT_FILE"] = "missing.pem"
            let found = try onlyProblem(await command.run())
            #expect(found.check == "requests" && found.line.message.hasPrefix("missing.pem: "))
            #expect(found.line.remedy == "SSL_CERT_FILE names this file")
            let wrong = try await doctor(workspace, "--header", "no colon")
            #expect(wrong.status == 64 && wrong.output.isEmpty, "\(wrong)")
        }
    }
}

import Foundation
import TestSupport
import Testing

/// Conventions of other programs that users expect.
@Suite(.timeLimit(.minutes(15)))
struct HabitTests {
    @Test func aNumberMayFollowItsLetter() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(2)
            try await withWorkspace { workspace in
                let run = try await workspace.prefetch(urls, "-j1")
                #expect(run.result.status == 0, "\(run.result)")
                let history = try await workspace.run("history", "-n1")
                #expect(history.status == 0, "\(history)")
            }
        }
    }

    @Test func aURLOfAnotherSchemeIsNoFile() async throws {
        try await withWorkspace(without: [.retries, .probes]) { workspace in
            let result = try await workspace.run("ftp://x.invalid/y.png", "--report", "r")
            let run = try workspace.finish(result, entries: 1)
            #expect(run.report.verdicts == ["failed/unsupported-scheme"], "\(result)")
        }
    }

    @Test func theCacheMayStandBeforeTwoSubcommands() async throws {
        try await withOrigin { origin in
            let url = origin.url("/none.png")
            origin.serve("/none.png", .notFound)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                _ = try await workspace.prefetch([url + " key=hero"])
                let directory = ["--cache-dir", workspace.cache]
                for arguments in [
                    directory + ["failed", "list", "--urls"],
                    directory + ["failed", "list", "--urls", "--"],
                    ["failed"] + directory + ["list", "--urls"],
                    ["failed", "--cache-dir=\(workspace.cache)", "list", "--urls"],
                ] {
                    var command = workspace.command(arguments)
                    command.environment["PREFETCH_CACHE_DIR"] = nil
                    let result = try await command.run()
                    // Output for a later run includes the key.
                    #expect(result.output == "\(url) key=hero\n", "\(result)")
                }
                // The entry is also found by its URL.
                for arguments in [["hero"], [url]] {
                    let result = try await workspace.command(["get"] + arguments).run()
                    #expect(result.status == 1 && result.error.contains("HTTP 404"), "\(result)")
                }
                var batch = workspace.command(["get", "--batch", "--json"])
                batch.input = .bytes(Array("\(url)\n".utf8))
                let result = try await batch.run()
                #expect(result.output.contains("HTTP 404"), "\(result)")
            }
        }
    }

    @Test func urlsAmongTheArgumentsAreAList() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(3)
            try await withWorkspace { workspace in
                try workspace.manifest([urls[2]], name: "images.txt")
                let result = try await workspace.run(
                    urls[0], "images.txt", urls[1], "--report", "-", "--summary", "none")
                #expect(result.status == 0, "\(result)")
                let report = try Report(text: result.output)
                let lines = report.entries.map { "\($0.manifest):\($0.line): \($0.verdict)" }
                #expect(
                    lines.sorted() == [
                        "arguments:1: downloaded", "arguments:2: downloaded",
                        "images.txt:1: downloaded",
                    ])
                let secret = urls[0].replacing("http://", with: "http://me:secret@")
                let named = try await workspace.run(secret, "--report", "-", "-v")
                #expect(named.status == 0)
                #expect(!(named.output + named.error).contains("secret"), "\(named)")
                #expect(
                    try await workspace.query("SELECT DISTINCT manifest FROM run ORDER BY 1")
                        == [["arguments"], ["images.txt\narguments"]])
            }
        }
    }

    @Test func theVersionHasAShortFlag() async throws {
        try await withWorkspace { workspace in
            let long = try await workspace.run("--version")
            let short = try await workspace.run("-V")
            #expect(long.status == 0 && short.status == 0)
            #expect(!short.output.isEmpty && short.output == long.output)
        }
    }

    /// The loaded libraries; the test process has loaded the same ones.
    @Test func theVersionNamesCommitSchemaAndLibraries() async throws {
        try await withWorkspace { workspace in
            let result = try await workspace.run("--version")
            let lines = result.output.split(separator: "\n").map(String.init)
            let names = [
                "prefetch", "commit", "cache schema", "libcurl", "SQLite", "libpng",
                "libjpeg-turbo", "libdeflate", "zlib", "expat", "libwebp", "libavif", "giflib",
            ]
            try #require(lines.count == names.count, "\(result)")
            for (line, name) in zip(lines, names) {
                #expect(line.hasPrefix(name + " "), "\(line)")
                #expect(line.count > name.count + 1)
            }
            let curl = try await Command(
                executable: "/usr/bin/curl", arguments: ["-V"], environment: [:], folder: "/tmp"
            ).run()
            let version = try #require(curl.output.split(separator: " ").dropFirst().first)
            #expect(lines[3].hasPrefix("libcurl \(version) ("), "\(lines[3])")
            #expect(lines[3].contains("OpenSSL/") && lines[3].contains("nghttp2/"))
            let schema = try await workspace.schemaVersion()
            #expect(lines[2] == "cache schema \(schema)")
            for arguments in [["stats", "--version"], ["run", "--version"]] {
                let other = try await workspace.command(arguments).run()
                #expect(other.output == result.output, "\(other)")
            }
        }
    }

    /// Determined by each build with git.
    @Test func theVersionNamesTheCommitThatWasBuilt() async throws {
        let root = SourceTree.root.path
        func git(_ arguments: String...) async throws -> CommandResult {
            try await Command(
                executable: "/usr/bin/git", arguments: arguments,
                environment: ["PATH": "/usr/bin:/bin", "HOME": "/"], folder: root
            ).run()
        }
        try await withWorkspace(without: [.retries, .probes]) { workspace in
            let folder = workspace.folder + "/recorded"
            let script = Command(
                executable: root + "/Scripts/record-commit", arguments: [folder],
                environment: ["PATH": "/usr/bin:/bin", "HOME": "/"], folder: workspace.folder)
            #expect(try await script.run().status == 0)
            let path = folder + "/Recorded.swift"
            let text = try String(contentsOfFile: path, encoding: .utf8)
            let head = try await git("rev-parse", "HEAD")
            let hash = head.status == 0 ? "\"\(head.output.dropLast())\"" : "nil"
            #expect(text.hasPrefix("let recordedHash: String? = \(hash)\nlet recordedChanges = "))
            let written = try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber]
            let time = try FileManager.default.attributesOfItem(atPath: path)[.modificationDate]
            #expect(try await script.run().status == 0)
            let again = try FileManager.default.attributesOfItem(atPath: path)
            #expect(again[.modificationDate] as? Date == time as? Date)
            #expect(again[.systemFileNumber] as? Int == written as? Int)
        }
    }

    @Test func theCacheMayBeNamedInFrontOfTheSubcommand() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(1)
            try await withWorkspace { workspace in
                _ = try await workspace.prefetch(urls)
                for flags in [
                    ["--cache-dir", workspace.cache], ["--cache-dir=\(workspace.cache)"],
                ] {
                    let result = try await workspace.command(flags + ["get", urls[0]]).run()
                    #expect(result.status == 0 && !result.output.isEmpty, "\(result)")
                }
            }
        }
    }

    @Test(arguments: [
        ("statz", "stats"), ("stat", "stats"), ("lsit", "list"), ("gett", "get"),
        ("stast", "stats"),
        ("fialed", "failed"),
    ])
    func aMistypedSubcommandGetsAHint(word: String, meant: String) async throws {
        try await withWorkspace { workspace in
            let result = try await workspace.run(word)
            #expect(result.status == 2)
            #expect(result.error.contains("hint: did you mean `prefetch \(meant)`?"), "\(result)")
        }
    }

    @Test(arguments: ["urls.txt", "lists/urls.txt", "./lists/urls.txt", "../urls.txt", ".d/a.b"])
    func aMissingManifestIsNoMistypedSubcommand(path: String) async throws {
        try await withWorkspace { workspace in
            let result = try await workspace.run(path)
            #expect(result.status == 2 && !result.error.contains("hint"), "\(result)")
        }
    }

    @Test func aURLWithoutItsSchemeGetsAHint() async throws {
        try await withWorkspace { workspace in
            let result = try await workspace.run("example.com/a.jpg")
            #expect(result.status == 2)
            #expect(
                result.error.contains("hint: did you mean https://example.com/a.jpg?"),
                "\(result)")
        }
    }

    @Test func aCommentMayFollowAnEntry() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(2)
            try await withWorkspace { workspace in
                let run = try await workspace.prefetch([
                    "\(urls[0]) # the first", "\(urls[1])#part\tpriority=high\t#not=a field",
                ])
                #expect(run.report.verdicts == ["downloaded", "downloaded"], "\(run.result)")
                #expect(origin.requests.first?.path == URL(string: urls[1])?.path)
            }
        }
    }

    @Test func theCacheOfAServiceIsUsed() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(1)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                var command = try workspace.prefetchCommand(urls)
                command.environment["PREFETCH_CACHE_DIR"] = nil
                command.environment["CACHE_DIRECTORY"] =
                    "\(workspace.folder)/service:\(workspace.folder)/other"
                #expect(try await command.run().status == 0)
                let database = workspace.folder + "/service/prefetch.sqlite"
                #expect(FileManager.default.fileExists(atPath: database))
            }
        }
    }

    @Test func aSignalAsksForALineAboutTheProgress() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            let urls = origin.serveImages(3, gate: gate)
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let running = try workspace.prefetchCommand(urls, ["-q"]).start()
                try await origin.wait(for: "three held") { $0.inFlight == 3 }
                running.signal(SIGUSR1)
                try await eventually("the line") {
                    running.errorSoFar.hasPrefix("prefetch: 0/3 0%")
                        && running.errorSoFar.contains(", 3 in flight")
                        && running.errorSoFar.hasSuffix("\n")
                }
                gate.open()
                let result = await running.wait()
                #expect(result.status == 0, "\(result)")
                #expect(result.error.split(separator: "\n").count == 1, "\(result)")
            }
        }
    }

    /// Two of the six concurrent transfers per host.
    @Test func theLineNamesTheHostThatHoldsTheRunUp() async throws {
        try await withOrigin { quick in
            try await withOrigin { slow in
                let gate = Gate()
                let urls = quick.serveImages(3) + slow.serveImages(6, gate: gate)
                let host = String(slow.url("/").dropLast())
                try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                    let running = try workspace.prefetchCommand(
                        urls, ["-q", "--host-concurrency", "2"]
                    ).start()
                    try await slow.wait(for: "two held") { $0.inFlight == 2 }
                    let wanted = ", held up by \(host) (2 in flight, 4 waiting)\n"
                    try await eventually("the line") {
                        running.signal(SIGUSR1)
                        return running.errorSoFar.contains(wanted)
                    }
                    gate.open()
                    let result = await running.wait()
                    #expect(result.status == 0, "\(result)")
                }
            }
        }
    }

    @Test func aHostThatWantsToBeLeftAloneIsNamedWithItsTime() async throws {
        try await withOrigin { origin in
            origin.serve { _ in .unavailable(retryAfter: "100") }
            let host = String(origin.url("/").dropLast())
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let running = try workspace.prefetchCommand(
                    [origin.url("/a.png"), origin.url("/b.png")], ["-q", "--retry", "1", "-j", "1"]
                ).start()
                try await origin.wait(for: "the first answer") { $0.answered == 1 }
                try await eventually("the line") {
                    running.signal(SIGUSR1)
                    return running.errorSoFar.contains(
                        "held up by \(host) (2 waiting, next request in 1 min ")
                }
                running.signal(SIGTERM)
                #expect(await running.wait().signal == SIGTERM)
            }
        }
    }

    @Test func aTerminalThatCanDoNothingGetsNoControlCharacters() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            let urls = origin.serveImages(2, gate: gate)
            try await withWorkspace(without: [.stalls]) { workspace in
                var command = try workspace.prefetchCommand(urls, ["--progress", "always"])
                command.hasTerminal = true
                command.environment["TERM"] = "dumb"
                let running = try command.start()
                try await eventually("a line of progress") {
                    running.errorSoFar.contains("prefetch: 0")
                }
                gate.open()
                let result = await running.wait()
                #expect(result.status == 0)
                #expect(!result.error.contains("\u{1B}"), "\(result)")
            }
        }
    }
}

extension Workspace {
    /// The schema version of a new cache.
    fileprivate func schemaVersion() async throws -> String {
        _ = try await prefetch([])
        let rows = try await query("SELECT count(*) FROM migration")
        return try #require(rows.first?.first ?? nil)
    }
}

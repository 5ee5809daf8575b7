import Foundation
import TestSupport
import Testing

/// Arguments and hints of the command line, by the conventions of other programs.
@Suite(.timeLimit(.minutes(15)))
struct CommandLineTests {
    @Test func acceptsNumberAttachedToShortFlag() async throws {
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

    @Test func reportsUnsupportedSchemeNotMissingFile() async throws {
        try await withWorkspace(without: [.retries, .probes]) { workspace in
            let result = try await workspace.run("ftp://x.invalid/y.png", "--report", "r")
            let run = try workspace.finish(result, entries: 1)
            #expect(run.report.verdicts == ["failed/unsupported-scheme"], "\(result)")
        }
    }

    @Test func acceptsCacheDirectoryBeforeNestedSubcommand() async throws {
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

    @Test func treatsURLArgumentsAsList() async throws {
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

    @Test func acceptsCacheDirectoryBeforeSubcommand() async throws {
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
    func suggestsMistypedSubcommand(word: String, meant: String) async throws {
        try await withWorkspace { workspace in
            let result = try await workspace.run(word)
            #expect(result.status == 2)
            #expect(result.error.contains("hint: did you mean `prefetch \(meant)`?"), "\(result)")
        }
    }

    @Test(arguments: ["urls.txt", "lists/urls.txt", "./lists/urls.txt", "../urls.txt", ".d/a.b"])
    func takesPathOfMissingManifestForAFile(path: String) async throws {
        try await withWorkspace { workspace in
            let result = try await workspace.run(path)
            #expect(result.status == 2, "\(result)")
            #expect(
                result.error == """
                    prefetch: \(path): No such file or directory
                    hint: name a list of URLs: a file, - for standard input, @NAME for one of a configuration file, or --list URL

                    """, "\(result)")
        }
    }

    @Test func suggestsSchemeForBareURL() async throws {
        try await withWorkspace { workspace in
            let result = try await workspace.run("example.com/a.jpg")
            #expect(result.status == 2)
            #expect(
                result.error.contains("hint: did you mean https://example.com/a.jpg?"),
                "\(result)")
        }
    }

    @Test func acceptsCommentAfterEntry() async throws {
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

    @Test func usesCacheDirectoryOfService() async throws {
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
}

import Foundation
import TestSupport
import Testing

/// Arguments and hints of the command line, by the conventions of other programs. `prefetchTests`
/// tests each message of the parser and each help.
@Suite(.timeLimit(.minutes(15)))
struct CommandLineTests {
    /// Some arguments bypass the full parser, with the same output.
    @Test(arguments: [
        (["--help"], ["help"], "Common flags of run:"),
        (["run", "-h"], ["run", "-j", "4", "-h"], "\nprefetch run --help shows all flags\n"),
        (["-h"], ["images.txt", "-j", "4", "-h"], "\nprefetch run --help shows all flags\n"),
        (["get", "--help"], ["help", "get"], "USAGE: prefetch get"),
        (["attr", "--help"], ["help", "attr"], "USAGE: prefetch attr"),
        (["--version"], ["-V"], "\ncommit "),
    ])
    func helpAndVersionAreOutput(
        arguments: [String], others: [String], text: String
    ) async throws {
        try await withWorkspace { workspace in
            let result = try await workspace.command(arguments).run()
            #expect(result.status == 0 && result.error.isEmpty, "\(result)")
            #expect(result.output.contains(text), "\(result)")
            let other = try await workspace.command(others).run()
            #expect(other.status == 0 && other.error.isEmpty, "\(other)")
            #expect(other.output == result.output, "\(other)")
        }
    }

    private static let shownByHelp =
        "\nUsage: prefetch run [<options>] [<manifest> ...]\n"
        + "hint: `prefetch run --help` shows all flags\n"

    /// Errors of the parser, of the advice before it, and of commands that examine their arguments
    /// themselves.
    @Test(arguments: [
        (["images.txt", "--nonsense"], "prefetch: Unknown option '--nonsense'\n", shownByHelp),
        (
            ["images.txt", "--jobs", "0"], "prefetch: --jobs must be between 1 and 10000\n",
            shownByHelp
        ),
        (
            ["images.txt", "--jobs", "x"], "prefetch: The value 'x' is invalid for '--jobs <n>'\n",
            shownByHelp
        ),
        (
            ["get"], "prefetch: name a URL, or read a list with --batch\n",
            "\nhint: `prefetch get --help` shows all flags\n"
        ),
        (["--mode", "0666", "http://a.example/1"], "prefetch: The value '0666'", shownByHelp),
        (
            ["help", "runs"],
            "prefetch: runs: no such command\nhint: did you mean `prefetch run`?\n", ""
        ),
        (
            ["--list", "ftp://a.b/c"],
            "prefetch: ftp://a.b/c: the scheme 'ftp' is not supported", ""
        ),
        (["--list", "-", "-"], "prefetch: standard input can be read only once", ""),
        (["put", "example", "a.png"], "prefetch: example: ", ""),
        (["put", "ftp://example.com/a", "a.png"], "prefetch: ftp://example.com/a: ", ""),
        (
            ["put", "http://a.example/", "a.png", "--attr", "x"],
            "prefetch: --attr takes NAME=VALUE", ""
        ),
        (
            ["put", "http://a.example/", "a.png", "--attr", "x=1", "--attr", "x=2"],
            "prefetch: --attr x is given twice", ""
        ),
        (
            ["put", "http://a.example/", "a.png", "--attr", "prefetch.x=1"],
            "prefetch: an attribute's name begins with 'prefetch.', which is reserved", ""
        ),
        (
            ["attr", "set", "http://a.example/", "a\u{1B}b", "v"], "prefetch: an attribute's name",
            ""
        ),
        (["attr", "rm", "http://a.example/", "prefetch.x"], "prefetch: an attribute's name", ""),
    ])
    func usageErrorsLookAlikeAndMakeNoCache(
        arguments: [String], start: String, end: String
    ) async throws {
        try await withWorkspace { workspace in
            try workspace.write(Fixtures.png(), to: "a.png")
            let result = try await workspace.command(arguments).run()
            #expect(result.status == 64 && result.output.isEmpty, "\(result)")
            #expect(result.error.hasPrefix(start) && result.error.hasSuffix(end), "\(result)")
            #expect(!result.errorBytes.contains(0x1B), "\(result)")
            #expect(!FileManager.default.fileExists(atPath: workspace.cache))
        }
    }

    @Test(arguments: [
        (
            ["missing.txt"],
            """
            prefetch: missing.txt: No such file or directory
            hint: name a list of URLs: a file, - for standard input, @NAME for one of a configuration file, or --list URL

            """
        ),
        (["statz"], "\nhint: did you mean `prefetch stats`?\n"),
        (["example.com/a.jpg"], "\nhint: did you mean https://example.com/a.jpg?\n"),
        (["run", "shop", "--config", "c.toml"], "\nhint: did you mean @shop?\n"),
        (
            ["."],
            """
            prefetch: .: is a directory
            hint: name a file in it, or pass its list on standard input with -

            """
        ),
    ])
    func listsThatCannotBeReadHaveAHint(arguments: [String], message: String) async throws {
        try await withWorkspace { workspace in
            try workspace.writeConfiguration("[list.shop]\nfile = 'a'", to: "c.toml")
            let result = try await workspace.command(arguments).run()
            #expect(result.status == 2 && result.output.isEmpty, "\(result)")
            #expect(
                result.error.hasPrefix("prefetch: ") && result.error.hasSuffix(message),
                "\(result)")
        }
    }

    @Test func acceptsCacheDirectoryBeforeSubcommands() async throws {
        try await withOrigin { origin in
            let url = origin.url("/none.png")
            origin.serve("/none.png", .notFound)
            let stored = origin.serveImages(1)[0]
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                _ = try await workspace.prefetch([url + " key=hero", stored])
                let (directory, joined) = (
                    ["--cache-dir", workspace.cache], "--cache-dir=\(workspace.cache)"
                )
                func run(_ arguments: [String]) async throws -> CommandResult {
                    var command = workspace.command(arguments)
                    command.environment["PREFETCH_CACHE_DIR"] = nil
                    return try await command.run()
                }
                for arguments in [
                    directory + ["failed", "list", "--urls"],
                    directory + ["failed", "list", "--urls", "--"],
                    ["failed"] + directory + ["list", "--urls"],
                    ["failed", joined, "list", "--urls"],
                ] {
                    let result = try await run(arguments)
                    // Output for a later run includes the key.
                    #expect(result.output == "\(url) key=hero\n", "\(result)")
                }
                for flags in [directory, [joined]] {
                    let result = try await run(flags + ["get", stored])
                    #expect(result.status == 0 && !result.output.isEmpty, "\(result)")
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
                // Any scheme makes a URL of an argument.
                let other = try await workspace.run("ftp://x.invalid/y.png", "--report", "r")
                let run = try workspace.finish(other, entries: 1)
                #expect(run.report.verdicts == ["failed/unsupported-scheme"], "\(other)")
            }
        }
    }
}

import Foundation
import TestSupport
import Testing

/// Mistakes in configuration files, and files of strangers.
@Suite(.timeLimit(.minutes(10)))
struct ConfigurationMistakeTests {
    @Test(
        arguments: [
            ("jbos = 1", "prefetch.toml:1: unknown key 'jbos'\nhint: did you mean 'jobs'?\n"),
            ("\njobs = \"x\"", "prefetch.toml:2: The value 'x' is invalid for '--jobs <n>'\n"),
            ("jobs = 0", "prefetch.toml:1: --jobs must be between 1 and 10000\n"),
            (
                "ttl = \"1d\"\nmin-ttl = \"1h\"",
                "prefetch.toml:1: --ttl cannot be combined with --min-ttl"
            ),
            ("header = \"a\"", "prefetch.toml:1: --header: a header is written 'Name: value'\n"),
            (
                "[variant.a]\nresize = \"1x1\"\nquality = 0",
                "prefetch.toml:3: 'quality' takes 1 to 100\n"
            ),
            (
                "[variant.a]\nencode = \"jpge\"",
                "prefetch.toml:2: 'encode' takes same, jpeg, png, webp, avif, auto or original\n"
            ),
            (
                "[variant.a]\nquality = 5\nencode = \"png\"",
                "prefetch.toml:2: --variant a: 'q=' has no effect on png"
            ),
            ("header = [[\"A: b\"]]", "prefetch.toml:1: 'header' takes a text in quotes, or an "),
            ("jobs = 1\njobs = 2", "prefetch.toml:2: column "),
            ("[host.\"*\"]\njobs = 1", "prefetch.toml:2: unknown key 'jobs'\n"),
            ("[host.\"*\"]\nttl = \"x\"", "prefetch.toml:2: The value 'x' is invalid for '--ttl"),
            (
                "encode = \"jpge\"",
                "prefetch.toml:1: The value 'jpge' is invalid for '--encode <format>': it takes "
                    + "same, jpeg, png, webp, avif, auto or original\n"
            ),
            ("[list.a]\nfile = []", "prefetch.toml:1: list 'a' has no file\n"),
            ("[host.\"a/b\"]\nttl = \"1d\"", "prefetch.toml:2: 'a/b' is no pattern of a host\n"),
        ] as [(String, String)])
    func namesFileLineAndKey(text: String, message: String) async throws {
        try await withWorkspace { workspace in
            try workspace.writeConfiguration(text)
            let list = try workspace.manifest([])
            let result = try await workspace.run(list)
            #expect(result.status == 64, "\(result)")
            #expect(result.error.hasPrefix("prefetch: \(message)"), "\(result)")
            let check = try await workspace.run("config", "check")
            #expect(check.status == 64 && check.output.isEmpty, "\(check)")
            #expect(check.error.hasPrefix("prefetch: \(message)"), "\(check)")
        }
    }

    @Test func namesTheLineOfAListsKey() async throws {
        try await withWorkspace { workspace in
            try workspace.writeConfiguration("[list.a]\nfile = \"a.csv\"\nformat = \"cvs\"\n")
            let message = """
                prefetch: prefetch.toml:3: The value 'cvs' is invalid for '--format <format>': it \
                takes auto, text, csv, tsv, jsonl or sitemap

                """
            let result = try await workspace.run("@a")
            #expect(result.status == 64 && result.error == message, "\(result)")
            let check = try await workspace.run("config", "check")
            #expect(check.status == 64 && check.error == message, "\(check)")
        }
    }

    /// A setting isn't blamed for a mistake of the user.
    @Test func mistakesOfTheUserStayTheirOwn() async throws {
        try await withWorkspace { workspace in
            try workspace.writeConfiguration("jobs = 4\n")
            let list = try workspace.manifest([])
            for arguments in [
                [list, "--jbos", "1"], [list, "--jobs", "x"], ["--quality", "0", list],
            ] {
                let result = try await workspace.command(arguments).run()
                #expect(result.status == 64 && !result.error.contains(".toml"), "\(result)")
            }
        }
    }

    @Test(
        arguments: [
            ("proxy = \"http://127.0.0.1:9\"", "proxy"), ("insecure = true", "insecure"),
            ("netrc = true", "netrc"), ("netrc-file = \"x\"", "netrc-file"),
            ("user = \"a:b\"", "user"),
            ("user = \"@x\"", "user"), ("cookie-jar = \"x\"", "cookie-jar"),
            ("cacert = \"x\"", "cacert"),
            ("resolve = \"a:80:127.0.0.1\"", "resolve"), ("noproxy = \"*\"", "noproxy"),
            ("allow-link-local = true", "allow-link-local"),
            ("deny-private = false", "deny-private"),
            ("allow-downgrade = true", "allow-downgrade"), ("cache-dir = \"x\"", "cache-dir"),
            ("report = \"x\"", "report"), ("mode = \"0666\"", "mode"),
            ("max-size = \"1MiB\"", "max-size"),
            ("prune = \"unlisted-for=1s\"", "prune"), ("[prune]\ngone = true", "gone"),
            ("base-url = \"http://127.0.0.1:9\"", "base-url"),
            ("[list.a]\nfile = \"../a\"", "file"),
            ("[list.a]\nfile = \"http://127.0.0.1:9/a\"", "file"),
            ("[profile.p]\nproxy = \"x\"", "proxy"),
        ] as [(String, String)])
    func aProjectMayNotSet(text: String, key: String) async throws {
        try await withWorkspace { workspace in
            try workspace.writeConfiguration(text)
            let list = try workspace.manifest(["http://127.0.0.1:9/a.png"])
            let result = try await workspace.run(list, "--offline")
            let line = text.contains("\n") ? 2 : 1
            #expect(result.status == 64 && result.output.isEmpty, "\(result)")
            #expect(
                result.error == """
                    prefetch: prefetch.toml:\(line): a project's file may not set '\(key)'\
                    \(key == "file" ? " to a URL, or to a file outside of its folder" : "")
                    hint: --trust-project-config allows it

                    """)
            #expect(!FileManager.default.fileExists(atPath: workspace.folder + "/x"))
        }
    }

    /// A link in a checkout must not make a run send a file to a stranger's host.
    @Test func aListOfAProjectDoesNotLeadOutOfIt() async throws {
        try await withWorkspace { workspace in
            try FileManager.default.createDirectory(
                atPath: workspace.folder + "/project", withIntermediateDirectories: false)
            try workspace.writeConfiguration("secret\n", to: "secret.txt")
            try workspace.writeConfiguration(
                "[list.a]\nfile = \"list.txt\"\nbase-url = \"http://127.0.0.1:9/\"\n",
                to: "project/prefetch.toml")
            try FileManager.default.createSymbolicLink(
                atPath: workspace.folder + "/project/list.txt", withDestinationPath: "../secret.txt"
            )
            var command = workspace.command(["@a", "--offline"])
            command.folder += "/project"
            let refused = try await command.run()
            #expect(refused.status == 2 && !refused.error.contains("secret"), "\(refused)")
            #expect(refused.error.contains("list 'a': ./list.txt leads out of the folder"))
            command.arguments.append("--trust-project-config")
            let allowed = try await command.run()
            #expect(allowed.error.contains("http://127.0.0.1:9/secret"), "\(allowed)")
        }
    }

    @Test func onlyARegularFileIsRead() async throws {
        try await withWorkspace { workspace in
            let list = try workspace.manifest([])
            #expect(mkfifo(workspace.folder + "/prefetch.toml", 0o600) == 0)
            let result = try await workspace.run(list)
            #expect(result.status == 2, "\(result)")
            #expect(
                result.error == """
                    prefetch: prefetch.toml: not a regular file
                    hint: --config none reads no file

                    """)
        }
    }

    @Test func variablesOfSwitchesTakeWords() async throws {
        try await withWorkspace { workspace in
            let list = try workspace.manifest([])
            func run(_ name: String, _ value: String, _ arguments: String...) async throws
                -> CommandResult
            {
                var command = workspace.command(arguments.isEmpty ? [list] : arguments)
                command.environment[name] = value
                return try await command.run()
            }
            #expect(try await run("PREFETCH_ALLOW_EMPTY", "TRUE").status == 0)
            #expect(try await run("PREFETCH_ALLOW_EMPTY", "0").status == 1)
            #expect(try await run("PREFETCH_ALLOW_EMPTY", "").status == 1)
            let wrong = try await run("PREFETCH_ALLOW_EMPTY", "maybe")
            #expect(wrong.status == 64, "\(wrong)")
            #expect(wrong.error.hasPrefix("prefetch: PREFETCH_ALLOW_EMPTY: takes 1, true or yes"))
            let number = try await run("PREFETCH_JOBS", "x")
            #expect(number.error.hasPrefix("prefetch: PREFETCH_JOBS: The value 'x' is invalid"))
            #expect(try await run("PREFETCH_JOB", "x").status == 1)
            let check = try await run("PREFETCH_JOB", "x", "config", "check")
            #expect(check.status == 64)
            #expect(
                check.error
                    == "prefetch: PREFETCH_JOB: sets no flag\nhint: did you mean PREFETCH_JOBS?\n")
        }
    }
}

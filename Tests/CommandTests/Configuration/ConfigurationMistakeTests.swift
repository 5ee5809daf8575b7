import Foundation
import TestSupport
import Testing

/// Mistakes in configuration files, and files of strangers.
@Suite(.timeLimit(.minutes(15)))
struct ConfigurationMistakeTests {
    @Test func namesTheLineOfAListsKey() async throws {
        try await withWorkspace { workspace in
            try workspace.writeConfiguration("[list.a]\nfile = \"a.csv\"\nformat = \"cvs\"\n")
            let message = """
                prefetch: prefetch.toml:3: The value 'cvs' is invalid for '--format <format>': did \
                you mean csv? it takes auto, text, csv, tsv, jsonl or sitemap

                """
            let result = try await workspace.run("@a")
            #expect(result.status == 64 && result.error == message, "\(result)")
            let check = try await workspace.run("config", "check")
            #expect(check.status == 64 && check.error == message, "\(check)")
            // A setting isn't blamed for a mistake of the user.
            try workspace.writeConfiguration("jobs = 4\n")
            let list = try workspace.manifest([])
            for arguments in [
                [list, "--jbos", "1"], [list, "--jobs", "x"], ["--quality", "0", list],
            ] {
                let mistake = try await workspace.command(arguments).run()
                #expect(mistake.status == 64 && !mistake.error.contains(".toml"), "\(mistake)")
            }
        }
    }

    /// Files with the messages of `config check` about them, in their order.
    private static let mistakes: [(text: String, messages: [String])] = [
        (
            """
            jbos = 1
            jobs = "x"
            encode = "jpge"
            [variant.a]
            resize = "1x1"
            quality = 0
            [variant.b]
            encode = "jpge"
            [host."*"]
            jobs = 1
            ttl = "x"
            [list.a]
            file = []
            """,
            [
                "c.toml:1: unknown key 'jbos'\nhint: did you mean 'jobs'?\n",
                "c.toml:6: 'quality' takes 1 to 100\n",
                "c.toml:8: 'encode' takes same, jpeg, png, webp, avif, auto or original\n",
                "c.toml:10: unknown key 'jobs'\n", "c.toml:12: list 'a' has no file\n",
                "c.toml:2: The value 'x' is invalid for '--jobs <n>'\n",
                "c.toml:3: The value 'jpge' is invalid for '--encode <format>': did you mean jpeg? "
                    + "it takes same, jpeg, png, webp, avif, auto or original\n",
                "c.toml:11: The value 'x' is invalid for '--ttl",
            ]
        ),
        // Settings that are wrong together, or read late.
        (
            """
            jobs = 0
            ttl = "1d"
            min-ttl = "1h"
            header = "a"
            user = "a:b"
            [variant.a]
            quality = 5
            encode = "png"
            [host."a.example"]
            user = "c"
            [host."b.example"]
            proxy = "ftp://x"
            [host."c.example"]
            key = "/x"
            """,
            [
                "c.toml:1: --jobs must be between 1 and 10000\n",
                "c.toml:2: --ttl cannot be combined with --min-ttl",
                "c.toml:7: --variant a: 'q=' has no effect on png",
                "c.toml:4: --header: a header is written 'Name: value'\n", "c.toml:10: --user ",
                "c.toml:12: --proxy ", "c.toml:14: --key needs --cert\n",
            ]
        ),
        ("header = [[\"A: b\"]]", ["c.toml:1: 'header' takes a text in quotes, or an "]),
        ("jobs = 1\njobs = 2", ["c.toml:2: column "]),
        ("[host.\"a/b\"]\nttl = \"1d\"", ["c.toml:2: 'a/b' is no pattern of a host\n"]),
    ]

    @Test func checkNamesEveryMistake() async throws {
        try await withWorkspace { workspace in
            for (text, messages) in Self.mistakes {
                try workspace.writeConfiguration(text, to: "c.toml")
                let check = try await workspace.run("config", "check", "c.toml")
                #expect(check.status == 64 && check.output.isEmpty, "\(check)")
                let found = check.error.components(separatedBy: "prefetch: ").dropFirst()
                #expect(found.count == messages.count, "\(check)")
                for (problem, message) in zip(found, messages) {
                    #expect(problem.hasPrefix(message), "\(check)")
                }
            }
        }
    }

    /// Every command that reads the file refuses it.
    @Test func aProjectsFileIsRefusedWithKeyAndLine() async throws {
        try await withWorkspace { workspace in
            let list = try workspace.manifest(["http://127.0.0.1:9/a.png"])
            for (text, message) in [
                (
                    "[profile.p]\nreport = \"x\"",
                    """
                    a project's file may not set 'report'
                    hint: --trust-project-config allows it

                    """
                ),
                ("[variant.a]\nquality = \"5,overlay=private.png\"", "'quality' takes "),
                ("[variant.a]\nquality = 0", "'quality' takes 1 to 100\n"),
            ] {
                try workspace.writeConfiguration(text)
                for arguments in [
                    [list], ["plan", list], ["config", "check"], ["config", "show"],
                ] {
                    let result = try await workspace.command(arguments).run()
                    #expect(result.status == 64 && result.output.isEmpty, "\(result)")
                    #expect(
                        result.error.hasPrefix("prefetch: prefetch.toml:2: \(message)"),
                        "\(result)")
                }
            }
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

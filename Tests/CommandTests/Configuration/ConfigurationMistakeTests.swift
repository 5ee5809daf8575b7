import Foundation
import TestSupport
import Testing

/// Mistakes in configuration files, and files of strangers.
@Suite(.timeLimit(.minutes(10)))
struct ConfigurationMistakeTests {
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

import Foundation
import Glibc
import TestSupport
import Testing

/// A mistyped path costs no file.
@Suite(.timeLimit(.minutes(15)))
struct WrittenFilesTests {
    /// Files that a run reads or that belong to its cache, by the options that write them.
    private static let uses = [
        ["--report", "list.txt"], ["--cookie-jar", "list.txt"], ["--report", "link.txt"],
        ["--report", "cache/prefetch.sqlite"], ["--cookie-jar", "cache/jar"],
        ["--report", "cache/content/../new"], ["--report", "database-by-another-name"],
        ["--cache-dir", "new/deep", "--report", "new/deep/prefetch.sqlite"],
        ["--report", "x", "--cookie-jar", "./x"],
        ["--netrc-file", "netrc", "--report", "netrc"],
        ["--header", "@fields", "--report", "fields"],
    ]

    @Test func fileInUseIsNotOverwritten() async throws {
        try await withOrigin { origin in
            let url = origin.serveImages(1)[0]
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                _ = try await workspace.prefetch([url])
                let files = [
                    "list.txt": "\(url)\n", "netrc": "machine a.example login b password c\n",
                    "fields": "X-A: b\n",
                ]
                for (name, text) in files { try workspace.write(Array(text.utf8), to: name) }
                try FileManager.default.createSymbolicLink(
                    atPath: "\(workspace.folder)/link.txt", withDestinationPath: "list.txt")
                try FileManager.default.linkItem(
                    atPath: "\(workspace.folder)/cache/prefetch.sqlite",
                    toPath: "\(workspace.folder)/database-by-another-name")
                let requests = origin.requests.count
                for options in Self.uses {
                    let result = try await workspace.command(["run", "list.txt"] + options).run()
                    #expect(result.status == 64, "\(result)")
                    #expect(result.error.contains(" would "), "\(result)")
                    if options.last == "list.txt" {
                        #expect(
                            result.error.contains("would overwrite the manifest list.txt\n"),
                            "\(result)")
                    }
                    #expect(result.error.contains("\nhint: name a"), "\(result)")
                    for (name, text) in files {
                        let path = "\(workspace.folder)/\(name)"
                        #expect(try String(contentsOfFile: path, encoding: .utf8) == text)
                    }
                    #expect(!FileManager.default.fileExists(atPath: workspace.folder + "/x"))
                }
                #expect(origin.requests.count == requests)
                #expect(try await workspace.query("SELECT count(*) FROM resource") == [["1"]])
            }
        }
    }

    /// Files that are in force by configuration, in a folder with a list and a cache.
    private static let configured = [
        "prefetch.toml": "jobs = 2\n", "given.toml": "jobs = 2\n",
        "home/prefetch/config.toml": """
        header = "@fields"
        cookie-jar = "jar"
        transform = "overlay=logo.png@center"
        [list.shop]
        file = ["shop.txt"]
        [profile.strict]
        cert = "client.pem"
        key = "client.key"
        netrc-file = "keys"

        """,
        "home/prefetch/shop.txt": "http://127.0.0.1:1/1.png\n", "fields": "X-A: b\n",
        "jar": "# Netscape HTTP Cookie File\n", "keys": "machine a.example\n",
        "client.pem": "x\n", "client.key": "x\n", "ca.pem": "-----BEGIN CERTIFICATE-----\n",
        "netrc": "machine b.example\n", "credentials": "[default]\n",
    ]

    /// The regular files of a cache: some of its own, and content files.
    private func files(ofCache name: String, in workspace: Workspace) throws -> [String] {
        let path = "\(workspace.folder)/\(name)"
        // Others are opened by readers, too.
        return try FileManager.default.subpathsOfDirectory(atPath: path)
            .filter { $0.hasPrefix("content/") || !$0.contains("/") && !$0.contains("-") }
            .map { "\(name)/\($0)" }
            .filter { isFile("\(workspace.folder)/\($0)") }
    }

    /// Every file that is in force by configuration or belongs to a cache, by every flag that
    /// writes.
    @Test(arguments: FileWriter.all)
    func fileInForceIsNotOverwritten(writer: FileWriter) async throws {
        try await withFileWriters { workspace, _ in
            for folder in ["home", "home/prefetch"] {
                try #require(mkdir("\(workspace.folder)/\(folder)", 0o700) == 0)
            }
            for (name, text) in Self.configured {
                try workspace.write(Array(text.utf8), to: name)
            }
            try workspace.write(Fixtures.png(seed: 1), to: "logo.png")
            try FileManager.default.copyItem(
                atPath: workspace.cache, toPath: workspace.folder + "/other")
            let cacheFiles = try ["cache", "other"].flatMap {
                try files(ofCache: $0, in: workspace)
            }
            #expect(cacheFiles.contains("other/prefetch.sqlite"))
            for name in Self.configured.keys.sorted() + ["logo.png"] + cacheFiles {
                // Its purpose.
                if writer.flag == "config init", name.hasSuffix(".toml") { continue }
                if writer.flag == "--cookie-jar", name == "jar" { continue }
                let path = "\(workspace.folder)/\(name)"
                let old = try Data(contentsOf: URL(filePath: path))
                var command = workspace.command(writer.arguments(name))
                command.environment["XDG_CONFIG_HOME"] = workspace.folder + "/home"
                command.environment["PREFETCH_CACERT"] = "ca.pem"
                command.environment["NETRC"] = "netrc"
                command.environment["AWS_SHARED_CREDENTIALS_FILE"] = "credentials"
                if name == "given.toml" { command.environment["PREFETCH_CONFIG"] = name }
                let result = try await command.run()
                #expect(result.status == 64, "\(name): \(result)")
                #expect(result.error.contains(" would "), "\(name): \(result)")
                #expect(try Data(contentsOf: URL(filePath: path)) == old, "\(name)")
            }
        }
    }

    private func isFile(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }

    /// Files that are in use by something else than a flag of the command.
    @Test func filesInUseOtherwiseAreNotOverwritten() async throws {
        try await withFileWriters { workspace, _ in
            func expectRefusal(
                _ command: Command, status: Int32 = 64, _ message: String,
                location: SourceLocation = #_sourceLocation
            ) async throws {
                let result = try await command.run()
                #expect(result.status == status, "\(result)", sourceLocation: location)
                #expect(result.error.contains(message), "\(result)", sourceLocation: location)
            }
            func run(_ report: String) -> Command {
                workspace.command(["run", "list.txt", "--report", report])
            }
            let list = try workspace.bytes(of: workspace.folder + "/list.txt")

            let plan = try await workspace.run(
                "plan", "list.txt", "--shards", "2", "-o", "plan.json", "-q")
            #expect(plan.status == 0, "\(plan)")
            try await expectRefusal(
                workspace.command([
                    "run", "list.txt", "--shard", "0", "--plan", "plan.json", "--html",
                    "plan.json",
                ]), "would overwrite the file of --plan")

            try await expectRefusal(
                workspace.command(["run", "-", "--report", "list.txt"])
                    .inShell(#"exec "$0" "$@" < list.txt"#),
                "would overwrite the manifest on standard input")
            #expect(try workspace.bytes(of: workspace.folder + "/list.txt") == list)

            let mark = Fixtures.png(width: 9, height: 5, seed: 2)
            try workspace.write(mark, to: "mark.png")
            try await expectRefusal(
                workspace.command([
                    "run", "list.txt", "--transform", "overlay=mark.png@north", "--report",
                    "mark.png",
                ]), "--report would overwrite the file of overlay=")
            #expect(try workspace.bytes(of: workspace.folder + "/mark.png") == mark)

            // In the shell's words: `prefetch run URL --report out > out`.
            let output = run("out").inShell(#"exec "$0" "$@" > out"#)
            try await expectRefusal(output, "would overwrite the file of standard output")
            try await expectRefusal(output, "hint: write to standard output with --report -")

            let folder = workspace.folder + "/certificates"
            try #require(mkdir(folder, 0o700) == 0)
            var trusting = run("certificates/ca.pem")
            trusting.environment["SSL_CERT_DIR"] = "/missing:\(folder)"
            try await expectRefusal(trusting, "would write into the folder of SSL_CERT_DIR")
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)

            // A link to a missing file of the cache, a link to a link, and one to itself.
            for (name, target) in [("a", "cache/new"), ("b", "a"), ("c", "c")] {
                try FileManager.default.createSymbolicLink(
                    atPath: workspace.folder + "/" + name, withDestinationPath: target)
            }
            for name in ["a", "b"] {
                try await expectRefusal(run(name), "would write into the cache")
            }
            try await expectRefusal(run("c"), status: 2, "Too many levels of symbolic links")

            // A hard link to a content file.
            let url = try #require(
                String(decoding: list, as: UTF8.self).split(separator: "\n").first)
            let file = try await workspace.run("get", String(url)).output
                .trimmingCharacters(in: .newlines)
            let contents = try Data(contentsOf: URL(filePath: file))
            try FileManager.default.linkItem(
                atPath: file, toPath: workspace.folder + "/image.png")
            try await expectRefusal(run("image.png"), "would write into the cache")
            #expect(try Data(contentsOf: URL(filePath: file)) == contents)
        }
    }

    /// Comments alone, as in a new jar of curl, and cookies after a byte order mark.
    @Test(arguments: [
        ("# Netscape HTTP Cookie File\n# https://curl.se\n\n", nil), ("\n", nil), ("", nil),
        ("\u{FEFF}", "127.0.0.1\tFALSE"), ("\u{FEFF}", ".127.0.0.1\tTRUE"),
    ])
    func cookieJarIsReplaced(beginning: String, domain: String?) async throws {
        try await withOrigin { origin in
            let url = origin.serveImages(1)[0]
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let path = workspace.folder + "/jar"
                let line = domain.map { "\($0)\t/\tFALSE\t0\ta\tb" }
                try Data((beginning + (line.map { $0 + "\n" } ?? "")).utf8)
                    .write(to: URL(filePath: path))
                let run = try await workspace.prefetch([url], "--cookie-jar", "jar")
                #expect(run.result.status == 0, "\(run.result)")
                guard let line else { return }
                #expect(origin.requests.map { $0.header("cookie") } == ["a=b"])
                let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
                #expect(lines.last.map(String.init) == line)
            }
        }
    }

    /// The writer may come later than the reader; bash's `<(…)` is there before.
    @Test func pipesAreReadOfLateWriters() async throws {
        try await withWorkspace { workspace in
            let url = "http://a.example/1.png"
            try #require(mkfifo(workspace.folder + "/pipe", 0o600) == 0)
            try workspace.write(Fixtures.png(seed: 1), to: "a.png")
            let empty = try await workspace.run("put", url, "pipe")
            #expect(empty.status == 1, "\(empty)")
            #expect(empty.error.contains("pipe: a named pipe that no process writes"), "\(empty)")
            for options in [
                ["put", url, "pipe"], ["attr", "set", url, "image", "--file", "pipe"],
            ] {
                // The shell waits until the pipe is opened for reading.
                let late = try await workspace.command(options)
                    .inShell(#"{ cat a.png >pipe; } & "$0" "$@""#).run()
                #expect(late.status == 0, "\(late)")
            }
            let value = try await workspace.command(["attr", "get", url, "image"])
                .inShell(#""$0" "$@" | cmp - a.png"#).run()
            #expect(value.status == 0, "\(value)")
            let early = try await workspace.command(["put", url])
                .inShell(#""$0" "$@" <(cat a.png)"#).run()
            #expect(early.status == 0, "\(early)")
        }
    }

    /// Waiting for a reader would keep the cache locked.
    @Test func reportIsNotWrittenToAPipeWithoutAReader() async throws {
        try await withOrigin { origin in
            let url = origin.serveImages(1)[0]
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                try #require(mkfifo(workspace.folder + "/pipe", 0o600) == 0)
                let options = ["run", url, "--report", "pipe"]
                let result = try await workspace.command(options).run()
                #expect(result.status == 2, "\(result)")
                #expect(
                    result.error.contains("pipe: a named pipe that no process reads"), "\(result)")
                var command = workspace.command(options)
                command = command.inShell(#"exec 3<>pipe; "$0" "$@" && head -n 1 <&3"#)
                let read = try await command.run()
                #expect(read.status == 0, "\(read)")
                #expect(read.output.contains(url), "\(read)")

                // The reader may open it later.
                let script = #"""
                    "$0" "$@" & until [ -e new ]; do :; done
                    head -n 1 pipe && wait $!
                    """#
                let late = try await workspace.command(options + ["--cache-dir", "new"])
                    .inShell(script).run()
                #expect(late.status == 0, "\(late)")
                #expect(late.output.contains(url), "\(late)")
            }
        }
    }
}

import Foundation
import Glibc
import TestSupport
import Testing

/// A mistyped path costs no file.
@Suite(.timeLimit(.minutes(15)))
struct WrittenFilesTests {
    /// Files that a run reads or that belong to its cache, by the options that write them.
    @Test(arguments: [
        ["--report", "list.txt"], ["--cookie-jar", "list.txt"], ["--report", "link.txt"],
        ["--report", "cache/prefetch.sqlite"], ["--cookie-jar", "cache/jar"],
        ["--report", "cache/content/../new"], ["--report", "database-by-another-name"],
        ["--cache-dir", "new/deep", "--report", "new/deep/prefetch.sqlite"],
        ["--report", "x", "--cookie-jar", "./x"],
        ["--netrc-file", "netrc", "--report", "netrc"],
        ["--header", "@fields", "--report", "fields"],
    ])
    func fileInUseIsNotOverwritten(options: [String]) async throws {
        try await withOrigin { origin in
            let url = origin.serveImages(1)[0]
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                _ = try await workspace.prefetch([url])
                let files = [
                    "list.txt": "\(url)\n", "netrc": "machine a.example login b password c\n",
                    "fields": "X-A: b\n",
                ]
                for (name, text) in files {
                    try text.write(
                        toFile: "\(workspace.folder)/\(name)", atomically: false, encoding: .utf8)
                }
                try FileManager.default.createSymbolicLink(
                    atPath: "\(workspace.folder)/link.txt", withDestinationPath: "list.txt")
                try FileManager.default.linkItem(
                    atPath: "\(workspace.folder)/cache/prefetch.sqlite",
                    toPath: "\(workspace.folder)/database-by-another-name")
                let requests = origin.requests.count
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
                #expect(origin.requests.count == requests)
                #expect(!FileManager.default.fileExists(atPath: workspace.folder + "/x"))
                #expect(try await workspace.query("SELECT count(*) FROM resource") == [["1"]])
            }
        }
    }

    @Test func listOnStandardInputIsNotOverwritten() async throws {
        try await withWorkspace(without: [.retries, .probes]) { workspace in
            let path = workspace.folder + "/list.txt"
            let list = "http://127.0.0.1:1/a.png\n"
            try list.write(toFile: path, atomically: false, encoding: .utf8)
            var command = workspace.command(["run", "-", "--report", "list.txt"])
            command = command.inShell(#"exec "$0" "$@" < list.txt"#)
            let result = try await command.run()
            #expect(result.status == 64, "\(result)")
            #expect(
                result.error.contains("would overwrite the manifest on standard input"),
                "\(result)")
            #expect(try String(contentsOfFile: path, encoding: .utf8) == list)
        }
    }

    @Test func linkToAMissingFileOfTheCacheIsRefused() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(1)
            try await withWorkspace { workspace in
                _ = try await workspace.prefetch(urls)
                // A link to a link, and one to itself.
                for (name, target) in [("a", "cache/new"), ("b", "a"), ("c", "c")] {
                    try FileManager.default.createSymbolicLink(
                        atPath: workspace.folder + "/" + name, withDestinationPath: target)
                }
                for name in ["a", "b"] {
                    let result = try await workspace.run("run", urls[0], "--report", name)
                    #expect(result.status == 64, "\(result)")
                    #expect(result.error.contains("would write into the cache"), "\(result)")
                }
                let result = try await workspace.run("run", urls[0], "--report", "c")
                #expect(result.status == 2, "\(result)")
                #expect(result.error.contains("Too many levels of symbolic links"), "\(result)")
            }
        }
    }

    /// Files that are no cookie jar stay as they are.
    @Test(arguments: [
        "https://a.example/1.jpg\n", "[{\"name\": \"a\"}]\n", "# a comment\nhttps://a.example\n",
        "a.example\tTRUE\t/\tFALSE\t0\n",
        "# a script\n# of comments\n", "a.example\tTRUE\tpath\tFALSE\t0\ta\tb\n",
        "1\t2\t3\t4\t5\t6\t7\n", "\u{FEFF}{}\n", "Set-Cookie: a=b\n",
    ])
    func otherFileIsNoCookieJar(text: String) async throws {
        try await withOrigin { origin in
            let url = origin.serveImages(1)[0]
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let path = workspace.folder + "/jar"
                try Data(text.utf8).write(to: URL(filePath: path))
                let result = try await workspace.prefetchCommand([url], ["--cookie-jar", "jar"])
                    .run()
                #expect(result.status == 2, "\(result)")
                #expect(result.error.contains("is not a cookie in Netscape's format"), "\(result)")
                #expect(try Data(contentsOf: URL(filePath: path)) == Data(text.utf8))
                #expect(origin.requests.isEmpty)
            }
        }
    }

    @Test(arguments: ["127.0.0.1\tFALSE", ".127.0.0.1\tTRUE"])
    func byteOrderMarkBeforeACookieIsDropped(domain: String) async throws {
        try await withOrigin { origin in
            let url = origin.serveImages(1)[0]
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let path = workspace.folder + "/jar"
                let line = "\(domain)\t/\tFALSE\t0\ta\tb"
                try Data("\u{FEFF}\(line)\n".utf8).write(to: URL(filePath: path))
                let run = try await workspace.prefetch([url], "--cookie-jar", "jar")
                #expect(run.result.status == 0, "\(run.result)")
                #expect(origin.requests.map { $0.header("cookie") } == ["a=b"])
                let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
                #expect(lines.last.map(String.init) == line)
            }
        }
    }

    /// A pipe without a writer would wait without end.
    @Test(arguments: ["--cookie-jar", "--netrc-file", "--cacert", "--header", "--user", "--proxy"])
    func namedPipeIsRefused(flag: String) async throws {
        try await withWorkspace { workspace in
            try #require(mkfifo(workspace.folder + "/pipe", 0o600) == 0)
            let takesText = ["--header", "--user", "--proxy"].contains(flag)
            let result = try await workspace.command(
                ["run", "http://a.example/1.png", flag, takesText ? "@pipe" : "pipe"]
            ).run()
            #expect(result.status == 2, "\(result)")
            #expect(result.error.contains("pipe: not a regular file"), "\(result)")
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
            }
        }
    }

    /// A report may be opened later by its reader.
    @Test func reportWaitsForTheReaderOfAPipe() async throws {
        try await withOrigin { origin in
            let url = origin.serveImages(1)[0]
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                try #require(mkfifo(workspace.folder + "/pipe", 0o600) == 0)
                let script = #"""
                    "$0" "$@" & until [ -e '\#(workspace.cache)' ]; do :; done
                    head -n 1 pipe && wait $!
                    """#
                let read = try await workspace.command(["run", url, "--report", "pipe"])
                    .inShell(script).run()
                #expect(read.status == 0, "\(read)")
                #expect(read.output.contains(url), "\(read)")
            }
        }
    }

    @Test func linkToAContentFileIsRefused() async throws {
        try await withOrigin { origin in
            let url = origin.serveImages(1)[0]
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                _ = try await workspace.prefetch([url])
                let file = try await workspace.run("get", url).output
                    .trimmingCharacters(in: .newlines)
                let contents = try Data(contentsOf: URL(filePath: file))
                try FileManager.default.linkItem(
                    atPath: file, toPath: workspace.folder + "/image.png")
                let result = try await workspace.run("run", url, "--report", "image.png")
                #expect(result.status == 64, "\(result)")
                #expect(result.error.contains("would write into the cache"), "\(result)")
                #expect(try Data(contentsOf: URL(filePath: file)) == contents)
            }
        }
    }

    /// In the shell's words: `prefetch run URL --report out > out`.
    @Test func fileOfStandardOutputIsRefused() async throws {
        try await withWorkspace(without: [.retries, .probes]) { workspace in
            var command = workspace.command(
                ["run", "http://127.0.0.1:1/a.png", "--report", "out"])
            command = command.inShell(#"exec "$0" "$@" > out"#)
            let result = try await command.run()
            #expect(result.status == 64, "\(result)")
            #expect(
                result.error.contains("would overwrite the file of standard output"), "\(result)")
            #expect(result.error.contains("hint: write to standard output with --report -"))
        }
    }

    @Test func folderOfCertificatesIsRefused() async throws {
        try await withWorkspace(without: [.retries, .probes]) { workspace in
            let folder = workspace.folder + "/certificates"
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: false)
            var command = workspace.command(
                ["run", "http://127.0.0.1:1/a.png", "--report", "certificates/ca.pem"])
            command.environment["SSL_CERT_DIR"] = "/missing:\(folder)"
            let result = try await command.run()
            #expect(result.status == 64, "\(result)")
            #expect(
                result.error.contains("would write into the folder of SSL_CERT_DIR"), "\(result)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
        }
    }

    /// Comments alone, as in a new jar of curl.
    @Test(arguments: ["# Netscape HTTP Cookie File\n# https://curl.se\n\n", "\n", ""])
    func emptyCookieJarIsReplaced(text: String) async throws {
        try await withOrigin { origin in
            let url = origin.serveImages(1)[0]
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                try workspace.write(Array(text.utf8), to: "jar")
                let run = try await workspace.prefetch([url], "--cookie-jar", "jar")
                #expect(run.result.status == 0, "\(run.result)")
            }
        }
    }
}

import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15)))
struct ManifestTests {
    /// A file with comments, a pipe, a compressed file, several files and relative URLs.
    @Test func listsOfEveryKindAreRead() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(3)
            let text =
                "\u{FEFF}# pictures\r\n\r\n\(urls[0])\r\n   \r\n  \(urls[1])\tpriority=high\r\n"
                + "# \(origin.url("/comment.png"))\n\(urls[2])"
            try await withWorkspace { workspace in
                func run(
                    _ arguments: String..., input: [UInt8]? = nil, entries: Int
                ) async throws -> Workspace.Run {
                    var command = workspace.command(arguments + ["--report", "report"])
                    if let input { command.input = .bytes(input) }
                    return try workspace.finish(await command.run(), entries: entries)
                }
                try workspace.write(Array(text.utf8), to: "entries")
                let file = try await run("entries", entries: 3)
                #expect(file.report.verdicts == ["downloaded", "downloaded", "downloaded"])
                #expect(file.report.entries.map(\.line).sorted() == [3, 5, 7])
                #expect(file.report.entries.allSatisfy { $0.manifest == "entries" })

                // A comment may follow an entry.
                let comments = try await workspace.prefetch([
                    "\(urls[0]) # the first", "\(urls[1])#part\tpriority=high\t#not=a field",
                ])
                #expect(comments.report.verdicts == ["fresh", "fresh"], "\(comments.result)")

                let lines = urls.map { $0 + "\n" }.joined()
                let pipe = try await run("-", input: Array(lines.utf8.dropLast()), entries: 3)
                #expect(pipe.summary["fresh"] == 3, "\(pipe.result)")
                #expect(pipe.report.entries.allSatisfy { $0.manifest == "-" })

                let whole = Encodings.encoded(Array(lines.utf8), .gzip)
                try workspace.write(whole, to: "entries.txt.gz")
                let compressed = try await run("entries.txt.gz", entries: 3)
                #expect(compressed.summary["fresh"] == 3, "\(compressed.result)")
                try workspace.write(whole.dropLast(9), to: "cut.txt.gz")
                let cut = try await workspace.run("cut.txt.gz")
                #expect(cut.status == 2 && cut.error.contains("cut.txt.gz"), "\(cut)")

                try workspace.manifest([urls[0], urls[1]], name: "a")
                try workspace.manifest([urls[1], urls[2]], name: "b")
                let several = try await run("a", "b", entries: 4)
                #expect(
                    several.summary.outcomes == ["fresh": 3, "duplicate": 1],
                    "\(several.result)")
                #expect(origin.requests.count == 3)

                let paths = ["/list/a.png", "/b.png", "/list/deep/c.png", "/d.png"]
                for (index, path) in paths.enumerated() {
                    origin.serve(path, .image(Fixtures.png(seed: index)))
                }
                let relative = try await workspace.prefetch(
                    ["a.png", "../b.png", "deep/c.png", "/d.png"],
                    "--base-url", origin.url("/list/index.html"), "-j", "1")
                #expect(relative.summary["downloaded"] == 4, "\(relative.result)")
                #expect(origin.snapshot.paths.suffix(4) == paths[...])
                #expect(relative.report[line: 1]?.key == origin.url("/list/a.png"))
            }
        }
    }

    /// Also of `curl … | prefetch - others.txt`, where `curl` has failed.
    @Test func filesThatAreNoListsAndEmptyListsAreNamed() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(1)
            let json = "[\"\(urls[0])\"]\n"
            try await withWorkspace { workspace in
                // A file of another kind is refused before any request.
                try workspace.write(Array((urls[0] + "\n").utf8), to: "good.txt")
                try workspace.write(Array(json.utf8), to: "images.json")
                let result = try await workspace.run("good.txt", "images.json")
                #expect(result.status == 2)
                #expect(
                    result.error == """
                        prefetch: images.json: looks like JSON, not a list
                        hint: jq -cr '.[]' FILE writes the elements of the array as lines

                        """)
                var command = workspace.command(["-"])
                command.input = .bytes(Array(json.utf8))
                let piped = try await command.run()
                #expect(piped.status == 2)
                #expect(
                    piped.error.contains("standard input: looks like JSON"), "\(piped)")
                #expect(origin.requests.isEmpty)
                let asText = try await workspace.run("images.json", "--format", "text")
                #expect(asText.status == 1)
                #expect(asText.error.contains("images.json:1: "), "\(asText)")

                for text in ["", "# nothing here\n\n"] {
                    try workspace.write(Array(text.utf8), to: "entries")
                    let result = try await workspace.run("entries", "--summary", "none")
                    #expect(result.status == 1, "\(result)")
                    #expect(result.error.contains("entries: no entries; "), "\(result)")
                    #expect(result.output.isEmpty)
                }
                try workspace.manifest(urls)
                for (options, status) in [([], Int32(1)), (["--allow-empty"], 0)] {
                    let result = try await workspace.command(["-", "manifest.txt", "-q"] + options)
                        .run()
                    #expect(result.status == status, "\(result)")
                    #expect(
                        result.error.contains("standard input: no entries; ") == (status == 1),
                        "\(result)")
                }
            }
        }
    }

    /// A bad line is printed unchanged; its field is not part of the URL.
    @Test func badLinesAreFailedEntriesThatNameFileAndLine() async throws {
        let named = [
            "images/relative.png", "http://", "http://[::1/a.png", "http://127.0.0.1:99999/a.png",
            "http://127.0.0.1/a.png priority=urgent", "http://127.0.0.1/a.png priority=101",
            "http://127.0.0.1/a.png surprise", "http://127.0.0.1/a.png colour=red", "::::",
        ]
        let shown = [
            "http://127.0.0.1/a.png quality=900", "http://127.0.0.1/b.png\tencode=gif",
            "http://127.0.0.1/my picture.png",
            "http://u:SECRET@127.0.0.1/d.png SECRET2=1 =u:SECRET@h",
        ]
        try await withOrigin { origin in
            let good = origin.serveImages(2)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.prefetch(
                    [good[0]] + named + [good[1]], "--order", "lifo")
                #expect(run.result.status == 1)
                #expect(
                    run.report.verdicts
                        == ["downloaded"] + named.map { _ in "failed/invalid-entry" }
                        + ["downloaded"])
                for (index, line) in named.enumerated() {
                    let message = run.report[line: index + 2]?.message
                    #expect(message?.contains("manifest-1.txt:\(index + 2)") == true, "\(line)")
                }
                #expect(run.summary.reasons == ["invalid-entry": named.count])

                let next = try await workspace.prefetch(shown)
                for text in [
                    "1: http://127.0.0.1/a.png: invalid-entry: field 'quality' takes 1 to 100, not '900'",
                    "2: http://127.0.0.1/b.png: invalid-entry: field 'encode' takes same, jpeg,",
                    "3: http://127.0.0.1/my picture.png: invalid-entry: text without '=' after the URL",
                    "4: http://***@127.0.0.1/d.png: invalid-entry: unknown field 'SECRET2'",
                ] {
                    #expect(next.result.error.contains("manifest-2.txt:" + text), "\(next.result)")
                }
                #expect(
                    !next.result.error.contains("%20") || next.result.error.contains("written %20"))
                #expect(!next.result.error.contains("SECRET@"), "\(next.result)")
                #expect(
                    (1...4).map { next.report[line: $0]?.url } == [
                        "http://127.0.0.1/a.png", "http://127.0.0.1/b.png",
                        "http://127.0.0.1/my picture.png", "http://***@127.0.0.1/d.png",
                    ])

                // Cron's mail names the form that all lines have.
                try workspace.manifest((1...5).map { "\"http://127.0.0.1:1/\($0).png\"" })
                let quiet = try await workspace.run("manifest.txt", "-q", "--fail-on", "new")
                #expect(quiet.status == 1, "\(quiet)")
                #expect(
                    quiet.error.contains("5 lines have quotation marks around the URL"),
                    "\(quiet)")
            }
        }
    }

    @Test func aListMayBeNamedLikeASubcommand() async throws {
        try await withOrigin { origin in
            origin.serve("/a", .image(Fixtures.png()))
            try await withWorkspace { workspace in
                try workspace.write(Array("\(origin.url("/a"))\n".utf8), to: "list")
                let hint = "hint: for the list in the file list: prefetch ./list\n"
                for arguments in [["list"], ["list", "--order", "lifo"]] {
                    let result = try await workspace.command(arguments).run()
                    #expect(result.status != 0 && result.error.hasSuffix(hint), "\(result)")
                }
                let run = try await workspace.run("./list")
                #expect(run.status == 0, "\(run)")
                let listed = try await workspace.run("list")
                #expect(listed.status == 0 && !listed.error.contains("hint"), "\(listed)")
                try workspace.manifest([], name: "failed")
                let failed = try await workspace.run("failed", "more.txt")
                #expect(failed.status == 64 && failed.error.contains("./failed"), "\(failed)")
            }
        }
    }

    @Test func linesOfAPipeStartWhenTheyArrive() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(2)
            try await withWorkspace(without: [.stalls]) { workspace in
                var command = workspace.command([
                    "run", "-", "--order", "lifo", "--report", "report",
                ])
                command.input = .open
                let running = try command.start()
                for (index, url) in urls.enumerated() {
                    running.send(Array("\(url)\n".utf8))
                    try await origin.wait(for: "the line's request") { $0.answered == index + 1 }
                }
                running.closeInput()
                let run = try workspace.finish(await running.wait(), entries: 2)
                #expect(run.summary["downloaded"] == 2, "\(run.result)")
            }
        }
    }
}

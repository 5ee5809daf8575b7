import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15)))
struct ManifestTests {
    @Test func commentsBlankLinesLineEndsAndTheByteOrderMarkAreNoEntries() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(3)
            let text =
                "\u{FEFF}# pictures\r\n\r\n\(urls[0])\r\n   \r\n  \(urls[1])\tpriority=high\r\n"
                + "# \(origin.url("/comment.png"))\n\(urls[2])"
            try await withWorkspace { workspace in
                try workspace.write(Array(text.utf8), to: "entries")
                let result = try await workspace.run("entries", "--report", "report")
                let run = try workspace.finish(result, entries: 3)
                #expect(run.report.verdicts == ["downloaded", "downloaded", "downloaded"])
                #expect(run.report.entries.map(\.line).sorted() == [3, 5, 7])
                #expect(run.report.entries.allSatisfy { $0.manifest == "entries" })
            }
        }
    }

    @Test func anEmptyManifestWarns() async throws {
        try await withWorkspace { workspace in
            for text in ["", "# nothing here\n\n"] {
                try workspace.write(Array(text.utf8), to: "entries")
                let result = try await workspace.run("entries", "--summary", "none")
                #expect(result.status == 1, "\(result)")
                #expect(result.error.contains("entries: no entries; "), "\(result)")
                #expect(result.output.isEmpty)
            }
        }
    }

    /// `curl … | prefetch - others.txt`, and `curl` has failed.
    @Test func anEmptyManifestAmongOthersWarns() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(1)
            try await withWorkspace { workspace in
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

    /// Cron's mail names the cause too.
    @Test func quietRunThatFailsNamesTheFormOfItsLines() async throws {
        try await withWorkspace { workspace in
            try workspace.manifest((1...5).map { "\"http://127.0.0.1:1/\($0).png\"" })
            let result = try await workspace.run("manifest.txt", "-q", "--fail-on", "new")
            #expect(result.status == 1, "\(result)")
            #expect(
                result.error.contains("5 lines have quotation marks around the URL"), "\(result)")
        }
    }

    @Test func badLinesAreFailedEntriesThatNameFileAndLine() async throws {
        let lines = [
            "images/relative.png", "http://", "http://[::1/a.png", "http://127.0.0.1:99999/a.png",
            "http://127.0.0.1/a.png priority=urgent", "http://127.0.0.1/a.png priority=101",
            "http://127.0.0.1/a.png surprise", "http://127.0.0.1/a.png colour=red",
        ]
        try await withWorkspace(without: [.retries, .probes]) { workspace in
            let run = try await workspace.prefetch(lines)
            #expect(run.result.status == 1)
            for (index, entry) in run.report.entries.sorted(by: { $0.line < $1.line }).enumerated()
            {
                #expect(entry.verdict == "failed/invalid-entry", "\(lines[index])")
                let place = "manifest-1.txt:\(index + 1)"
                #expect(entry.message?.contains(place) == true, "\(entry)")
            }
            #expect(run.summary.reasons == ["invalid-entry": lines.count])
        }
    }

    /// A bad line is printed unchanged; its field is not part of the URL.
    @Test func badLinesAreShownAsTheyAreWritten() async throws {
        let lines = [
            "http://127.0.0.1/a.png quality=900", "http://127.0.0.1/b.png\tencode=gif",
            "http://127.0.0.1/my picture.png",
            "http://u:SECRET@127.0.0.1/d.png SECRET2=1 =u:SECRET@h",
        ]
        try await withWorkspace(without: [.retries, .probes]) { workspace in
            let run = try await workspace.prefetch(lines)
            for shown in [
                "1: http://127.0.0.1/a.png: invalid-entry: field 'quality' takes 1 to 100, not '900'",
                "2: http://127.0.0.1/b.png: invalid-entry: field 'encode' takes same, jpeg,",
                "3: http://127.0.0.1/my picture.png: invalid-entry: text without '=' after the URL",
                "4: http://***@127.0.0.1/d.png: invalid-entry: unknown field 'SECRET2'",
            ] {
                #expect(run.result.error.contains("manifest-1.txt:" + shown), "\(run.result)")
            }
            #expect(!run.result.error.contains("%20") || run.result.error.contains("written %20"))
            #expect(!run.result.error.contains("SECRET@"), "\(run.result)")
            let urls = run.report.entries.sorted { $0.line < $1.line }.map(\.url)
            #expect(
                urls == [
                    "http://127.0.0.1/a.png", "http://127.0.0.1/b.png",
                    "http://127.0.0.1/my picture.png", "http://***@127.0.0.1/d.png",
                ])
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
            }
        }
    }

    @Test func badLinesDoNotKeepGoodOnesFromArriving() async throws {
        try await withOrigin { origin in
            let good = origin.serveImages(2)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.prefetch(
                    [good[0], "::::", good[1]], "--order", "lifo")
                #expect(
                    run.report.verdicts == ["downloaded", "failed/invalid-entry", "downloaded"])
                #expect(run.result.status == 1)
            }
        }
    }

    @Test func aManifestThatIsNoListIsRefusedBeforeAnythingIsRequested() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(1)
            let json = "[\"\(urls[0])\"]\n"
            try await withWorkspace { workspace in
                try workspace.write(Array((urls[0] + "\n").utf8), to: "good.txt")
                try workspace.write(Array(json.utf8), to: "images.json")
                let result = try await workspace.run("good.txt", "images.json")
                #expect(result.status == 2)
                #expect(
                    result.error == """
                        prefetch: images.json: looks like JSON, not a list
                        hint: jq -c '.[]' FILE writes the elements of an array as lines

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
            }
        }
    }

    @Test func aManifestThatCannotBeReadEndsTheRunWithStatus2() async throws {
        try await withWorkspace { workspace in
            for name in ["missing.txt", "."] {
                let result = try await workspace.run(name)
                #expect(result.status == 2, "\(result)")
                #expect(result.error.contains("prefetch: "), "\(result)")
                #expect(result.error.contains(name), "\(result)")
                #expect(result.output.isEmpty)
            }
        }
    }

    @Test func standardInputIsAManifest() async throws {
        try await withOrigin { origin in
            let text = origin.serveImages(3).joined(separator: "\n")
            try await withWorkspace { workspace in
                var command = workspace.command(["-", "--report", "report"])
                command.input = .bytes(Array(text.utf8))
                let run = try workspace.finish(await command.run(), entries: 3)
                #expect(run.summary["downloaded"] == 3, "\(run.result)")
                #expect(run.report.entries.allSatisfy { $0.manifest == "-" })
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

    @Test func compressedManifestsAreRead() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(3)
            try await withWorkspace { workspace in
                try workspace.manifest(urls, name: "entries.txt")
                var gzip = workspace.command(["entries.txt"])
                gzip.executable = "/bin/gzip"
                #expect(try await gzip.run().status == 0)
                let result = try await workspace.run("entries.txt.gz", "--report", "report")
                let run = try workspace.finish(result, entries: 3)
                #expect(run.summary["downloaded"] == 3, "\(result)")
            }
        }
    }

    @Test func aCutCompressedManifestEndsTheRunWithStatus2() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(3)
            try await withWorkspace { workspace in
                try workspace.manifest(urls, name: "entries.txt")
                var gzip = workspace.command(["-c", "entries.txt"])
                gzip.executable = "/bin/gzip"
                let whole = try await gzip.run().outputBytes
                try workspace.write(whole.dropLast(9), to: "cut.txt.gz")
                let result = try await workspace.run("cut.txt.gz")
                #expect(result.status == 2, "\(result)")
                #expect(result.error.contains("cut.txt.gz"), "\(result)")
            }
        }
    }

    @Test func relativeEntriesResolveAgainstTheBaseURL() async throws {
        try await withOrigin { origin in
            let paths = ["/list/a.png", "/b.png", "/list/deep/c.png", "/d.png"]
            for (index, path) in paths.enumerated() {
                origin.serve(path, .image(Fixtures.png(seed: index)))
            }
            try await withWorkspace { workspace in
                let run = try await workspace.prefetch(
                    ["a.png", "../b.png", "deep/c.png", "/d.png"],
                    "--base-url", origin.url("/list/index.html"), "-j", "1")
                #expect(run.summary["downloaded"] == 4, "\(run.result)")
                #expect(origin.snapshot.paths == paths)
                #expect(run.report[line: 1]?.key == origin.url("/list/a.png"))
            }
        }
    }

    @Test func severalManifestsAreOneRun() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(3)
            try await withWorkspace { workspace in
                try workspace.manifest([urls[0], urls[1]], name: "a")
                try workspace.manifest([urls[1], urls[2]], name: "b")
                let result = try await workspace.run("a", "b", "--report", "report")
                let run = try workspace.finish(result, entries: 4)
                #expect(run.summary.outcomes == ["downloaded": 3, "duplicate": 1], "\(result)")
            }
        }
    }

    @Test(arguments: [
        ["--no-such-flag"], ["entries", "--order", "sideways"], ["entries", "-j", "0"],
        ["entries", "-j", "many"], ["entries", "--timeout", "soon"],
        ["entries", "--quality", "101"],
        ["entries", "--max-filesize", "-1"], ["entries", "--encode", "bitmap"], ["get"],
    ])
    func wrongUsageExits64(arguments: [String]) async throws {
        try await withWorkspace { workspace in
            try workspace.manifest([], name: "entries")
            let result = try await workspace.command(arguments).run()
            #expect(result.status == 64, "\(result)")
            #expect(!result.error.isEmpty && result.output.isEmpty, "\(result)")
        }
    }
}

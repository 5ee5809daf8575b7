import Foundation
import Glibc
import TestSupport
import Testing

/// Lists that a run fetches.
@Suite(.timeLimit(.minutes(15)))
struct ListByURLTests {
    /// A list that must be validated at each use, with a validator.
    private func serveList(
        _ lines: [String], at path: String = "/list.txt", tag: String = "\"1\"", on origin: Origin
    ) -> String {
        let fields = [("ETag", tag), ("Cache-Control", "max-age=0")]
        origin.serve { request in
            guard request.path == path else { return nil }
            if request.header("If-None-Match") == tag {
                return Response(304, headers: fields, framing: .bodiless)
            }
            return Response(headers: fields, body: Array(lines.joined(separator: "\n").utf8))
        }
        return origin.url(path)
    }

    private func requests(_ origin: Origin, to path: String) -> [Origin.Request] {
        origin.requests.filter { $0.path == path }
    }

    private func index(_ urls: [String]) -> Response {
        let sitemaps = urls.map { "<sitemap><loc>\($0)</loc></sitemap>\n" }.joined()
        return .text("<sitemapindex>\(sitemaps)</sitemapindex>", type: "application/xml")
    }

    private func sitemap(_ urls: [String]) -> Response {
        let images = urls.map { "<image><loc>\($0)</loc></image>" }.joined()
        return .text("<urlset><url>\(images)</url></urlset>", type: "application/xml")
    }

    @Test func aListIsRequestedWhenItsLifetimeHasEnded() async throws {
        try await withOrigin { origin in
            let images = origin.serveImages(2)
            let list = serveList(images, on: origin)
            let size = images.joined(separator: "\n").utf8.count
            origin.serve("/long.txt", .text(images[0], type: "text/plain"))
            try await withWorkspace { workspace in
                let first = try await workspace.run("--list", list, "-v", "--summary", "json")
                #expect(first.status == 0, "\(first)")
                #expect(first.error.contains("prefetch: \(list): fetched "), "\(first)")
                #expect(first.output.contains("\"downloaded\":2"), "\(first)")
                #expect(
                    first.output.contains(
                        #""lists":{"fetched":1,"not_modified":0,"stored":0,"fallback":0,"failed":0,"#
                            + #""requests":1,"bytes_received":\#(size)}"#), "\(first)")
                for _ in 0..<2 {
                    let next = try await workspace.run(
                        "run", "--list", list, "-v", "--summary", "json")
                    #expect(next.status == 0, "\(next)")
                    #expect(next.error.contains("prefetch: \(list): not modified"), "\(next)")
                    #expect(next.output.contains("\"fresh\":2"), "\(next)")
                    #expect(
                        next.output.contains(
                            #""lists":{"fetched":0,"not_modified":1,"stored":0,"fallback":0,"#
                                + #""failed":0,"requests":1,"bytes_received":0}"#), "\(next)")
                }
                let asked = requests(origin, to: "/list.txt").map { $0.header("If-None-Match") }
                #expect(asked == [nil, "\"1\"", "\"1\""])

                // The origin's lifetime spares the request, except of a run that refreshes all.
                let long = origin.url("/long.txt")
                for (options, count) in [([], 1), ([], 1), (["--refresh", "all"], 2)] {
                    let result = try await workspace.command(["--list", long] + options).run()
                    #expect(result.status == 0, "\(result)")
                    #expect(requests(origin, to: "/long.txt").count == count)
                }
                let none = try await workspace.run(
                    try workspace.manifest([images[1]]), "--summary", "json")
                #expect(none.output.contains("\"lists\":null"), "\(none)")
            }
        }
    }

    /// Lists hold passwords and request fields. Neither a mode nor a command that takes files over
    /// gives them to others, and `chmod` makes them private again.
    @Test(arguments: [
        [["run", "manifest.txt", "--allow-empty", "-q"]], [["chmod", "0640", "-q"]],
        [["hosts", "clear"]], [["merge", "cache", "other", "-q"]],
        [["chmod", "0600", "-q"], ["chmod", "0644", "-q"]],
    ])
    func listsStayPrivate(_ commands: [[String]]) async throws {
        try await withOrigin { origin in
            let list = serveList(origin.serveImages(2), on: origin)
            try await withWorkspace { workspace in
                try workspace.manifest([])
                func run(_ arguments: [String]) async throws {
                    let result = try await workspace.command(arguments).run()
                    #expect(result.status == 0, "\(result)")
                }
                func modes() throws -> Set<mode_t> {
                    let folder = workspace.cache + "/lists"
                    let names = try FileManager.default.contentsOfDirectory(atPath: folder)
                    #expect(names.count == 2)
                    return try Set(
                        ([""] + names).map { name in
                            var status = stat()
                            try #require(lstat("\(folder)/\(name)", &status) == 0)
                            return status.st_mode & 0o777
                        })
                }
                try await run([
                    "run", "manifest.txt", "--allow-empty", "--cache-dir", "other", "-q",
                ])
                try await run(["run", "--list", list, "--mode", "0644", "-q"])
                let gone = try await workspace.run("run", "--list", origin.url("/gone"), "-q")
                #expect(gone.status == 2, "\(gone)")
                #expect(try modes() == [0o700, 0o600])
                for command in commands { try await run(command) }
                #expect(try modes() == [0o700, 0o600])
                for name in try FileManager.default.contentsOfDirectory(
                    atPath: workspace.cache + "/lists")
                {
                    try #require(chmod("\(workspace.cache)/lists/\(name)", 0o644) == 0)
                }
                try #require(chmod(workspace.cache + "/lists", 0o755) == 0)
                let doctor = try await workspace.run("doctor")
                let mode = commands.contains { $0.contains("0640") } ? "0640" : "0644"
                #expect(doctor.output.contains("mode \(mode): lists"), "\(doctor)")
                try await run(["chmod", "0640", "-q"])
                #expect(try modes() == [0o700, 0o600])
            }
        }
    }

    @Test func theLastCopyIsUsedWhileTheOriginFails() async throws {
        try await withOrigin { images in
            let origin = try await Origin.startOnPortOfItsOwn()
            let list = serveList(images.serveImages(1), on: origin)
            try await withWorkspace(without: [.retries]) { workspace in
                let first = try await workspace.run("--list", list)
                #expect(first.status == 0, "\(first)")
                // A page in place of the list does not replace the copy.
                origin.serve("/list.txt", .text("<!doctype html><html></html>"), .unavailable(500))
                for message in ["looks like a web page (HTML), not a list", "HTTP 500"] {
                    let result = try await workspace.run("--list", list, "--retry", "0")
                    #expect(result.status == 0, "\(result)")
                    #expect(
                        result.error.contains(
                            "prefetch: \(list): \(message); using the copy of 20"), "\(result)")
                    #expect(result.error.contains("1 fresh"), "\(result)")
                }
                // Cron mails the change, and nothing more.
                origin.serve("/list.txt", .text(images.serveImages(1)[0], type: "text/plain"))
                let back = try await workspace.run("--list", list, "-q", "--refresh", "all")
                #expect(back.status == 0, "\(back)")
                #expect(
                    back.errorLines.count == 1
                        && back.error.contains("\(list): available again: fetched"), "\(back)")
                let usual = try await workspace.run("--list", list, "-q", "--refresh", "all")
                #expect(usual.status == 0 && usual.error.isEmpty, "\(usual)")
                try await origin.stop()
                let news = try await workspace.run(
                    "--list", list, "--retry", "0", "-q", "--refresh", "all")
                #expect(news.status == 0 && news.errorLines.count == 1, "\(news)")
                #expect(news.error.contains("\(list): "), "\(news)")
                let down = try await workspace.run(
                    "--list", list, "--retry", "0", "--refresh", "all")
                #expect(down.status == 0 && down.error.contains("using the copy of"), "\(down)")
                let quiet = try await workspace.run(
                    "--list", list, "--retry", "0", "-q", "--refresh", "all")
                #expect(quiet.status == 0 && quiet.error.isEmpty, "\(quiet)")
            }
        }
    }

    @Test func aListWithoutACopyEndsTheRun() async throws {
        try await withOrigin { origin in
            let image = origin.serveImages(1)[0]
            origin.serve(
                "/secret.txt",
                Response(headers: [("Cache-Control", "no-store")], body: Array(image.utf8)),
                .notFound)
            try await withWorkspace { workspace in
                try workspace.manifest([image], name: "a.txt")
                let missing = try await workspace.run("a.txt", "--list", origin.url("/no.txt"))
                #expect(missing.status == 2, "\(missing)")
                #expect(
                    missing.errorLines.first == "prefetch: \(origin.url("/no.txt")): HTTP 404")
                #expect(
                    missing.errorLines.last
                        == "hint: the cache has no earlier copy to use in its place")
                #expect(requests(origin, to: "/image/0.png").isEmpty)

                // Its origin forbids a copy.
                let once = try await workspace.run("--list", origin.url("/secret.txt"))
                #expect(once.status == 0 && once.error.contains("1 downloaded"), "\(once)")
                let again = try await workspace.run("--list", origin.url("/secret.txt"))
                #expect(again.status == 2, "\(again)")

                // The report, test cases, metrics and an annotation name the missing list.
                for summary in ["text", "json", "none"] {
                    var command = workspace.command([
                        "--list", origin.url("/no.txt"), "--junit", "\(summary).xml",
                        "--prometheus", "\(summary).prom", "--report", "\(summary).jsonl",
                        "--summary", summary,
                    ])
                    command.environment["GITHUB_ACTIONS"] = "true"
                    let result = try await command.run()
                    #expect(result.status == 2, "\(result)")
                    let message = "\(origin.url("/no.txt")): HTTP 404"
                    #expect(result.error.contains("prefetch: \(message)\n"), "\(result)")
                    #expect(
                        result.error.contains("::error title=prefetch::\(message)\n"), "\(result)")
                    func text(_ name: String) throws -> String {
                        try String(contentsOfFile: "\(workspace.folder)/\(name)", encoding: .utf8)
                    }
                    #expect(try await workspace.junitComplaints("\(summary).xml") == "")
                    let document = try XMLDocument(workspace.folder + "/\(summary).xml")
                    #expect(document.all("testsuite").first?["errors"] == "1")
                    #expect(try text("\(summary).xml").contains(message))
                    let report = try text("\(summary).jsonl")
                    #expect(report.contains("\"message\":\"\(message)\""))
                    #expect(report.contains("\"lists\":{\"fetched\":0,"))
                    let metrics = try text("\(summary).prom")
                    let job = "{list=\"\(origin.url("/no.txt"))\",cache=\"\(workspace.cache)\""
                    #expect(
                        metrics.contains("prefetch_last_run_exit_status\(job)} 2\n")
                            && metrics.contains("prefetch_lists\(job),source=\"failed\"} 1\n"),
                        "\(metrics)")
                }
            }
        }
    }

    /// Lists that their origin has cut, and texts of errors with status 200.
    private static let wrongBodies: [(whole: String, wrong: [UInt8]?)] =
        [("xml", nil), ("gz", nil)]
        + [
            #"{"error":"maintenance"}"#, "maintenance\n", "<html><body>Error</body></html>",
            "url,error\n,maintenance\n",
        ].map { ("text", Array($0.utf8)) }

    @Test(arguments: wrongBodies)
    func aWrongBodyReplacesNothing(format: String, wrong: [UInt8]?) async throws {
        try await withOrigin { origin in
            let images = origin.serveImages(3)
            let text = Array(images.map { $0 + "\n" }.joined().utf8)
            let whole =
                switch format {
                case "xml": sitemap(images).body
                case "gz": Encodings.encoded(text, .gzip)
                default: text
                }
            let cut = wrong ?? Array(whole.dropLast(9))
            func response(_ body: [UInt8]) -> Response {
                Response(headers: [("Cache-Control", "max-age=0")], body: body)
            }
            origin.serve(
                "/list", response(whole), response(cut), wrong == nil ? response(cut) : .notFound)
            origin.serve("/first", response(cut))
            try await withWorkspace(without: [.retries]) { workspace in
                let list = origin.url("/list")
                #expect(try await workspace.run("--list", list).status == 0)
                for _ in 0..<2 {
                    let kept = try await workspace.run(
                        "--list", list, "--allow-empty", "--retry", "0", "--summary", "json")
                    #expect(kept.status == 0, "\(kept)")
                    #expect(kept.error.contains("; using the copy of"), "\(kept)")
                    #expect(kept.output.contains("\"fallback\":1"), "\(kept)")
                    #expect(kept.output.contains("\"fresh\":3"), "\(kept)")
                }
                #expect(requests(origin, to: "/list").count == 3)
                guard wrong != nil else { return }
                let first = try await workspace.run("--list", origin.url("/first"))
                #expect(first.status == 2 && first.error.contains("/first: "), "\(first)")
            }
        }
    }

    /// A list without an entry is more often a mistake.
    private func expectEmptyListReplacesNothing(
        at path: String, _ empty: String, _ origin: Origin, _ workspace: Workspace, _ image: String
    ) async throws {
        let whole = path == "/xml" ? sitemap([image]).body : Array(image.utf8)
        func response(_ body: [UInt8]) -> Response {
            Response(headers: [("Cache-Control", "max-age=0")], body: body)
        }
        origin.serve(path, response(whole), response(Array(empty.utf8)))
        let list = origin.url(path)
        #expect(try await workspace.run("--list", list).status == 0)
        let kept = try await workspace.run("--list", list)
        #expect(kept.status == 0 && kept.error.contains("1 fresh"), "\(kept)")
        #expect(kept.error.contains("\(list): no entries; using the copy of"), "\(kept)")
        let allowed = try await workspace.run("--list", list, "--allow-empty")
        #expect(allowed.status == 0, "\(allowed)")
        #expect(allowed.error.contains("\(list): no entries"), "\(allowed)")
        let replaced = try await workspace.run("--list", list)
        #expect(replaced.status == 1, "\(replaced)")
    }

    /// A list that shrinks to less than a tenth replaces its copy when it has been that short for a
    /// day.
    @Test func anEmptyOrMuchShorterListIsConfirmedBeforeItReplacesTheCopy() async throws {
        try await withOrigin { origin in
            let image = origin.serveImages(1)[0]
            func response(_ count: Int) -> Response {
                let text = String(repeating: image + "\n", count: count)
                return Response(headers: [("Cache-Control", "max-age=0")], body: Array(text.utf8))
            }
            origin.serve(
                "/list", response(50), response(5), response(4), response(4), response(50),
                response(4), response(4), response(4))
            try await withWorkspace { workspace in
                func run(entries: Int, isWarned: Bool) async throws {
                    let result = try await workspace.run("--list", origin.url("/list"))
                    #expect(result.error.contains("\(entries) entries: "), "\(result)")
                    #expect(
                        result.error.contains("4 entries in place of ") == isWarned, "\(result)")
                }
                for (path, empty) in [("/xml", "<urlset/>"), ("/text", "# nothing\n")] {
                    try await expectEmptyListReplacesNothing(
                        at: path, empty, origin, workspace, image)
                }
                /// Moves the first short fetch a day into the past.
                func waitADay() throws {
                    let folder = "\(workspace.cache)/lists"
                    for name in try FileManager.default.contentsOfDirectory(atPath: folder) {
                        let path = "\(folder)/\(name)"
                        let text = try String(contentsOfFile: path, encoding: .utf8)
                        let aged = text.replacing(/shrunk-since: (\d+)/) {
                            "shrunk-since: \((Int($0.1) ?? 0) - 86_400_000)"
                        }
                        try aged.write(toFile: path, atomically: false, encoding: .utf8)
                    }
                }
                try await run(entries: 50, isWarned: false)
                // A tenth is permitted.
                try await run(entries: 5, isWarned: false)
                try await run(entries: 4, isWarned: false)
                try await run(entries: 4, isWarned: false)
                try await run(entries: 50, isWarned: false)
                try await run(entries: 50, isWarned: true)
                try await run(entries: 50, isWarned: true)
                try waitADay()
                try await run(entries: 4, isWarned: false)
            }
        }
    }

    /// The failure of a sitemap is new once.
    @Test func aMissingSitemapIsKnownInTheNextRun() async throws {
        try await withOrigin { origin in
            let image = origin.serveImages(1)[0]
            origin.serve("/index.xml", index([origin.url("/a.xml"), origin.url("/no.xml")]))
            origin.serve("/a.xml", sitemap([image]))
            origin.serve("/no.xml", .notFound, .notFound, sitemap([]), .notFound)
            try await withWorkspace(without: [.retries]) { workspace in
                // The last time its copy is used, which is news.
                for (status, isNews): (Int32, Bool) in [
                    (1, true), (0, false), (0, false), (0, true),
                ] {
                    let result = try await workspace.run(
                        "--list", origin.url("/index.xml"), "-q", "--fail-on", "new", "--refresh",
                        "all", "--allow-empty")
                    #expect(result.status == status, "\(result)")
                    #expect(result.error.contains("HTTP 404") == isNews, "\(result)")
                }
            }
        }
    }

    @Test func commandsThatSendNothingUseTheCopy() async throws {
        try await withOrigin { origin in
            let list = serveList(origin.serveImages(2), on: origin)
            try await withWorkspace { workspace in
                let text = """
                    [list.shop]
                    file = "\(list)"
                    [host."127.*"]
                    header = "X-Shop: 7"

                    """
                try workspace.write(Array(text.utf8), to: "shop.toml")
                let early = try await workspace.run("plan", "--list", list)
                #expect(early.status == 2, "\(early)")
                #expect(early.error.contains("\(list): not in the cache; `prefetch run` "))
                #expect(origin.requests.isEmpty)
                let run = try await workspace.run("@shop", "--config", "shop.toml")
                #expect(run.status == 0 && run.error.contains("2 downloaded"), "\(run)")
                let sent = requests(origin, to: "/list.txt").map { $0.header("X-Shop") }
                #expect(sent == ["7"])
                let count = origin.requests.count
                for arguments in [
                    ["plan", "--list", list], ["plan", "@shop", "--config", "shop.toml"],
                    ["@shop", "--config", "shop.toml", "--offline"],
                ] {
                    let result = try await workspace.command(arguments).run()
                    #expect(result.status == 0, "\(result)")
                    #expect((result.output + result.error).contains("2 fresh"), "\(result)")
                    #expect(result.error.contains("\(list): using the copy of 20"), "\(result)")
                }
                try workspace.manifest([origin.url("/image/0.png")], name: "other.txt")
                let prune = try await workspace.run(
                    "prune", "--unlisted", "@shop", "--config", "shop.toml", "--dry-run")
                #expect(prune.status == 0, "\(prune)")
                #expect(prune.error.contains("would remove 0 images"), "\(prune)")
                #expect(origin.requests.count == count)
            }
        }
    }

    @Test func formatsCompressionRedirectsAndRetries() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(3)
            let table = Array("id,image_url\n1,\(urls[0])\n".utf8)
            origin.serve("/a.csv?v=1", Response(body: table))
            origin.serve("/b", Response(body: Encodings.encoded(Array(urls[1].utf8), .gzip)))
            origin.serve(
                "/c",
                Response(
                    headers: [("Content-Encoding", "gzip")],
                    body: Encodings.encoded(Array(urls[2].utf8), .gzip)))
            origin.serve("/to-c", .redirect(to: "/c"))
            // Failures are retried.
            origin.serve(
                "/d", .unavailable(503, retryAfter: "0"), Response(ending: .resetBeforeHead),
                .text(urls[2], type: "text/plain"))
            try await withWorkspace { workspace in
                let result = try await workspace.run(
                    "-v", "--list", origin.url("/a.csv?v=1"), "--list", origin.url("/b"), "--list",
                    origin.url("/to-c"), "--list", origin.url("/d"), "--retry-delay", "1ms")
                #expect(result.status == 0, "\(result)")
                #expect(requests(origin, to: "/d").count == 3)
                #expect(result.error.contains("/a.csv?v=1: format csv\n"), "\(result)")
                #expect(result.error.contains("3 downloaded"), "\(result)")
                let limited = try await workspace.run(
                    "--list", origin.url("/to-c"), "--max-redirects", "0", "--refresh", "all")
                #expect(limited.error.contains("more redirects than --max-redirects (0)"))
            }
        }
    }

    @Test func credentialsAreSentAndNotPrinted() async throws {
        try await withOrigin { origin in
            let image = origin.serveImages(1)[0]
            origin.serve("/list.xml", index([origin.url("/child.xml")]))
            origin.serve("/child.xml", sitemap([image]))
            let list = origin.url("/list.xml").replacing("http://", with: "http://user:geheim@")
            try await withWorkspace { workspace in
                for _ in 0..<2 {
                    let result = try await workspace.run(
                        "-v", "--list", list + "?token=geheim", "--report", "r.jsonl", "--refresh",
                        "all")
                    #expect(result.status == 0, "\(result)")
                    #expect(!result.error.contains("geheim"), "\(result)")
                    let report = try String(
                        contentsOfFile: workspace.folder + "/r.jsonl", encoding: .utf8)
                    #expect(!report.contains("geheim"), "\(report)")
                }
                let history = try await workspace.run("history", "--json")
                #expect(!history.output.contains("geheim"), "\(history)")
                for path in ["/list.xml", "/child.xml"] {
                    let sent = requests(origin, to: path).map { $0.header("Authorization") }
                    #expect(sent == Array(repeating: "Basic dXNlcjpnZWhlaW0=", count: 2))
                }
            }
        }
    }

    // MARK: Indexes

    @Test(arguments: [true, false])
    func theSitemapsOfAnIndexFollowIt(isLocal: Bool) async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(2)
            let children = ["/a.xml", "/no.xml", "/page.html", "/b.xml"].map { origin.url($0) }
            origin.serve("/a.xml", sitemap([urls[0]]))
            origin.serve("/b.xml", sitemap([urls[1]]))
            origin.serve("/page.html", .text("<!doctype html><html></html>"))
            origin.serve("/index.xml", index(children))
            try await withWorkspace(without: [.retries]) { workspace in
                try workspace.write(index(children).body, to: "index.xml")
                let name = isLocal ? "index.xml" : origin.url("/index.xml")
                let source = isLocal ? [name] : ["--list", name]
                for outcome in ["downloaded", "fresh"] {
                    let result = try await workspace.command(
                        source + ["--report", "r.jsonl"]
                    ).run()
                    #expect(result.status == 1, "\(result)")
                    let report = try Report(contentsOfFile: workspace.folder + "/r.jsonl")
                    let entries = report.entries.sorted { $0.url < $1.url }
                    #expect(entries.map(\.url) == [urls[0], urls[1], children[1], children[2]])
                    #expect(
                        entries.map(\.manifest) == [children[0], children[3], name, name])
                    #expect(entries.map(\.line) == [1, 1, 2, 3])
                    #expect(entries.map(\.outcome) == [outcome, outcome, "failed", "failed"])
                    #expect(entries[2].reason == "http-status")
                    #expect(entries[2].message == "\(name):2: HTTP 404")
                    #expect(entries[3].reason == "invalid-entry")
                }
                let plan = try await workspace.command(["plan"] + source).run()
                #expect(plan.output.contains("2 fresh"), "\(plan)")
            }
        }
    }

    /// Sitemaps are requested ahead, within the limits for a host.
    @Test(
        arguments: [
            ([], 6), (["--host-concurrency", "2"], 2), (["--jobs", "3"], 3),
            (["--host-interval", "1ms"], 1),
        ] as [([String], Int)])
    func sitemapsAreRequestedBesideOneAnother(flags: [String], most: Int) async throws {
        try await withOrigin { images in
            let urls = images.serveImages(12)
            let origin = try await Origin.startOnPortOfItsOwn()
            let gate = Gate()
            let paths = urls.indices.map { "/\($0).xml" }
            for (path, url) in zip(paths, urls) {
                let whole = sitemap([url])
                origin.serve(
                    path,
                    Response(
                        headers: [("ETag", "\"1\""), ("Cache-Control", "max-age=0")],
                        body: whole.body, gate: gate))
            }
            origin.serve("/index.xml", index(paths.map { origin.url($0) }))
            try await withWorkspace { workspace in
                let running = try workspace.command(
                    ["--list", origin.url("/index.xml"), "--report", "r.jsonl"] + flags
                ).start()
                try await origin.wait(for: "sitemaps") { $0.inFlight == most }
                gate.open()
                let result = await running.wait()
                #expect(result.status == 0, "\(result)")
                #expect(result.error.contains("12 downloaded"), "\(result)")
                #expect(origin.snapshot.peakInFlight == most)
                let report = try Report(contentsOfFile: workspace.folder + "/r.jsonl")
                for entry in report.entries {
                    let number = try #require(urls.firstIndex(of: entry.url))
                    #expect(entry.manifest == origin.url(paths[number]))
                }
                // With conditions in the next run.
                let again = try await workspace.command(
                    ["--list", origin.url("/index.xml"), "--refresh", "all", "--summary", "json"]
                        + flags
                ).run()
                #expect(again.output.contains("\"fetched\":13,\"not_modified\":0"), "\(again)")
                for path in paths {
                    let tags = requests(origin, to: path).map { $0.header("If-None-Match") }
                    #expect(tags == [nil, "\"1\""])
                }
            }
            try await origin.stop()
        }
    }

    @Test func indexesThatNameOneAnotherOrNoImage() async throws {
        try await withOrigin { origin in
            let image = origin.serveImages(1)[0]
            let paths = ["/a.xml", "/b.xml", "/c.xml", "/d.xml"]
            // The last one is three levels below the first.
            for (path, next) in zip(paths, paths.dropFirst()) {
                origin.serve(path, index([origin.url("/a.xml"), origin.url(next)]))
            }
            origin.serve("/loop.xml", index([origin.url("/loop.xml"), origin.url("/image.xml")]))
            origin.serve("/image.xml", sitemap([image]))
            try await withWorkspace { workspace in
                let loop = try await workspace.run("--list", origin.url("/loop.xml"))
                #expect(loop.status == 0 && loop.error.contains("1 downloaded"), "\(loop)")
                let deep = try await workspace.run("--list", origin.url("/a.xml"))
                #expect(deep.status == 1, "\(deep)")
                #expect(deep.error.contains("1 entry: 1 failed"), "\(deep)")
                #expect(deep.error.contains("more than 2 levels of indexes"), "\(deep)")
                #expect(paths.map { requests(origin, to: $0).count } == [1, 1, 1, 0])

                // An index without any image.
                let list = origin.url("/index.xml")
                origin.serve(
                    "/index.xml", index([origin.url("/empty1.xml"), origin.url("/empty2.xml")]))
                origin.serve("/empty1.xml", sitemap([]))
                origin.serve("/empty2.xml", sitemap([]))
                let empty = try await workspace.run("--list", list)
                #expect(empty.status == 1, "\(empty)")
                #expect(empty.error.contains("prefetch: \(list): no entries; "), "\(empty)")
                origin.serve("/empty1.xml", sitemap([image]))
                let some = try await workspace.run("--list", list, "--refresh", "all")
                #expect(some.status == 0, "\(some)")
                #expect(!some.error.contains("no entries"), "\(some)")

                // A sitemap without images names the flag for its pages.
                let pages = (1...3).map { "<url><loc>\(origin.url("/\($0)"))</loc></url>" }
                let text = "<urlset>\(pages.joined())</urlset>"
                origin.serve("/pages.xml", .text(text, type: "application/xml"))
                let paged = try await workspace.run("--list", origin.url("/pages.xml"))
                #expect(paged.status == 1, "\(paged)")
                #expect(paged.error.contains("/pages.xml: no entries: no image on 3 pages"))
                #expect(paged.error.contains("hint: --sitemap-pages reads the pages"))
                let argument = try await workspace.run(origin.url("/pages.xml"))
                #expect(argument.status == 1, "\(argument)")
                #expect(argument.error.contains("hint: `--list URL` reads a list"), "\(argument)")
            }
        }
    }

    // MARK: The end of a run

    @Test(arguments: ["/list.txt", "/index.xml"])
    func aSignalEndsTheWaitForAList(path: String) async throws {
        try await withOrigin { origin in
            let gate = Gate()
            origin.serve("/list.txt", Response(body: Array("x".utf8), gate: gate))
            origin.serve("/index.xml", index([origin.url("/list.txt")]))
            try await withWorkspace { workspace in
                let running = try workspace.command([
                    "--list", origin.url(path), "--stall-timeout", "1h", "--timeout", "1h",
                    "--report", "r.jsonl", "--junit", "r.xml",
                ]).start()
                try await origin.wait(for: "a held list") {
                    $0.inFlight == 1 && $0.requests.last?.path == "/list.txt"
                }
                // As timeout(1) does.
                running.signal(SIGTERM)
                running.signal(SIGTERM)
                let result = await running.wait()
                #expect(result.signal == SIGTERM, "\(result)")
                #expect(result.errorLines.first == "prefetch: stopped by SIGTERM", "\(result)")
                let report = try String(
                    contentsOfFile: workspace.folder + "/r.jsonl", encoding: .utf8)
                #expect(report.contains(#""signal":15"#), "\(report)")
                _ = try XMLDocument(workspace.folder + "/r.xml")
                let files = try FileManager.default.contentsOfDirectory(atPath: workspace.folder)
                #expect(!files.contains { $0.hasSuffix(".new") }, "\(files)")
                #expect(!result.error.contains("nothing to do"), "\(result)")
                gate.open()
            }
        }
    }

    /// The end of a run says nothing about the origins of the lists that it did not wait for.
    @Test(arguments: [true, false])
    func aListThatWasNotAwaitedIsNoNews(isStopped: Bool) async throws {
        try await withOrigin { origin in
            let image = origin.serveImages(1)[0]
            let gate = Gate()
            let whole = sitemap([image]).body
            let paths = ["/a.xml", "/b.xml", "/c.xml"]
            for path in paths {
                origin.serve(path, Response(body: whole, gate: gate), Response(body: whole))
            }
            try await withWorkspace(without: [.retries]) { workspace in
                try workspace.write(index(paths.map { origin.url($0) }).body, to: "index.xml")
                let running = try workspace.command(
                    ["index.xml", "--stall-timeout", "1h"]
                        + (isStopped ? [] : ["--deadline", "3s"])
                ).start()
                try await origin.wait(for: "sitemaps") { $0.inFlight == 3 }
                if isStopped { running.signal(SIGTERM) }
                let stopped = await running.wait()
                gate.open()
                #expect(isStopped ? stopped.signal == SIGTERM : stopped.status == 3, "\(stopped)")
                let next = try await workspace.run("index.xml", "-q", "--refresh", "all")
                #expect(next.status == 0 && next.error.isEmpty, "\(next)")
            }
        }
    }

    /// A host that never responds costs one time-out, not for each of its sitemaps.
    @Test func aSilentHostIsGivenUp() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            let paths = (0..<30).map { "/\($0).xml" }
            for path in paths { origin.serve(path, Response(gate: gate)) }
            let local = index(paths.map { origin.url($0) }).body
            try await withWorkspace(without: [.retries]) { workspace in
                try workspace.write(local, to: "index.xml")
                let result = try await workspace.run(
                    "index.xml", "--stall-timeout", "300ms", "--host-timeout", "500ms",
                    "--host-interval", "1ms")
                gate.open()
                #expect(result.status == 1, "\(result)")
                #expect(result.error.contains("30 entries: 30 failed"), "\(result)")
                #expect(result.error.contains("has not responded for 500ms"), "\(result)")
                #expect(origin.requests.count < 10, "\(origin.requests.count)")
            }
        }
    }

    @Test func theDeadlineEndsTheWaitForAList() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            let list = serveList(origin.serveImages(1), on: origin)
            try await withWorkspace { workspace in
                #expect(try await workspace.run("--list", list).status == 0)
                origin.serve("/list.txt", Response(gate: gate))
                let late = try await workspace.run(
                    "--list", list, "--deadline", "200ms", "--stall-timeout", "1h")
                #expect(
                    late.error.contains("not complete at the run's deadline; using the copy of"),
                    "\(late)")
                // Without a copy the deadline is a limit of the run.
                origin.serve("/other.txt", Response(gate: gate))
                let none = try await workspace.run(
                    "--list", origin.url("/other.txt"), "--deadline", "200ms", "--stall-timeout",
                    "1h")
                gate.open()
                #expect(none.status == 3, "\(none)")
                #expect(none.error.contains("ended at its deadline"), "\(none)")
            }
        }
    }
}

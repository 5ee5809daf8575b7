import Foundation
import TestSupport
import Testing

/// Lines of one key with different variants.
@Suite(.timeLimit(.minutes(15)))
struct SharedKeyTests {
    private static let fresh = ("Cache-Control", "max-age=3600")

    private func serve(_ origin: Origin, _ path: String = "/a.png", seed: Int = 1) -> String {
        origin.serve(
            path,
            .picture(Fixtures.png(width: 40, height: 30, seed: seed), SharedKeyTests.fresh))
        return origin.url(path)
    }

    private func run(
        _ workspace: Workspace, _ lists: [[String]], _ options: String...
    ) async throws -> Workspace.Run {
        let names = try lists.enumerated().map { number, lines in
            try workspace.manifest(lines, name: "list-\(number).txt")
        }
        // In LIFO order everything is read before the first start. Otherwise the second list may be
        // read when the first one's image is stored already.
        let order = options.contains("--order") ? [] : ["--order", "lifo"]
        return try workspace.finish(
            await workspace.command(["run"] + names + ["--report", "r"] + order + options).run(),
            entries: lists.reduce(0) { $0 + $1.count })
    }

    private func got(_ workspace: Workspace, _ arguments: String...) async throws -> String {
        let result = try await workspace.command(["get"] + arguments).run()
        #expect(result.status == 0, "\(result)")
        return String(result.output.dropLast().dropFirst("\(workspace.cache)/".count))
    }

    /// The current names and widths of all variants.
    private func stored(_ workspace: Workspace) async throws -> [String] {
        try await workspace.query(
            """
            SELECT variant_name.name || ' ' || width || iif(superseded, ' superseded', '')
            FROM variant JOIN variant_name ON variant_name.id = variant.name
            ORDER BY width DESC, variant_name.name
            """
        ).map { $0[0] ?? "" }
    }

    /// In one list, in two, with a key, and with other fields for the image.
    @Test(
        arguments: [
            [["", " resize=20"]], [[" resize=20", ""]], [[""], [" resize=20"]],
            [[" resize=20"], [""]], [[" key=k", " key=k resize=20"]],
            [[" resize=20 attr.a=b ttl=1h header=X-A:1", " header=x-a:1"]],
        ] as [[[String]]])
    func oneDownloadServesBothSizes(lists: [[String]]) async throws {
        try await withOrigin { origin in
            let url = serve(origin)
            let lines = lists.map { $0.map { url + $0 } }
            try await withWorkspace { workspace in
                let cold = try await run(workspace, lines)
                #expect(cold.result.status == 0, "\(cold.result)")
                #expect(cold.report.verdicts == ["downloaded", "downloaded"], "\(cold.result)")
                #expect(origin.requests.count == 1)
                #expect(cold.summary.variantsMade == 2, "\(cold.result)")
                let entries = cold.report.entries.sorted {
                    ($0.manifest, $0.line) < ($1.manifest, $1.line)
                }
                let widths = lists.flatMap(\.self).map { $0.contains("resize") ? 20 : 40 }
                #expect(entries.map(\.width) == widths, "\(cold.result)")
                #expect(entries.map { $0.start == nil } == [false, true])
                #expect(entries[1].message == "together with list-0.txt:1")
                #expect(cold.report.entries.map(\.bytesReceived).filter { $0 > 0 }.count == 1)

                // The first line's is `main`.
                #expect(try await got(workspace, url) == entries[0].path)
                #expect(try await got(workspace, "--variant", "main~2", url) == entries[1].path)
                #expect(try await workspace.judge() == 2)

                let before = try await workspace.query("SELECT * FROM variant")
                let warm = try await run(workspace, lines)
                #expect(warm.report.verdicts == ["fresh", "fresh"], "\(warm.result)")
                #expect(warm.report.entries.map(\.path) == entries.map(\.path))
                #expect(origin.requests.count == 1)
                #expect(try await workspace.query("SELECT * FROM variant") == before)
            }
        }
    }

    @Test func linesThatAreEqualInvalidOrTooMany() async throws {
        try await withOrigin { origin in
            let urls = (0..<3).map { serve(origin, "/\($0).png", seed: $0) }
            let equal = [20, 10, 20, 10].map { "\(urls[0]) resize=\($0)" }
            func many(_ numbers: ClosedRange<Int>) -> String {
                urls[1] + numbers.map { " variant=v\($0)=\($0)x\($0)" }.joined()
            }
            let lines =
                equal + ["\(urls[0]) resize=10 quality=85"]
                + [many(1...40), many(24...64), many(24...63)]
            try await withWorkspace { workspace in
                for outcome in ["downloaded", "fresh"] {
                    let result = try await run(workspace, [lines])
                    #expect(
                        result.report.verdicts == [
                            outcome, outcome, "duplicate", "duplicate", "duplicate",
                            outcome, "failed/invalid-entry", outcome,
                        ], "\(result.result)")
                    if outcome == "downloaded" {
                        let widths = (1...5).map { result.report[line: $0]?.width }
                        #expect(widths == [20, 10, 20, 10, 10], "\(result.result)")
                    }
                    #expect(
                        result.report[line: 7]?.message
                            == "list-0.txt:7: more than 64 variants together with list-0.txt:6")
                    #expect(result.report[line: 8]?.variants.count == 41)
                }
                #expect(origin.requests.count == 2)

                let invalid = try await run(
                    workspace,
                    [
                        [
                            "\(urls[2]) variant=a=resize=0", "\(urls[2]) variant=web=png",
                            "\(urls[2]) crop=9",
                        ]
                    ], "--variant", "web=webp")
                #expect(invalid.report.entries.allSatisfy { $0.reason == "invalid-entry" })
                #expect(
                    invalid.report.entries.map(\.message) == [
                        "list-0.txt:1: field 'variant': a: 'resize=' takes a size like 800x600, 800, x600, 800x600^, 800x600!, 800x600~#fff or 50%, not '0'",
                        "list-0.txt:2: field 'variant': this run makes 'web'; choose another name",
                        "list-0.txt:3: field 'crop' takes WxH, WxH+X+Y or WxH:GRAVITY like 300x200:north, not '9'",
                    ])
                #expect(origin.requests.count == 2)
            }
        }
    }

    /// The order of the lists decides which variant is `main`, and no current one is superseded.
    @Test func anotherOrderRenamesVariants() async throws {
        try await withOrigin { origin in
            let url = serve(origin)
            let (a, b, c) = (["\(url)"], ["\(url) resize=20"], ["\(url) resize=10"])
            try await withWorkspace { workspace in
                _ = try await run(workspace, [a, b])
                #expect(try await stored(workspace) == ["main 40", "main~2 20"])
                let flipped = try await run(workspace, [b, a])
                #expect(flipped.report.verdicts == ["fresh", "fresh"], "\(flipped.result)")
                #expect(try await stored(workspace) == ["main~2 40", "main 20"])
                #expect(
                    try await got(workspace, "--variant", "main~2", url)
                        == flipped.report.entries[1].path)
                // Of a list alone, only `main` is superseded.
                _ = try await run(workspace, [a])
                #expect(try await stored(workspace) == ["main 40", "main 20 superseded"])
                _ = try await run(workspace, [a, b])
                #expect(try await stored(workspace) == ["main 40", "main~2 20"])
                // A new one between them takes a name that is in use.
                let three = try await run(workspace, [a, c, b])
                #expect(three.result.status == 0, "\(three.result)")
                #expect(try await stored(workspace) == ["main 40", "main~3 20", "main~2 10"])
                _ = try await run(workspace, [a, b, c])
                #expect(try await stored(workspace).allSatisfy { !$0.contains("superseded") })
                // Only superseded variants are unused for that time.
                let pruned = try await workspace.run("prune", "--variants-unused-for", "1ms")
                #expect(pruned.status == 0, "\(pruned)")
                let warm = try await run(workspace, [c, b, a])
                #expect(warm.report.verdicts == ["fresh", "fresh", "fresh"], "\(warm.result)")
                #expect(try await workspace.judge() == 3)
            }
        }
    }

    /// Another picture of the same URL; only one of the lists is read.
    @Test func aNewSourceMakesTheOtherLinesVariantsAgain() async throws {
        try await withOrigin { origin in
            let url = serve(origin)
            let small = "\(url) resize=20 variant=thumb=10x10,webp"
            try await withWorkspace { workspace in
                let first = try await run(workspace, [[url], [small]])
                #expect(first.report.entries.last?.variants.map(\.name) == ["main", "thumb"])
                origin.serve(
                    "/a.png",
                    .picture(Fixtures.png(width: 44, height: 33, seed: 2), SharedKeyTests.fresh))
                let second = try await run(workspace, [[url]], "--refresh", "all")
                #expect(second.report.verdicts == ["downloaded"], "\(second.result)")
                #expect(
                    try await stored(workspace) == ["main 44", "main~2 20", "thumb 10"])
                let both = try await run(workspace, [[url], [small]])
                #expect(both.report.verdicts == ["fresh", "fresh"], "\(both.result)")
                #expect(both.report.entries.map(\.path) != first.report.entries.map(\.path))
                #expect(origin.requests.count == 2)
                #expect(try await workspace.judge(variants: ["thumb"]) == 3)
            }
        }
    }

    @Test func oneValidationServesAllLinesAndNewAttributesNeedNone() async throws {
        try await withOrigin { origin in
            let tag = ("ETag", "\"v1\"")
            origin.serve(
                "/a.png", .picture(Fixtures.png(width: 40, height: 30), SharedKeyTests.fresh, tag),
                .notModified(SharedKeyTests.fresh, tag))
            let url = origin.url("/a.png")
            try await withWorkspace { workspace in
                let lists = [[url], ["\(url) resize=20"]]
                let first = try await run(workspace, lists)
                let second = try await run(workspace, lists, "--refresh", "all")
                #expect(
                    second.report.verdicts == ["revalidated", "revalidated"], "\(second.result)")
                #expect(second.report.entries.map(\.path) == first.report.entries.map(\.path))
                #expect(origin.requests.count == 2)
                // Attributes of the first line are stored before.
                let next = try await run(workspace, [["\(url) attr.a=b", "\(url) resize=20"]])
                #expect(next.report.verdicts == ["fresh", "fresh"], "\(next.result)")
                #expect(next.report[line: 2]?.width == 20)
                #expect(origin.requests.count == 2)
                #expect(try await workspace.query("SELECT value FROM attribute").count == 1)
                #expect(try await stored(workspace) == ["main 40", "main~2 20"])
            }
        }
    }

    /// A JPEG has at most 65 500 pixels a side, a PNG more. The blacklisted line neither costs the
    /// others their validation nor loses its own failure.
    @Test(arguments: [["", " encode=jpeg"], [" encode=jpeg", ""]])
    func aVariantThatCannotBeMadeFailsItsLineOnly(fields: [String]) async throws {
        try await withOrigin { origin in
            let tag = ("ETag", "\"v1\"")
            origin.serve(
                "/w.png",
                .picture(Fixtures.png(width: 66_000, height: 1), SharedKeyTests.fresh, tag),
                .notModified(SharedKeyTests.fresh, tag))
            let url = origin.url("/w.png")
            try await withWorkspace(without: [.retries]) { workspace in
                let lines = [fields.map { url + $0 }]
                let bad = fields[0].isEmpty ? 2 : 1
                let cold = try await run(workspace, lines)
                let failed = try #require(cold.report[line: bad])
                #expect(failed.verdict == "failed/unsupported-image", "\(cold.result)")
                #expect(failed.message?.contains("variant main") == false, "\(cold.result)")
                #expect(cold.report[line: 3 - bad]?.verdict == "downloaded", "\(cold.result)")
                #expect(cold.report[line: 3 - bad]?.width == 66_000)
                #expect(cold.result.status == 1 && origin.requests.count == 1)
                #expect(cold.summary.reasons == ["unsupported-image": 1])

                // The next run requests neither.
                let warm = try await run(workspace, lines)
                #expect(warm.report[line: bad]?.outcome == "blacklisted", "\(warm.result)")
                #expect(warm.report[line: 3 - bad]?.outcome == "fresh", "\(warm.result)")
                #expect(origin.requests.count == 1)
                #expect(try await workspace.judge(sources: [:], variants: []) == 1)

                for count in 2...3 {
                    let next = try await run(workspace, lines, "--refresh", "all")
                    #expect(next.report[line: bad]?.outcome == "blacklisted", "\(next.result)")
                    #expect(next.report[line: 3 - bad]?.outcome == "revalidated", "\(next.result)")
                    #expect(origin.requests.count == count)
                    #expect(origin.requests.last?.header("If-None-Match") == "\"v1\"")
                }
                // A third line of the key joins the one that is requested.
                let three = [lines[0] + ["\(url) encode=jpeg", url]]
                let next = try await run(workspace, three, "--refresh", "all")
                #expect(next.summary["revalidated"] == 1, "\(next.result)")
                #expect(next.summary["failed"] == 0 && origin.requests.count == 4)
            }
        }
    }

    /// The structure is whole, and only the other line decoded the data.
    @Test func aLineThatDecodesNothingIsNotBlacklistedWithAnother() async throws {
        try await withOrigin { origin in
            var jpeg = try Fixtures.file("baseline.jpg")
            let scan = try #require(
                jpeg.indices.last { jpeg[$0...].starts(with: [0xFF, 0xDA]) })
            for place in scan + 20..<jpeg.count - 2 { jpeg[place] = 0xFE }
            origin.serve("/a.jpg", .picture(jpeg, ("Cache-Control", "no-cache")))
            let url = origin.url("/a.jpg")
            origin.serve(
                "/faulty.jpg", .picture(try Fixtures.faultyJPEG(), SharedKeyTests.fresh))
            let faulty = origin.url("/faulty.jpg")
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                // Every line reports the warning of the image.
                let cold = try await self.run(
                    workspace, [[faulty, "\(faulty) encode=png", faulty]])
                let warnings = (1...3).map { cold.report[line: $0]?.warning }
                #expect(warnings[0] != nil && warnings[1] == warnings[0], "\(cold.result)")
                #expect(warnings[2] == nil)
                let count = origin.requests.count

                let flags = ["--encode", "original", "--check", "structure"]
                func run(_ lines: [String]) async throws -> Workspace.Run {
                    try await workspace.finish(
                        workspace.prefetchCommand(lines, flags + ["--order", "lifo"]).run())
                }
                let both = try await run([url, "\(url) encode=png"])
                #expect(
                    both.report.verdicts == ["downloaded", "failed/corrupt-image"],
                    "\(both.result)")
                let one = try await run([url])
                #expect(one.summary["blacklisted"] == 0, "\(one.result)")
                #expect(origin.requests.count == count + 2)
                // No decoder takes the image.
                #expect(try await workspace.run("remove", url).status == 0)
            }
        }
    }

    /// `--fail-on new` counts neither line as new.
    @Test func aLateLineFailsAsKnown() async throws {
        try await withOrigin { origin in
            origin.serve("/gone", .notFound)
            let url = origin.url("/gone")
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                _ = try await run(workspace, [[url, "\(url) resize=20"]])
                var command = workspace.command(["run", "-", "--report", "r", "--retry-failed"])
                command.input = .open
                let running = try command.start()
                running.send(Array("\(url)\n".utf8))
                try await eventually("the first line's failure is committed") {
                    try await workspace.query("SELECT attempts FROM failure") == [["2"]]
                }
                running.send(Array("\(url) resize=20\n".utf8))
                running.closeInput()
                let run = try workspace.finish(await running.wait(), entries: 2)
                #expect(run.summary["failed"] == 2, "\(run.result)")
                #expect(run.summary.knownFailures == 2, "\(run.result)")
                #expect(origin.requests.count == 2)
            }
        }
    }

    @Test func aFailedDownloadFailsTheLinesThatNeedIt() async throws {
        try await withOrigin { origin in
            origin.serve("/gone", .notFound)
            let url = origin.url("/gone")
            let lines = [url, "\(url) resize=20", url]
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let cold = try await run(workspace, [lines])
                let failed = "failed/http-status"
                #expect(
                    cold.report.verdicts == [failed, failed, "duplicate/http-status"],
                    "\(cold.result)")
                #expect(cold.report.entries[1].message == "HTTP 404; together with list-0.txt:1")
                #expect(origin.requests.count == 1)
                let next = try await run(workspace, [lines])
                #expect(next.summary["blacklisted"] == 2, "\(next.result)")
                #expect(origin.requests.count == 1)

                // A size that is stored stays fresh when another one cannot be fetched.
                let other = serve(origin)
                let small = "\(other) resize=20"
                let first = try await run(workspace, [[small]])
                origin.serve("/a.png", .notFound)
                let both = try await run(workspace, [[other, small]])
                #expect(both.report.verdicts == ["failed/http-status", "fresh"], "\(both.result)")
                #expect(both.report[line: 2]?.path == first.report[line: 1]?.path)
                #expect(both.report[line: 2]?.width == 20)
                #expect(origin.requests.count == 3)
            }
        }
    }

    /// Every combination of the queue: raised, spilled, in either order.
    @Test(arguments: ["fifo", "lifo"], ["3", "1000"])
    func everyLineHasItsOwnSize(order: String, capacity: String) async throws {
        try await withOrigin { origin in
            let urls = (0..<60).map { serve(origin, "/\($0).png", seed: $0) }
            let widths = [12, 24, 36, 24, 12]
            var lists = widths.map { width in urls.map { "\($0) resize=\(width)" } }
            lists[3] = lists[3].map { $0 + " priority=high" }
            try await withWorkspace(without: [.retries]) { workspace in
                let cold = try await run(
                    workspace, lists, "--order", order, "--queue-capacity", capacity, "-j", "4",
                    "--host-concurrency", "2")
                #expect(cold.result.status == 0, "\(cold.result)")
                #expect(cold.summary["downloaded"] + cold.summary["derived"] == 180)
                #expect(cold.summary["duplicate"] == 120, "\(cold.result)")
                for entry in cold.report.entries {
                    let list = try #require(Int(entry.manifest.filter(\.isNumber)))
                    #expect(entry.width == widths[list], "\(entry)")
                }
                let requests = origin.requests.count
                #expect(order == "lifo" ? requests == 60 : requests < 180, "\(cold.result)")
                let warm = try await run(workspace, lists)
                #expect(warm.summary["fresh"] == 180 && warm.summary["duplicate"] == 120)
                #expect(origin.requests.count == requests)
                #expect(try await workspace.judge() == 180)
            }
        }
    }

    /// A line that is read while the request of the first one is under way.
    @Test func aLineJoinsARunningRequest() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            origin.serve(
                "/a.png", .image(Fixtures.png(width: 40, height: 30), gate: gate))
            let (url, other) = (origin.url("/a.png"), serve(origin, "/b.png"))
            try await withWorkspace { workspace in
                var command = workspace.command(["run", "-", "--report", "r"])
                command.input = .open
                let running = try command.start()
                running.send(Array("\(url)\n".utf8))
                try await origin.wait(for: "the request") { $0.requests.count == 1 }
                running.send(Array("\(url) resize=20\n\(other)\n".utf8))
                try await origin.wait(for: "the last line's request") { $0.answered == 1 }
                gate.open()
                running.closeInput()
                let run = try workspace.finish(await running.wait(), entries: 3)
                #expect(run.summary["downloaded"] == 3, "\(run.result)")
                #expect(run.report[line: 2]?.width == 20)
                #expect(origin.requests.count == 2, "\(run.result)")
            }
        }
    }

    /// A line that is read after the first one has ended.
    @Test(arguments: [true, false])
    func aLateLineUsesTheOriginalOrAsksAgain(storesOriginal: Bool) async throws {
        try await withOrigin { origin in
            let url = serve(origin)
            try await withWorkspace { workspace in
                var command = workspace.command(
                    ["run", "-", "--report", "r"] + (storesOriginal ? ["--store-original"] : []))
                command.input = .open
                let running = try command.start()
                let own = storesOriginal ? 2 : 1
                for (number, fields) in ["", " resize=20", " resize=10", " resize=20"].enumerated()
                {
                    running.send(Array("\(url)\(fields)\n".utf8))
                    let count = min(number, 2) + own
                    // Before its first request the database may not exist.
                    try await origin.wait(for: "the first request") { $0.answered > 0 }
                    try await eventually("line \(number + 1) is committed") {
                        try await workspace.query("SELECT count(*) FROM variant")
                            == [["\(count)"]]
                    }
                }
                running.closeInput()
                let run = try workspace.finish(await running.wait(), entries: 4)
                let later = storesOriginal ? "derived" : "downloaded"
                #expect(
                    (1...4).map { run.report[line: $0]?.verdict }
                        == ["downloaded", later, later, "duplicate"], "\(run.result)")
                #expect((1...4).map { run.report[line: $0]?.width } == [40, 20, 10, 20])
                #expect(origin.requests.count == (storesOriginal ? 1 : 3), "\(run.result)")
                #expect(
                    try await stored(workspace).filter { !$0.hasPrefix("original") }
                        == ["main 40", "main~2 20", "main~3 10"])
                #expect(try await workspace.judge() == own + 2)
            }
        }
    }

    /// Names of lines' variants have a recipe for each image.
    @Test func getFindsTheVariantsOfLines() async throws {
        try await withOrigin { origin in
            let urls = (0..<3).map { serve(origin, "/\($0).png", seed: $0) }
            try await withWorkspace { workspace in
                let lines = [
                    "\(urls[0]) variant=t=10x10", "\(urls[1]) variant=t=20x20,webp",
                    "\(urls[2]) crop=12x9+1+2 variant=t=webp variant=u=10x10",
                    "\(urls[0]) variant=t=30x30 transform=rotate=90",
                ]
                let cold = try await run(workspace, [lines])
                #expect(cold.result.status == 0, "\(cold.result)")
                for line in 1...3 {
                    let entry = try #require(cold.report[line: line])
                    let t = entry.variants.first { $0.name == "t" }
                    #expect(
                        try await got(workspace, "--variant", "t", urls[line - 1]) == t?.path)
                    #expect(try await got(workspace, urls[line - 1]) == entry.path)
                }
                let second = try #require(cold.report[line: 4])
                #expect(second.variants.map(\.name) == ["main", "t"])
                #expect(second.variants.map(\.width) == [30, 30])
                #expect(
                    try await got(workspace, "--variant", "t~2", urls[0])
                        == second.variants[1].path)
                #expect(cold.report[line: 3]?.width == 12)
                let warm = try await run(workspace, [lines])
                #expect(warm.summary["fresh"] == 4, "\(warm.result)")
                #expect(origin.requests.count == 3)
                let other = try await run(workspace, [["\(urls[0]) variant=t~2=png"]])
                #expect(other.report.verdicts == ["failed/invalid-entry"])

                // A batch reads the fields of its lines.
                let url = serve(origin)
                let fields = [url, "\(url) resize=20", "\(url) variant=own=10x10"]
                let made = try await run(workspace, [fields], "--quality", "70")
                let paths = (1...3).map { made.report[line: $0]?.path }
                var command = workspace.command(["get", "--batch"])
                command.input = .bytes(Array(fields.joined(separator: "\n").utf8))
                let found = try await command.run()
                let expected = [paths[0], paths[1], paths[0]].map {
                    "\(workspace.cache)/\($0 ?? "")"
                }
                #expect(found.outputLines == expected, "\(found)")
                // The line's first variant, and a size that no run has made.
                let others = ["\(url) variant=own=10x10 variants=own", "\(url) resize=7"]
                command.input = .bytes(Array(others.joined(separator: "\n").utf8))
                let two = try await command.run()
                let own = try #require(
                    made.report[line: 3]?.variants.first { $0.name == "own" }?.path)
                #expect(two.output == "\(workspace.cache)/\(own)\n-\n", "\(two)")
            }
        }
    }
}

import Foundation
import Glibc
import TestSupport
import Testing

/// Runs that keep several variants of each image.
@Suite(.timeLimit(.minutes(15)))
struct VariantRunTests {
    private static let fresh = ("Cache-Control", "max-age=3600")
    private static let web = ["--variant", "web=jpeg,q=40"]
    private static let all = web + ["--store-original"]
    private static let names = ["main", "web", "original"]

    /// A JPEG and two PNGs, fresh for an hour.
    private func serve(_ origin: Origin) throws -> [(url: String, bytes: [UInt8])] {
        let pictures = [
            try Fixtures.file("larger.jpg"), Fixtures.png(width: 40, height: 30, seed: 1),
            Fixtures.png(width: 30, height: 40, seed: 2, isNoise: true),
        ]
        return pictures.enumerated().map { index, bytes in
            origin.serve("/\(index)", .picture(bytes, VariantRunTests.fresh))
            return (origin.url("/\(index)"), bytes)
        }
    }

    private func path(
        _ name: String, of entry: Report.Entry?
    ) throws -> String {
        let variant = try #require(entry?.variants.first { $0.name == name })
        return try #require(variant.path)
    }

    private func got(_ workspace: Workspace, _ arguments: String...) async throws -> String {
        let result = try await workspace.command(["get"] + arguments).run()
        #expect(result.status == 0, "\(result)")
        return String(result.output.dropLast().dropFirst("\(workspace.cache)/".count))
    }

    // MARK: Runs

    @Test func oneDownloadServesAllVariants() async throws {
        try await withOrigin { origin in
            let pictures = try serve(origin)
            let urls = pictures.map(\.url)
            try await withWorkspace { workspace in
                let first = try await workspace.prefetch(urls, VariantRunTests.all)
                #expect(first.result.status == 0, "\(first.result)")
                #expect(first.report.verdicts == ["downloaded", "downloaded", "downloaded"])
                #expect(origin.requests.map(\.path).sorted() == ["/0", "/1", "/2"])
                #expect(first.summary.variantsMade == 9, "\(first.result)")
                let variants = first.report.entries.map { $0.variants.map(\.name) }
                #expect(variants.allSatisfy { $0 == VariantRunTests.names }, "\(first.result)")
                let sources = Dictionary(uniqueKeysWithValues: pictures.map { ($0.url, $0.bytes) })
                #expect(try await workspace.judge(variants: VariantRunTests.names) == 9)
                for (index, url) in urls.enumerated() {
                    let entry = first.report[line: index + 1]
                    let original = try path("original", of: entry)
                    #expect(try workspace.bytes(of: original) == sources[url])
                }

                let second = try await workspace.prefetch(urls, VariantRunTests.all)
                #expect(second.report.verdicts == ["fresh", "fresh", "fresh"], "\(second.result)")
                #expect(origin.requests.count == 3)

                for (name, options) in [
                    ("main", []), ("web", ["--encode", "jpeg", "--quality", "40"]),
                ] {
                    let alone = try await workspace.prefetch(
                        urls, options + ["--cache-dir", "cache-of-\(name)"])
                    #expect(alone.result.status == 0, "\(alone.result)")
                    for line in 1...urls.count {
                        let own = try #require(alone.report[line: line]?.path)
                        let together = try path(name, of: first.report[line: line])
                        #expect(own == together, "\(name) of line \(line)")
                        #expect(
                            try workspace.bytes(
                                of: "\(workspace.folder)/cache-of-\(name)/\(own)")
                                == workspace.bytes(of: together))
                    }
                }
            }
        }
    }

    /// Plain flags without the format of `main`, and a variant without them.
    @Test(arguments: [
        ["--encode", "png", "--quality", "40", "--variant", "web=png"],
        ["--encode", "original", "--quality", "40", "--keep-larger", "--variant", "web=original"],
        ["--encode", "jpeg", "--effort", "small", "--variant", "web=jpeg"],
        ["--background", "red", "--variant", "web=same"],
    ])
    func identicalVariantsAreOne(options: [String]) async throws {
        try await withOrigin { origin in
            let urls = try serve(origin).map(\.url)
            try await withWorkspace { workspace in
                let first = try await workspace.prefetch(urls, options)
                #expect(first.result.status == 0, "\(first.result)")
                for line in 1...urls.count {
                    let variants = try #require(first.report[line: line]).variants
                    #expect(variants.map(\.name) == ["main", "web"])
                    #expect(Set(variants.map(\.path)).count == 1)
                }
                #expect(try await workspace.judge(variants: ["main", "web"]) == urls.count)
                let second = try await workspace.prefetch(urls, options)
                #expect(second.report.verdicts == ["fresh", "fresh", "fresh"], "\(second.result)")
            }
        }
    }

    @Test func variantIsMadeFromTheStoredOriginal() async throws {
        try await withOrigin { origin in
            let urls = try serve(origin).map(\.url)
            try await withWorkspace { workspace in
                let first = try await workspace.prefetch(urls, ["--store-original"])
                #expect(first.summary["downloaded"] == 3, "\(first.result)")
                let second = try await workspace.prefetch(urls, VariantRunTests.all)
                #expect(second.report.verdicts == ["derived", "derived", "derived"])
                #expect(second.summary.variantsMade == 3, "\(second.result)")
                #expect(origin.requests.count == 3)
                for line in 1...3 {
                    #expect(
                        try path("main", of: second.report[line: line])
                            == path("main", of: first.report[line: line]))
                }
                #expect(try await workspace.judge(variants: VariantRunTests.names) == 9)
            }
        }
    }

    @Test func missingOriginalIsFetchedOnceAndOthersStay() async throws {
        try await withOrigin { origin in
            let urls = try serve(origin).map(\.url)
            try await withWorkspace { workspace in
                let first = try await workspace.prefetch(urls, [])
                let kept = try first.report.entries.map { try #require($0.path) }
                let before = try kept.map(workspace.identity)
                let second = try await workspace.prefetch(urls, VariantRunTests.web)
                #expect(second.summary["downloaded"] == 3, "\(second.result)")
                #expect(origin.requests.count == 6)
                #expect(try kept.map(workspace.identity) == before)
                #expect(try await workspace.judge(variants: ["main", "web"]) == 6)
                let third = try await workspace.prefetch(urls, VariantRunTests.web)
                #expect(third.summary["fresh"] == 3, "\(third.result)")
                #expect(origin.requests.count == 6)
            }
        }
    }

    @Test func linesSelectVariants() async throws {
        try await withOrigin { origin in
            let urls = try serve(origin).map(\.url)
            let lines = [
                "\(urls[0]) variants=web", "\(urls[1]) encode=jpeg", "\(urls[2]) quality=40",
            ]
            try await withWorkspace { workspace in
                let first = try await workspace.prefetch(lines, VariantRunTests.web)
                #expect(first.summary["downloaded"] == 3, "\(first.result)")
                let recipes = try await workspace.query(
                    """
                    SELECT url, variant_name.name, variant.recipe FROM variant
                    JOIN resource ON resource.id = resource_id
                    JOIN variant_name ON variant_name.id = variant.name
                    WHERE NOT superseded ORDER BY url, variant.name
                    """)
                #expect(
                    recipes == [
                        [urls[0], "web", "jpeg;q=40;strip=safe"],
                        [urls[1], "main", "jpeg;q=85;strip=safe"],
                        [urls[1], "web", "jpeg;q=40;strip=safe"],
                        [urls[2], "main", "same;q=40;strip=safe"],
                        [urls[2], "web", "jpeg;q=40;strip=safe"],
                    ])
                let again = try await workspace.prefetch(lines, VariantRunTests.web)
                #expect(again.summary["fresh"] == 3 && origin.requests.count == 3)

                let missing = try await workspace.run("get", urls[0])
                #expect(missing.status == 1 && missing.output.isEmpty, "\(missing)")
                #expect(
                    missing.error == """
                        prefetch: \(urls[0]): not stored as main, only as web
                        hint: --variant web prints the stored one

                        """, "\(missing)")
                let web = try await got(workspace, "--variant", "web", urls[0])
                #expect(web == first.report[line: 1]?.path)
                #expect(try await got(workspace, urls[1]) == first.report[line: 2]?.path)
                // A run for `web` alone does not affect main.
                _ = try await workspace.prefetch(urls, [])
                let main = try await got(workspace, urls[0])
                let other = try await workspace.prefetch(
                    ["\(urls[0]) variants=web"], ["--variant", "web=jpeg,q=30"])
                #expect(other.summary["downloaded"] == 1, "\(other.result)")
                #expect(try await got(workspace, urls[0]) == main)
            }
        }
    }

    @Test func linesOfOneKeyShareADownload() async throws {
        try await withOrigin { origin in
            let url = try serve(origin)[0].url
            try await withWorkspace { workspace in
                let lines =
                    [url] + ["encode=png", "quality=40", "variants=web"].map { "\(url) \($0)" }
                let first = try await workspace.prefetch(lines, VariantRunTests.web)
                #expect(
                    first.report.verdicts == [
                        "downloaded", "downloaded", "downloaded", "duplicate",
                    ],
                    "\(first.result)")
                #expect(first.report[line: 2]?.variants.map(\.format) == ["png", "jpeg"])
                #expect(
                    try path("web", of: first.report[line: 3])
                        == path("web", of: first.report[line: 1]))
                #expect(first.summary.variantsMade == 4 && origin.requests.count == 1)
            }
        }
    }

    /// All of them are warm, and the first line has the name `main`.
    @Test func laterLinesDoNotChangeMain() async throws {
        try await withOrigin { origin in
            let url = try serve(origin)[0].url
            try await withWorkspace { workspace in
                let others = ["encode=png", "quality=40", "quality=50", "quality=60"]
                for fields in others { _ = try await workspace.prefetch(["\(url) \(fields)"], []) }
                let main = try await workspace.prefetch([url], ["--store-original"])
                let path = try self.path("main", of: main.report[line: 1])
                let requests = origin.requests.count
                let both = try await workspace.prefetch([url] + others.map { "\(url) \($0)" }, [])
                #expect(both.report.verdicts.allSatisfy { $0 == "fresh" }, "\(both.result)")
                #expect(try await got(workspace, url) == path)
                for number in 2...5 {
                    #expect(
                        try await got(workspace, "--variant", "main~\(number)", url)
                            == both.report[line: number]?.path)
                }
                #expect(origin.requests.count == requests)
            }
        }
    }

    /// A JPEG has at most 65 500 pixels a side, a PNG more. The source of another image is damaged,
    /// which is not blamed on a variant.
    @Test func failingVariantFailsTheEntryAndIsNamed() async throws {
        try await withOrigin { origin in
            let bytes = Fixtures.png(width: 66_000, height: 1)
            origin.serve("/wide.png", .picture(bytes, VariantRunTests.fresh))
            let damaged = Array(try Fixtures.file("larger.jpg").dropLast(400))
            origin.serve("/cut.jpg", .picture(damaged, VariantRunTests.fresh))
            let url = origin.url("/wide.png")
            try await withWorkspace { workspace in
                let first = try await workspace.prefetch(
                    [url, origin.url("/cut.jpg")], VariantRunTests.all)
                let entry = try #require(first.report[line: 1])
                let other = try #require(first.report[line: 2])
                #expect(other.verdict == "failed/corrupt-image", "\(first.result)")
                #expect(other.message == "the data ends before the image does", "\(first.result)")
                #expect(entry.outcome == "failed", "\(first.result)")
                #expect(entry.message?.contains("variant web: ") == true, "\(first.result)")
                #expect(entry.variants.map(\.name) == VariantRunTests.names)
                #expect(entry.variants.map { $0.reason == nil } == [true, false, true])
                #expect(first.result.status == 1)
                let main = try await got(workspace, url)
                #expect(main == (try path("main", of: entry)))
                #expect(
                    try await workspace.judge(
                        sources: [:], variants: ["main", "original"]) == 2)
                let missing = try await workspace.run("get", "--variant", "web", url)
                #expect(missing.status == 1, "\(missing)")
                #expect(missing.error.contains("not stored as web, only as main, original"))
            }
        }
    }

    @Test func validationAppliesToAllVariants() async throws {
        try await withOrigin { origin in
            let tag = ("ETag", "\"v1\"")
            origin.serve(
                "/a.jpg", .picture(try Fixtures.file("larger.jpg"), VariantRunTests.fresh, tag),
                .notModified(VariantRunTests.fresh, tag))
            let url = origin.url("/a.jpg")
            try await withWorkspace { workspace in
                let first = try await workspace.prefetch([url], VariantRunTests.all)
                let second = try await workspace.prefetch(
                    [url], VariantRunTests.all + ["--refresh", "all"])
                let entry = try #require(second.report.entries.first)
                #expect(entry.verdict == "revalidated", "\(second.result)")
                #expect(
                    entry.variants.map(\.outcome) == ["revalidated", "revalidated", "revalidated"])
                #expect(
                    entry.variants.map(\.path) == first.report.entries.first?.variants.map(\.path))
                #expect(origin.requests.map { $0.header("If-None-Match") } == [nil, "\"v1\""])
                #expect(try await workspace.judge(variants: VariantRunTests.names) == 3)
            }
        }
    }

    /// All variants of a resource are one change of the database.
    @Test func killedRunLeavesAllVariantsOrNone() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            let lines = (0..<24).map { index in
                let picture = Fixtures.png(width: 64, height: 64, seed: index, isNoise: true)
                origin.serve(
                    "/\(index)",
                    .picture(picture, VariantRunTests.fresh, gate: index < 20 ? nil : gate))
                return origin.url("/\(index)")
            }
            try await withWorkspace { workspace in
                let options = VariantRunTests.all + ["-j", "4"]
                let running = try workspace.prefetchCommand(lines, options).start()
                try await origin.wait(for: "four held") { $0.inFlight == 4 && $0.answered >= 16 }
                var rows: [[String?]] = []
                try await eventually("a group is committed") {
                    rows = (try? await workspace.query("SELECT count(*) FROM variant")) ?? []
                    return rows.first?.first != "0" && !rows.isEmpty
                }
                running.signal(SIGKILL)
                #expect(await running.wait().signal == SIGKILL)
                let counts = try await workspace.query(
                    """
                    SELECT DISTINCT (SELECT count(*) FROM variant WHERE resource_id = id)
                    FROM resource
                    """)
                #expect(counts == [["3"]])
                gate.open()
                let next = try await workspace.prefetch(lines, VariantRunTests.all)
                #expect(next.result.status == 0, "\(next.result)")
                #expect(next.summary["fresh"] > 0)
                #expect(try await workspace.judge(variants: VariantRunTests.names) == 72)
            }
        }
    }
}

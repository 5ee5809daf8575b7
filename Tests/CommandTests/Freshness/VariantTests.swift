import Foundation
import TestSupport
import Testing

/// One resource and several recipes.
@Suite(.timeLimit(.minutes(15)))
struct VariantTests {
    private static let low = ["--encode", "same", "--quality", "40"]
    private static let original = ["--encode", "original"]

    /// A picture at one path, with a strong tag and this `Cache-Control`.
    private func serve(
        _ origin: Origin, _ control: String, then later: Response...
    ) throws -> (url: String, bytes: [UInt8]) {
        let bytes = try Fixtures.file("baseline.jpg")
        let first = Response.picture(bytes, ("Cache-Control", control), ("ETag", "\"v1\""))
        if later.isEmpty {
            origin.serve("/a.jpg", first)
        } else {
            origin.serve("/a.jpg", first, later[0])
        }
        return (origin.url("/a.jpg"), bytes)
    }

    @Test func anotherRecipeIsMadeFromTheStoredOriginal() async throws {
        try await withOrigin { origin in
            let (url, bytes) = try serve(origin, "max-age=3600")
            try await withWorkspace { workspace in
                let first = try await workspace.prefetch([url], VariantTests.original)
                let kept = try #require(first.report.entries.first?.path)
                let second = try await workspace.prefetch(["\(url) attr.note=x"], VariantTests.low)
                let entry = try #require(second.report.entries.first)
                #expect(entry.verdict == "derived", "\(second.result)")
                #expect(
                    try await workspace.query("SELECT name, value FROM attribute")
                        == [["note", "78"]])
                #expect(second.result.status == 0 && origin.requests.count == 1)
                #expect(entry.decodeMilliseconds != nil && entry.attempts == 0)
                #expect(entry.bytesReceived == 0)
                #expect(entry.expiresAt == first.report.entries.first?.expiresAt)
                #expect(try workspace.bytes(of: kept) == bytes)
                #expect(try await workspace.judge(sources: [url: bytes]) == 2)
                let list = try await workspace.run("list", "--json")
                let lines = list.outputLines
                #expect(lines.count == 2 && lines.allSatisfy { $0.contains("\"\(url)\"") })
                for options in [VariantTests.original, VariantTests.low] {
                    let again = try await workspace.prefetch([url], options)
                    #expect(again.report.verdicts == ["fresh"], "\(again.result)")
                }
                let other = try await workspace.prefetch([url], ["--encode", "png"])
                #expect(other.report.verdicts == ["derived"], "\(other.result)")
                #expect(other.report.entries.first?.format == "png")
                #expect(origin.requests.count == 1)
            }
        }
    }

    /// Local limits do not invalidate stored images.
    @Test func tooLargeOriginalStays() async throws {
        try await withOrigin { origin in
            let bytes = Fixtures.png(width: 1_300, height: 1_300, isNoise: true)
            origin.serve("/a.png", .picture(bytes, ("Cache-Control", "max-age=3600")))
            let url = origin.url("/a.png")
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let first = try await workspace.prefetch([url], VariantTests.original)
                let kept = try #require(first.report.entries.first?.path)
                let second = try await workspace.prefetch(
                    [url], VariantTests.low + ["--memory", "16MiB"])
                #expect(second.report.verdicts == ["failed/too-large"], "\(second.result)")
                #expect(try workspace.bytes(of: kept) == bytes)
                #expect(origin.requests.count == 1)
                let again = try await workspace.prefetch([url], VariantTests.original)
                #expect(again.report.verdicts == ["fresh"], "\(again.result)")
            }
        }
    }

    /// Nor do they blacklist its URL, which the origin has just validated.
    @Test(arguments: [
        (["--memory", "16MiB"], "failed/too-large"),
        (["--max-pixels", "1000000"], "failed/too-many-pixels"),
    ])
    func tooLargeValidatedOriginalBlacklistsNothing(
        options: [String], verdict: String
    ) async throws {
        try await withOrigin { origin in
            let bytes = Fixtures.png(width: 1_300, height: 1_300, isNoise: true)
            origin.serve(
                "/a.png", .picture(bytes, ("Cache-Control", "max-age=0"), ("ETag", "\"v1\"")),
                .notModified(("Cache-Control", "max-age=0")))
            let url = origin.url("/a.png")
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                _ = try await workspace.prefetch([url], VariantTests.original)
                let second = try await workspace.prefetch([url], VariantTests.low + options)
                #expect(second.report.verdicts == [verdict], "\(second.result)")
                #expect(origin.requests.count == 2)
                #expect(try await workspace.query("SELECT * FROM failure").isEmpty)
                let third = try await workspace.prefetch([url], VariantTests.low)
                #expect(third.report.verdicts == ["revalidated"], "\(third.result)")
                #expect(origin.requests.count == 3)
            }
        }
    }

    @Test func derivedVariantContainsNoPassword() async throws {
        try await withOrigin { origin in
            let (url, _) = try serve(origin, "max-age=3600")
            try await withWorkspace { workspace in
                let listed = url.replacing("http://", with: "http://me:secret@")
                _ = try await workspace.prefetch([listed], VariantTests.original)
                let second = try await workspace.prefetch(
                    [listed], ["--encode", "png", "--file-attributes"])
                #expect(second.report.verdicts == ["derived"], "\(second.result)")
                // The original has none: it was stored without attributes.
                let named = try await workspace.extendedAttributes().filter { !$0.value.isEmpty }
                #expect(named.count == 1)
                let path = try #require(second.report.entries.first?.path)
                let attribute = try await Command(
                    executable: "/usr/bin/python3",
                    arguments: [
                        "-I", "-c",
                        "import os,sys; print(os.getxattr(sys.argv[1], 'user.xdg.origin.url').decode())",
                        workspace.cache + "/" + path,
                    ], environment: ["PATH": "/usr/bin:/bin"], folder: workspace.folder
                ).run()
                #expect(attribute.output == url + "\n", "\(attribute)")
            }
        }
    }

    /// Another variant is not made from a lossy one.
    @Test func anotherRecipeIsFetchedWithoutAnOriginal() async throws {
        try await withOrigin { origin in
            let (url, _) = try serve(origin, "max-age=3600")
            try await withWorkspace { workspace in
                for options in [["--quality", "80"], VariantTests.low, VariantTests.original] {
                    let first = try await workspace.prefetch([url], options)
                    #expect(first.report.verdicts == ["downloaded"], "\(first.result)")
                }
                #expect(origin.requests.allSatisfy { $0.header("If-None-Match") == nil })
                let rows = try await workspace.query("SELECT count(*) FROM variant")
                #expect(rows == [["3"]])
                for options in [["--quality", "80"], VariantTests.low, VariantTests.original] {
                    let again = try await workspace.prefetch([url], options)
                    #expect(again.report.verdicts == ["fresh"], "\(again.result)")
                }
                #expect(origin.requests.count == 3)
            }
        }
    }

    @Test(arguments: ["gone", "cut", "damaged"])
    func uselessOriginalIsFetchedAgain(state: String) async throws {
        try await withOrigin { origin in
            let (url, bytes) = try serve(origin, "max-age=3600")
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let first = try await workspace.prefetch([url], VariantTests.original)
                let kept = try #require(first.report.entries.first?.path)
                let file = URL(filePath: "\(workspace.cache)/\(kept)")
                switch state {
                case "gone": try workspace.removeFile(kept)
                case "cut": try Data(bytes.dropLast()).write(to: file)
                default: try Data(Fixtures.damaged(bytes)).write(to: file)
                }
                let second = try await workspace.prefetch([url], VariantTests.low)
                #expect(second.report.verdicts == ["downloaded"], "\(second.result)")
                #expect(origin.requests.map { $0.header("If-None-Match") } == [nil, nil])
                // A damaged original is removed, row and file.
                let third = try await workspace.prefetch([url], VariantTests.original)
                #expect(third.report.verdicts == ["downloaded"], "\(third.result)")
                #expect(try workspace.bytes(of: kept) == bytes)
                #expect(try await workspace.judge(sources: [url: bytes]) == 2)
            }
        }
    }

    @Test func staleOriginalIsValidatedAndUsed() async throws {
        try await withOrigin { origin in
            let (url, bytes) = try serve(
                origin, "max-age=0", then: .notModified(("Cache-Control", "max-age=3600")))
            try await withWorkspace { workspace in
                _ = try await workspace.prefetch([url], VariantTests.original)
                let second = try await workspace.prefetch([url], VariantTests.low)
                let entry = try #require(second.report.entries.first)
                #expect(entry.verdict == "revalidated", "\(second.result)")
                #expect(entry.decodeMilliseconds != nil)
                #expect(
                    origin.requests.map { $0.header("If-None-Match") } == [nil, "\"v1\""])
                #expect(try await workspace.judge(sources: [url: bytes]) == 2)
                for options in [VariantTests.original, VariantTests.low] {
                    let again = try await workspace.prefetch([url], options)
                    #expect(again.report.verdicts == ["fresh"], "\(again.result)")
                }
                #expect(origin.requests.count == 2)
            }
        }
    }

    /// A 304 confirms the variants of all recipes, and a new body removes them.
    @Test func responsesApplyToAllRecipes() async throws {
        try await withOrigin { origin in
            let bytes = try Fixtures.file("baseline.jpg")
            let new = try Fixtures.file("progressive.jpg")
            let old = Response.picture(bytes, ("Cache-Control", "max-age=0"), ("ETag", "\"v1\""))
            origin.serve("/same.jpg", old, .notModified(("Cache-Control", "max-age=3600")))
            origin.serve("/new.jpg", old, .picture(new, ("ETag", "\"v2\"")))
            let urls = ["/same.jpg", "/new.jpg"].map(origin.url)
            try await withWorkspace { workspace in
                _ = try await workspace.prefetch(urls, VariantTests.original)
                // Made without a request, since these runs treat the originals as fresh.
                for options in [VariantTests.low, ["--encode", "png"]] {
                    let derived = try await workspace.prefetch(urls, options + ["--ttl", "1h"])
                    #expect(derived.report.verdicts == ["derived", "derived"], "\(derived.result)")
                }
                #expect(try await workspace.judge() == 6)
                let run = try await workspace.prefetch(
                    urls, VariantTests.low + ["--refresh", "all"])
                #expect(run.report.verdicts == ["revalidated", "downloaded"], "\(run.result)")
                #expect(try await workspace.judge(sources: [urls[0]: bytes, urls[1]: new]) == 4)
                let rows = try await workspace.query("SELECT count(*) FROM freshness")
                #expect(rows == [["4"]])
                let last = try await workspace.prefetch([urls[0]], VariantTests.original)
                #expect(last.report.verdicts == ["fresh"], "\(last.result)")
                #expect(origin.requests.count == 4)
            }
        }
    }
}

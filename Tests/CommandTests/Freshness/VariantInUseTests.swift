import TestSupport
import Testing

/// Among several variants, `get` returns the one that the last run used.
@Suite(.timeLimit(.minutes(15)))
struct VariantInUseTests {
    private static let control = ("Cache-Control", "max-age=3600")

    private func path(
        _ workspace: Workspace, _ line: String, _ options: [String], verdict: String
    ) async throws -> String {
        let run = try await workspace.finish(
            workspace.prefetchCommand([line], options).run(), entries: 1)
        #expect(run.report.verdicts == [verdict], "\(run.result)")
        return try #require(run.report.entries.first?.path)
    }

    /// Runs `body` with the URL of a JPEG that is fresh for an hour.
    private func withJPEG(
        _ body: (_ workspace: Workspace, _ url: String) async throws -> Void
    ) async throws {
        try await withOrigin { origin in
            origin.serve(
                "/a.jpg", .picture(try Fixtures.file("larger.jpg"), VariantInUseTests.control))
            try await withWorkspace(without: [.retries, .probes]) {
                try await body($0, origin.url("/a.jpg"))
            }
        }
    }

    private func got(_ workspace: Workspace, _ arguments: String...) async throws -> String {
        let result = try await workspace.command(["get"] + arguments).run()
        #expect(result.status == 0, "\(result)")
        return String(result.output.dropLast().dropFirst("\(workspace.cache)/".count))
    }

    @Test(arguments: ["", " attr.name=value"])
    func getReturnsTheLastRunsVariant(fields: String) async throws {
        try await withJPEG { workspace, url in
            let low = ["--quality", "30"]
            let first = try await path(workspace, url, [], verdict: "downloaded")
            let second = try await path(workspace, url, low, verdict: "downloaded")
            #expect(first != second)
            #expect(try await got(workspace, url) == second)
            #expect(try await path(workspace, url + fields, [], verdict: "fresh") == first)
            #expect(try await got(workspace, url) == first)
            #expect(try await path(workspace, url + fields, low, verdict: "fresh") == second)
            #expect(try await got(workspace, url) == second)
            #expect(try await got(workspace, "--recipe", "same;q=85;strip=safe", url) == first)
            #expect(
                try await workspace.query(
                    "SELECT recipe, superseded FROM variant ORDER BY recipe") == [
                        ["same;q=30;strip=safe", "0"], ["same;q=85;strip=safe", "1"],
                    ])
            let agrees = """
                SELECT count(*), sum(superseded), sum(superseded AND expires_at = 0)
                FROM freshness
                """
            #expect(try await workspace.query(agrees) == [["2", "1", "0"]])
            // Stored again, and in use again.
            let force = ["--refresh", "force"]
            #expect(try await path(workspace, url, force, verdict: "downloaded") == first)
            #expect(try await got(workspace, url) == first)
            #expect(try await path(workspace, url, low, verdict: "fresh") == second)
            #expect(try await got(workspace, url) == second)
            #expect(try await workspace.query(agrees) == [["2", "1", "0"]])
        }
    }

    @Test func missingVariantMessageListsRecipes() async throws {
        try await withJPEG { workspace, url in
            _ = try await path(workspace, url, [], verdict: "downloaded")
            let low = try await path(
                workspace, url, ["--quality", "30"], verdict: "downloaded")
            try workspace.removeFile(low)
            // The next run over any list removes its row.
            let other = try await workspace.prefetch(["http://127.0.0.1:1/x"], "--offline")
            #expect(other.report.verdicts == ["excluded"], "\(other.result)")
            for arguments in [[url], ["--recipe", "png", url]] {
                let result = try await workspace.command(["get"] + arguments).run()
                #expect(result.status == 1 && result.output.isEmpty, "\(result)")
                #expect(result.error.contains("same;q=85;strip=safe"), "\(result)")
                #expect(result.error.contains("hint: --recipe") == (arguments.count == 1))
            }
        }
    }

    @Test func entryWithAKeyIsFoundByItsURL() async throws {
        try await withJPEG { workspace, url in
            let line = url + " key=logo"
            let stored = try await path(workspace, line, [], verdict: "downloaded")
            #expect(try await got(workspace, url) == stored)
            #expect(try await got(workspace, "logo") == stored)
            let other = try await workspace.run("get", url + "x")
            #expect(other.status == 1 && other.error.contains("not in the cache"))
        }
    }

    /// `same` of a JPEG is `jpeg`, and a PNG has no quality.
    @Test(arguments: [
        ("larger.jpg", ["--encode", "jpeg"], true), ("larger.jpg", ["--encode", "png"], false),
        ("larger.jpg", ["--effort", "small"], true),
        ("larger.jpg", ["--strip", "none"], false),
        ("animated.png", ["--encode", "png", "--quality", "30"], true),
        ("animated.png", ["--effort", "small"], false),
    ])
    func recipesOfTheSameBytesAreNotDownloadedTwice(
        file: String, options: [String], isSame: Bool
    ) async throws {
        try await withOrigin { origin in
            origin.serve("/a", .picture(try Fixtures.file(file), VariantInUseTests.control))
            let url = origin.url("/a")
            try await withWorkspace { workspace in
                let first = try await path(workspace, url, [], verdict: "downloaded")
                let second = try await path(
                    workspace, url, options, verdict: isSame ? "derived" : "downloaded")
                #expect(origin.requests.count == (isSame ? 1 : 2))
                if isSame { #expect(first == second) }
                _ = try await path(workspace, url, options, verdict: "fresh")
                #expect(try await got(workspace, url) == second)
                #expect(try await workspace.judge() == 2)
            }
        }
    }

    @Test func sameBytesOfAStaleImageAreValidated() async throws {
        try await withOrigin { origin in
            let fields = [("Cache-Control", "max-age=0"), ("ETag", "\"v1\"")]
            origin.serve(
                "/a.jpg", .picture(try Fixtures.file("larger.jpg"), fields[0], fields[1]),
                .notModified(fields[0], fields[1]))
            let url = origin.url("/a.jpg")
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let first = try await path(workspace, url, [], verdict: "downloaded")
                let second = try await path(
                    workspace, url, ["--encode", "jpeg"], verdict: "revalidated")
                #expect(first == second)
                #expect(try await got(workspace, "--stale", url) == second)
                #expect(try await workspace.judge() == 2)
            }
        }
    }
}

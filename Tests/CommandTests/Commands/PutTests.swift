import Foundation
import TestSupport
import Testing

/// `prefetch put` stores a file as a run would; invalid input changes nothing.
@Suite(.timeLimit(.minutes(15)))
struct PutTests {
    private func withOne(
        _ body: (Origin, Workspace, _ url: String) async throws -> Void
    ) async throws {
        try await withOrigin { origin in
            origin.serve("/a", .image(Fixtures.png(seed: 1)))
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                try workspace.write(Fixtures.png(seed: 1), to: "a.png")
                try workspace.write(Fixtures.png(seed: 2), to: "b.png")
                try await body(origin, workspace, origin.url("/a"))
            }
        }
    }

    private static let tables = [
        "resource", "variant", "freshness", "attribute", "failure", "property", "run",
    ]

    /// All rows and files.
    private func contents(of workspace: Workspace) async throws -> [String] {
        var result: [String] = []
        for table in PutTests.tables {
            let rows = try await workspace.query("SELECT * FROM \(table) ORDER BY 1, 2")
            result += rows.map { "\(table) \($0)" }
        }
        let content = workspace.cache + "/content"
        return try result + FileManager.default.subpathsOfDirectory(atPath: content).sorted()
    }

    private func path(_ workspace: Workspace, _ options: String...) async throws -> String {
        let get = try await workspace.command(["get"] + options).run()
        #expect(get.status == 0, "\(get)")
        return get.output.trimmingCharacters(in: .newlines)
    }

    // MARK: Storing

    @Test func storesFileAndStandardInputAsFresh() async throws {
        try await withOne { origin, workspace, url in
            let put = try await workspace.run("put", url, "a.png")
            #expect(put.status == 0 && put.output.isEmpty, "\(put)")
            let path = try await path(workspace, url)
            let size = try Data(contentsOf: URL(filePath: path)).count
            #expect(
                put.error == "prefetch: \(url): stored as \(path) (png, 8x8, \(size) B)\n",
                "\(put)")
            let run = try await workspace.prefetch([url])
            #expect(run.summary.outcomes == ["fresh": 1], "\(run.result)")
            #expect(origin.requests.isEmpty)
            try await workspace.judge(sources: [url: Fixtures.png(seed: 1)])
            let history = try await workspace.query("SELECT count(*) FROM run")
            #expect(history == [["1"]], "it is no run")

            // From standard input, as JSON.
            var command = workspace.command([
                "put", url, "-", "--json", "--variant", "web=jpeg,q=50", "--variant",
                "also=jpeg,q=50",
            ])
            command.input = .bytes(Fixtures.png(seed: 1))
            let result = try await command.run()
            #expect(result.status == 0 && result.error.isEmpty, "\(result)")
            let objects = try result.jsonLines()
            #expect(
                objects.map { $0["variant"] as? String } == ["main", "web", "also"], "\(result)")
            for (object, variant) in zip(objects, ["main", "web", "also"]) {
                #expect(object["fresh"] as? Bool == true && object["key"] as? String == url)
                let path = try await self.path(workspace, url, "--variant", variant)
                #expect(object["path"] as? String == path)
            }
        }
    }

    /// Compares with a run with these flags over the same bytes.
    @Test(arguments: [
        [], ["--encode", "original"], ["--encode", "webp", "--quality", "60", "--resize", "4x4"],
        ["--variant", "web=jpeg,q=50", "--variant", "same=jpeg,q=50", "--store-original"],
        ["--no-placeholders"],
    ])
    func storesSameRowsAsRun(options: [String]) async throws {
        try await withOne { origin, workspace, url in
            let other = origin.url("/other")
            origin.serve("/other", .image(Fixtures.png(seed: 1)))
            let run = try await workspace.prefetch(
                [other + " attr.licence=CC0 ttl=1h"], options: options)
            #expect(run.summary.outcomes == ["downloaded": 1], "\(run.result)")
            let put = try await workspace.command(
                ["put", url, "a.png", "--ttl", "1h", "--attr", "licence=CC0"] + options
            ).run()
            #expect(put.status == 0, "\(put)")
            let again = try await workspace.prefetch([url + " ttl=1h"], options: options)
            #expect(again.summary.outcomes == ["fresh": 1], "\(again.result)")
            #expect(origin.snapshot.count(of: "/a") == 0)
            func rows(_ key: String) async throws -> [[String?]] {
                try await workspace.query(
                    """
                    SELECT recipe, sha256, format, width, height, variant.bytes, name, superseded,
                        decoded, source_bytes, source_format, source_sha256, source_width,
                        source_height, host, expires_at - validated_at, etag, last_modified,
                        vary, thumbhash, color, redirects, final_url
                    FROM variant JOIN resource ON id = resource_id
                    WHERE key = '\(key)' ORDER BY recipe
                    """)
            }
            #expect(try await rows(url) == rows(other))
            let attributes = try await workspace.query(
                "SELECT name, value, count(*) FROM attribute GROUP BY name, value")
            #expect(attributes == [["licence", "434330", "2"]])
            // One set of files for both.
            let verify = try await workspace.run("verify")
            #expect(verify.status == 0, "\(verify)")
            for name in options where name.contains("=") {
                let variant = String(name.prefix { $0 != "=" })
                _ = try await path(workspace, url, "--variant", variant)
            }
        }
    }

    // MARK: Afterwards

    /// The run has nothing to validate with; the response supplies validators.
    @Test func downloadsExpiredImageUnconditionally() async throws {
        try await withOne { origin, workspace, url in
            let response = Response(
                headers: [("ETag", "\"1\""), ("Cache-Control", "max-age=0")],
                body: Fixtures.png(seed: 3), type: "image/png")
            origin.serve("/a", response, .notModified)
            let put = try await workspace.run("put", url, "a.png", "--ttl", "0s")
            #expect(put.status == 0, "\(put)")
            let first = try await workspace.prefetch([url])
            #expect(first.summary.outcomes == ["downloaded": 1], "\(first.result)")
            #expect(origin.requests.allSatisfy { $0.header("if-none-match") == nil })
            #expect(origin.requests.allSatisfy { $0.header("if-modified-since") == nil })
            let second = try await workspace.prefetch([url])
            #expect(second.summary.outcomes == ["revalidated": 1], "\(second.result)")
            #expect(origin.requests.last?.header("if-none-match") == "\"1\"")
            try await workspace.judge(sources: [url: Fixtures.png(seed: 3)])
        }
    }

    /// Named variants are made of the new body, as by a run over a changed image.
    @Test func replacesStoredImageItsVariantsAndItsFailure() async throws {
        try await withOne { origin, workspace, url in
            let run = try await workspace.prefetch(
                [url], "--variant", "web=jpeg,q=50", "--variant", "t=4x4,png", "--store-original")
            #expect(run.summary.outcomes == ["downloaded": 1], "\(run.result)")
            let before = try await path(workspace, url, "--variant", "t")
            let set = try await workspace.run("attr", "set", url, "colour", "red")
            #expect(set.status == 0, "\(set)")
            let put = try await workspace.run("put", url, "b.png", "-q")
            #expect(put.status == 0 && put.error.isEmpty, "\(put)")
            try await workspace.judge(sources: [url: Fixtures.png(seed: 2)])
            let rows = try await workspace.query("SELECT count(*) FROM variant")
            #expect(rows == [["4"]])
            #expect(try await path(workspace, url, "--variant", "t") != before)
            let original = try await path(workspace, url, "--variant", "original")
            #expect(
                try Data(contentsOf: URL(filePath: original)) == Data(Fixtures.png(seed: 2)))
            let attribute = try await workspace.run("attr", "get", url, "colour")
            #expect(attribute.output == "red", "\(attribute)")
            let verify = try await workspace.run("verify")
            #expect(verify.status == 0, "\(verify)")

            origin.serve("/gone", .notFound)
            let gone = origin.url("/gone")
            let failed = try await workspace.prefetch([gone])
            #expect(failed.summary.outcomes == ["failed": 1], "\(failed.result)")
            let other = try await workspace.run("put", gone, "a.png")
            #expect(other.status == 0, "\(other)")
            #expect(try await workspace.query("SELECT * FROM failure").isEmpty)
            let next = try await workspace.prefetch([url, gone])
            #expect(next.summary.outcomes == ["fresh": 2], "\(next.result)")

            // A named variant that cannot be made is removed: no WebP is wider than 16,383 pixels.
            origin.serve("/w", .image(Fixtures.png(seed: 1)))
            let wide = origin.url("/w")
            let both = try await workspace.prefetch(
                [wide], "--variant", "w=webp", "--variant", "t=4x4,png")
            #expect(both.result.status == 0, "\(both.result)")
            try workspace.write(Fixtures.png(width: 20_000, height: 1, seed: 1), to: "wide.png")
            let last = try await workspace.run("put", wide, "wide.png")
            #expect(last.status == 0, "\(last)")
            #expect(last.error.contains("warning: the stored variant w is removed"), "\(last)")
            _ = try await path(workspace, wide, "--variant", "t")
            let get = try await workspace.run("get", wide, "--variant", "w")
            #expect(get.status == 1, "\(get)")
        }
    }

    // MARK: Invalid input

    private enum Bad: String, CaseIterable {
        case missing, folder, empty, page, cut, large, manyPixels, onlyOneVariant

        var message: String {
            switch self {
            case .missing: "cannot read: No such file or directory"
            case .folder: "cannot read: Is a directory"
            case .empty: "no bytes"
            case .page: "an HTML page"
            case .cut: "the data ends before the image does"
            case .large: ": larger than --max-filesize (16 B)"
            case .manyPixels: "more than --max-pixels"
            case .onlyOneVariant: "variant big: "
            }
        }

        var options: [String] {
            switch self {
            case .large: ["--max-filesize", "16"]
            case .onlyOneVariant: ["--memory", "16MiB", "--variant", "big=9000x9000!"]
            case .missing, .folder, .empty, .page, .cut, .manyPixels: []
            }
        }

        func write(_ workspace: Workspace) throws {
            switch self {
            case .missing: break
            case .folder:
                try FileManager.default.createDirectory(
                    atPath: workspace.folder + "/bad", withIntermediateDirectories: false)
            case .empty: try workspace.write([], to: "bad")
            case .page:
                try workspace.write(Array("<!doctype html><p>sorry</p>".utf8), to: "bad")
            case .cut: try workspace.write(Array(Fixtures.png(seed: 1).dropLast(40)), to: "bad")
            case .large, .onlyOneVariant: try workspace.write(Fixtures.png(seed: 1), to: "bad")
            case .manyPixels:
                try workspace.write(
                    Fixtures.pngDeclaring(width: 100_000, height: 100_000), to: "bad")
            }
        }
    }

    @Test(arguments: Bad.allCases)
    private func rejectsInvalidFileWithoutChanges(bad: Bad) async throws {
        try await withOne { origin, workspace, url in
            try bad.write(workspace)
            func put() async throws {
                let result = try await workspace.command(["put", url, "bad"] + bad.options).run()
                #expect(result.status == 1 && result.output.isEmpty, "\(result)")
                #expect(result.error.hasPrefix("prefetch: bad: "), "\(result)")
                #expect(result.error.contains(bad.message), "\(result)")
                #expect(result.errorLines.count == 1, "\(result)")
            }
            try await put()
            #expect(!FileManager.default.fileExists(atPath: workspace.cache))
            let run = try await workspace.prefetch([url])
            #expect(run.summary.outcomes == ["downloaded": 1], "\(run.result)")
            let before = try await contents(of: workspace)
            try await put()
            #expect(try await contents(of: workspace) == before)
        }
    }

    // MARK: Kills

    /// Files left in `tmp` by a killed run have the names of new temporary files.
    @Test func overwritesTemporaryFilesOfKilledRun() async throws {
        try await withOne { _, workspace, url in
            _ = try await workspace.run("put", url + "?1", "b.png")
            for name in ["1", "2"] {
                try workspace.write([1], to: "cache/tmp/\(name)")
            }
            try await workspace.runSQL("INSERT INTO property VALUES ('removal_unfinished', 1)")
            let put = try await workspace.run("put", url, "a.png")
            #expect(put.status == 0, "\(put)")
            let tmp = try FileManager.default.contentsOfDirectory(atPath: workspace.cache + "/tmp")
            #expect(tmp.isEmpty, "\(tmp)")
            // Only a run clears the property that another command left.
            #expect(try await workspace.query("SELECT name FROM property").count == 1)
            let removed = try await workspace.run("remove", url)
            #expect(removed.status == 0, "\(removed)")
            #expect(try await workspace.query("SELECT name FROM property").count == 1)
            _ = try await workspace.prefetch([url])
            #expect(
                try await workspace.query(
                    "SELECT name FROM property WHERE name = 'removal_unfinished'"
                ).isEmpty)
        }
    }
}

extension Workspace {
    fileprivate func prefetch(_ lines: [String], options: [String]) async throws -> Run {
        try await finish(prefetchCommand(lines, options).run(), entries: lines.count)
    }
}

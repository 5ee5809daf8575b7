import Foundation
import TestSupport
import Testing

/// Fields of the report and `list --json` about the exchange behind an image.
@Suite(.timeLimit(.minutes(15)))
struct ReportFieldTests {
    private static let picture = Fixtures.png(seed: 1)

    /// Serves a picture after two redirects that must be validated at every use.
    private func serve(_ origin: Origin) -> String {
        origin.serve("/start", .redirect(302, to: "/middle"))
        origin.serve("/middle", .redirect(301, to: "/end.png?X-Amz-Signature=HUSH&size=3"))
        let fields = [("Cache-Control", "no-cache"), ("ETag", "\"v1\"")]
        origin.serve(
            "/end.png",
            Response(
                headers: fields, body: ReportFieldTests.picture, type: "image/PNG; charset=binary"),
            .notModified,
            Response(headers: [("ETag", "\"v2\"")], body: ReportFieldTests.picture, type: "x/y"))
        return origin.url("/start")
    }

    @Test func reportsFaultsThatLoseNoPixel() async throws {
        let whole = try Fixtures.file("baseline.jpg")
        let faulty = try Fixtures.faultyJPEG()
        try await withOrigin { origin in
            origin.serve("/whole.jpg", .image(whole))
            origin.serve("/faulty.jpg", .image(faulty))
            let urls = [origin.url("/whole.jpg"), origin.url("/faulty.jpg")]
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.prefetch(urls)
                #expect(run.summary.outcomes == ["downloaded": 2], "\(run.result)")
                let report = try workspace.bytes(of: workspace.folder + "/report-1.jsonl")
                let warnings = try String(decoding: report, as: UTF8.self)
                    .split(separator: "\n").compactMap { line -> String? in
                        let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
                        guard let line = object as? [String: Any],
                            let warning = line["warning"] as? String
                        else { return nil }
                        return "\(line["key"] as? String ?? ""): \(warning)"
                    }
                let text = "foreign bytes stand between the data of blocks and a marker"
                #expect(warnings == ["\(urls[1]): \(text)"])
            }
        }
    }

    @Test func reportAndListHaveFinalURLTypeAndRedirects() async throws {
        try await withOrigin { origin in
            let urls = [serve(origin), origin.url("/gone"), origin.url("/plain.png")]
            origin.serve("/gone", .notFound)
            origin.serve("/plain.png", .image(Fixtures.png(seed: 2)))
            let end = origin.url("/end.png?X-Amz-Signature=***&size=3")
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                func listed() async throws -> [String: Any] {
                    let list = try await workspace.run("list", "--json")
                    return try #require(
                        try list.jsonLines().first { $0["key"] as? String == urls[0] }, "\(list)")
                }
                func expectListed(_ type: String) async throws {
                    let object = try await listed()
                    #expect(object["content_type"] as? String == type)
                    #expect(object["redirects"] as? Int == 2)
                    #expect(object["final_url"] as? String == end)
                    #expect(object["reason"] is NSNull && object["blacklisted_until"] is NSNull)
                }
                let first = try await workspace.prefetch(urls)
                try await expectListed("image/PNG; charset=binary")
                let moved = try #require(first.report[line: 1], "\(first.result)")
                #expect(moved.finalURL == end, "\(first.result)")
                #expect(moved.contentType == "image/PNG; charset=binary")
                #expect(moved.redirects == 2)
                let gone = try #require(first.report[line: 2])
                #expect(gone.finalURL == nil && gone.contentType == "text/plain")
                #expect(gone.redirects == 0 && gone.blacklistedUntil == nil)

                let second = try await workspace.prefetch(urls)
                let confirmed = try #require(second.report[line: 1], "\(second.result)")
                #expect(confirmed.verdict == "revalidated" && confirmed.finalURL == end)
                // The 304 has no such field.
                #expect(confirmed.contentType == nil && confirmed.redirects == 2)
                // These two made no request.
                let blacklisted = try #require(second.report[line: 2])
                #expect(blacklisted.outcome == "blacklisted" && blacklisted.reason == "http-status")
                let until = try await workspace.query(
                    """
                    SELECT strftime('%Y-%m-%dT%H:%M:%SZ', blacklisted_until / 1000, 'unixepoch')
                    FROM failure
                    """)
                #expect(until == [[blacklisted.blacklistedUntil]], "\(second.result)")
                let fresh = try #require(second.report[line: 3])
                #expect(fresh.outcome == "fresh" && fresh.redirects == nil)
                for entry in [blacklisted, fresh] {
                    #expect(entry.finalURL == nil && entry.contentType == nil, "\(entry)")
                    #expect(entry.redirects == nil, "\(entry)")
                }

                // Kept by a response without the field, and replaced by one with the same bytes.
                try await expectListed("image/PNG; charset=binary")
                _ = try await workspace.prefetch([urls[0]])
                try await expectListed("x/y")
                // A permanent failure of a refresh keeps the image and blacklists the URL.
                origin.serve("/start", .notFound)
                _ = try await workspace.prefetch([urls[0]], "--refresh", "all")
                let object = try await listed()
                #expect(object["reason"] as? String == "http-status", "\(object)")
                #expect(object["blacklisted_until"] is String, "\(object)")
                #expect(object["redirects"] as? Int == 2, "\(object)")
                try await workspace.runSQL(
                    "UPDATE resource SET content_type = NULL; DELETE FROM failure")
                #expect(try await listed()["content_type"] is NSNull)
            }
        }
    }

    /// An entry that waits for a redirect's host is written to the spill file and restored
    /// completely.
    @Test func countsRedirectsOfSpilledEntries() async throws {
        try await withOrigin { origin in
            let count = 30
            for number in 0..<count {
                origin.serve("/r/\(number)", .redirect(302, to: "/s/\(number)"))
                origin.serve("/s/\(number)", .redirect(307, to: "/i/\(number)"))
                origin.serve("/i/\(number)", .image(Fixtures.png(seed: number)))
            }
            try await withWorkspace { workspace in
                let run = try await workspace.prefetch(
                    (0..<count).map { origin.url("/r/\($0)") }, "--queue-capacity", "1",
                    "--host-concurrency", "1")
                #expect(run.report.entries.map(\.redirects) == Array(repeating: 2, count: count))
                for entry in run.report.entries {
                    #expect(entry.finalURL == origin.url("/i/\(entry.line - 1)"), "\(run.result)")
                }
            }
        }
    }

    @Test func printsAbsolutePathsOnRequest() async throws {
        try await withOrigin { origin in
            let url = origin.serveImages(1)[0]
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                // Relative to the working folder, which is the workspace.
                let run = try await workspace.prefetch(
                    [url], "--absolute-paths", "--cache-dir", "cache")
                let path = try #require(run.report.entries.first?.path, "\(run.result)")
                #expect(path.hasPrefix("\(workspace.cache)/content/"), "\(run.result)")
                #expect(FileManager.default.fileExists(atPath: path))
                let options = ["list", "--absolute-paths", "--cache-dir", "cache"]
                let json = try await workspace.command(options + ["--json"]).run()
                #expect(try json.jsonLines().first?["path"] as? String == path, "\(json)")
                let text = try await workspace.command(options).run()
                #expect(text.output.split(separator: "\t").contains(Substring(path)), "\(text)")
            }
        }
    }
}

import Foundation
import TestSupport
import Testing

/// Runs that request images and store nothing.
@Suite(.timeLimit(.minutes(15)))
struct EdgeWarmingTests {
    @Test func everyImageIsRequestedAndNothingStored() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(2)
            origin.serve(
                "/edge",
                Response(
                    headers: [("Age", "12"), ("X-Cache", "Hit \"from\" edge")],
                    body: Fixtures.png(width: 3, height: 3), type: "image/png"))
            origin.serve("/moved", Response(301, headers: [("Location", "/edge")]))
            origin.serve("/gone", .notFound)
            let lines = urls + ["/edge", "/moved", "/gone"].map(origin.url)
            try await withWorkspace { workspace in
                _ = try await workspace.prefetch(urls)
                for flags in [["--no-store"], ["--method", "head"]] {
                    let before = origin.requests.count
                    for _ in 0..<2 {
                        let run = try await workspace.prefetch(lines, flags)
                        #expect(
                            run.summary.outcomes == ["requested": 4, "failed": 1], "\(run.result)")
                        #expect(run.result.status == 1)
                        #expect(run.report[line: 3]?.bytesStored == nil)
                        #expect(
                            run.result.error.contains("from caches on the way: 2 "), "\(run.result)"
                        )
                        let name = try #require(run.result.command.arguments.dropFirst(2).first)
                        let report = try String(
                            contentsOfFile: workspace.folder + "/" + name, encoding: .utf8)
                        #expect(
                            report.contains(#""age":12,"x_cache":"Hit \"from\" edge""#), "\(report)"
                        )
                    }
                    // Also the fresh and the failed ones, twice, and both hops.
                    #expect(origin.requests.count - before == 12)
                    let requests = origin.requests.dropFirst(before)
                    let method = flags.contains("head") ? "HEAD" : "GET"
                    #expect(requests.allSatisfy { $0.method == method })
                    #expect(requests.allSatisfy { $0.header("If-None-Match") == nil })
                }
                let stored = try await workspace.query("SELECT count(*) FROM resource")
                #expect(stored == [["2"]])
                let failures = try await workspace.query("SELECT count(*) FROM failure")
                #expect(failures == [["0"]])

                // The hint names a command that lists them.
                let missing = (1...20).map { origin.url("/refused/\($0)") }
                for url in missing { origin.serve(URL(string: url)?.path ?? "", Response(403)) }
                for flags in [["--no-store"], ["--method", "head"], []] {
                    let run = try await workspace.prefetch(missing, flags)
                    let list = try await workspace.run("failed", "list")
                    #expect(
                        run.result.error.contains("`prefetch failed list` lists the failed URLs")
                            == !list.output.isEmpty, "\(flags): \(run.result)")
                }

                // Wrong types and broken bodies fail.
                origin.serve("/page", Response(body: [1], type: "text/html"))
                origin.serve(
                    "/cut",
                    Response(
                        body: [1, 2, 3], type: "image/png", ending: .closedAfter(bodyBytes: 1)))
                let wrong = ["/page", "/cut"].map(origin.url)
                let types = ["--accept-type", "image/*", "--retry", "0"]
                let run = try await workspace.prefetch(wrong, ["--no-store"] + types)
                #expect(
                    run.report.verdicts == ["failed/not-an-image", "failed/interrupted"],
                    "\(run.result)")
                let head = try await workspace.prefetch([wrong[0]], ["--method", "head"] + types)
                #expect(head.report.verdicts == ["failed/not-an-image"], "\(head.result)")
            }
        }
    }
}

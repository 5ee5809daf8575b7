import Foundation
import TestSupport
import Testing

/// Stale copies in `get`, `list` and `stats`.
@Suite(.timeLimit(.minutes(15)))
struct StaleTests {
    private func withCopy(
        _ control: String, _ body: (Workspace, String) async throws -> Void
    ) async throws {
        try await withOrigin { origin in
            origin.serve(
                "/a.png",
                Response(
                    headers: [("Cache-Control", control)], body: Fixtures.png(), type: "image/png"))
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.prefetch([origin.url("/a.png")])
                #expect(run.summary.outcomes == ["downloaded": 1], "\(run.result)")
                try await body(workspace, origin.url("/a.png"))
            }
        }
    }

    private func expectStale(_ workspace: Workspace, expiry: String? = nil) async throws {
        let list = try await workspace.run("list")
        #expect(list.output.hasPrefix("stale\t" + (expiry.map { $0 + "\t" } ?? "")), "\(list)")
        let json = try await workspace.run("list", "--json")
        #expect(try json.jsonLines().first?["fresh"] as? Bool == false, "\(json)")
        let stats = try await workspace.run("stats")
        #expect(stats.output.contains("1 (1 expired)"), "\(stats)")
    }

    @Test func expiredCopyIsReturnedOnDemand() async throws {
        try await withCopy("max-age=0") { workspace, url in
            let get = try await workspace.run("get", url)
            #expect(get.status == 1 && get.output.isEmpty, "\(get)")
            #expect(get.error.contains("expired at 20"), "\(get)")
            #expect(get.error.contains("--stale"), "\(get)")
            let stale = try await workspace.run("get", "--stale", url)
            #expect(stale.status == 0 && stale.output.hasSuffix(".png\n"), "\(stale)")
            try await expectStale(workspace)
        }
    }

    @Test func mustRevalidateForbidsStaleUse() async throws {
        let controls = ["max-age=0, must-revalidate", "no-cache", "no-cache, max-age=60"]
        try await withOrigin { origin in
            let urls = (controls + ["max-age=60, must-revalidate"]).enumerated().map {
                origin.serve("/\($0)", .picture(Fixtures.png(), ("Cache-Control", $1)))
                return origin.url("/\($0)")
            }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.prefetch(urls)
                #expect(run.summary.outcomes == ["downloaded": 4], "\(run.result)")
                for url in urls[..<3] {
                    for arguments in [[], ["--stale"], ["--stale", "--json"]] {
                        let result = try await workspace.command(["get", url] + arguments).run()
                        #expect(result.status == 1 && result.output.isEmpty, "\(result)")
                        #expect(result.error.contains("forbids"), "\(result)")
                    }
                }
                let fresh = try await workspace.run("get", urls[3])
                #expect(fresh.status == 0, "\(fresh)")
            }
        }
    }

    @Test func noCacheCopyHasNoExpiry() async throws {
        try await withCopy("no-cache") { workspace, url in
            let get = try await workspace.run("get", url)
            #expect(get.error.contains("validated at every use"), "\(get)")
            try await expectStale(workspace, expiry: "-")
            for result in [get, try await workspace.run("list")] {
                #expect(!(result.output + result.error).contains("1970"), "\(result)")
            }
            let json = try await workspace.run("list", "--json")
            #expect(try json.jsonLines().first?["expires_at"] is NSNull, "\(json)")
            // As the hint says.
            let run = try await workspace.prefetch([url], "--refresh", "all", "--ttl", "1h")
            #expect(run.result.status == 0, "\(run.result)")
            let fresh = try await workspace.run("get", url)
            #expect(fresh.status == 0, "\(fresh)")
        }
    }

    @Test func copyFromTheFutureIsStale() async throws {
        try await withCopy("max-age=60") { workspace, url in
            func validate(minutesAhead minutes: Int) async throws {
                try await workspace.runSQL(
                    """
                    UPDATE resource SET validated_at = fetched_at + \(minutes) * 60000,
                        expires_at = fetched_at + 86400000;
                    UPDATE freshness SET (validated_at, expires_at) =
                        (SELECT validated_at, expires_at FROM resource WHERE id = resource_id);
                    """)
            }
            try await validate(minutesAhead: 60)
            let near = try await workspace.run("get", url)
            #expect(near.status == 0, "\(near)")
            // The time of the commands must not reach the limit of 65.
            try await validate(minutesAhead: 80)
            let far = try await workspace.run("get", url)
            #expect(far.status == 1 && far.output.isEmpty, "\(far)")
            #expect(far.error.contains("in the future"), "\(far)")
            try await expectStale(workspace)
            let stale = try await workspace.run("get", "--stale", url)
            #expect(stale.status == 0, "\(stale)")
        }
    }
}

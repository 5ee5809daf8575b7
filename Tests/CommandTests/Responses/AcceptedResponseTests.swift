import TestSupport
import Testing

/// Which responses are images, and which blacklist.
@Suite(.timeLimit(.minutes(15)))
struct AcceptedResponseTests {
    private static let image = Fixtures.png(width: 3, height: 3)

    private func response(
        _ status: Int, _ control: String? = "max-age=60", type: String = "image/png",
        body: [UInt8] = Self.image
    ) -> Response {
        Response(
            status, headers: control.map { [("Cache-Control", $0)] } ?? [], body: body, type: type)
    }

    @Test func imagesOfErrorsAreStoredWithALifetime() async throws {
        try await withOrigin { origin in
            origin.serve("/a", response(404))
            origin.serve("/b", response(404, nil))
            origin.serve("/c", response(404, type: "text/html", body: Array("<html>".utf8)))
            origin.serve("/d", response(410))
            // An error without a body.
            origin.serve("/e", response(404, body: []))
            let lines = ["/a", "/b", "/c", "/d", "/e"].map(origin.url)
            try await withWorkspace { workspace in
                let run = try await workspace.prefetch(lines, "--accept-status", "404")
                #expect(
                    run.report.verdicts
                        == ["downloaded"] + [String](repeating: "failed/http-status", count: 4),
                    "\(run.result)")
                #expect(run.report[line: 1]?.httpStatus == 404)
                #expect(run.report[line: 2]?.message?.contains("--ttl") == true)
                // The settings of a blacklisting have changed; the image is fresh.
                let forced = try await workspace.prefetch(
                    lines, "--accept-status", "404-410", "--ttl", "1h")
                #expect(
                    forced.report.verdicts == [
                        "fresh", "downloaded", "failed/http-status", "downloaded",
                        "failed/http-status",
                    ], "\(forced.result)")
                #expect(origin.snapshot.count(of: "/e") == 2)
            }
        }
    }

    @Test func otherTypesAreRefusedBeforeTheirBodies() async throws {
        try await withOrigin { origin in
            origin.serve("/a", response(200, type: "application/octet-stream"))
            origin.serve("/b", response(200, type: "Image/PNG; x=y"))
            let lines = ["/a", "/b"].map(origin.url)
            try await withWorkspace { workspace in
                let run = try await workspace.prefetch(lines, "--accept-type", "image/*")
                #expect(run.report.verdicts == ["failed/not-an-image", "downloaded"])
                #expect(run.report[line: 1]?.message?.contains("application/octet-stream") == true)
                // Without the flag the bytes decide, also for URLs blacklisted under it.
                let all = try await workspace.prefetch(lines)
                #expect(all.report.verdicts == ["downloaded", "fresh"], "\(all.result)")
            }
        }
    }

    /// Against the types of a configuration file.
    @Test func settingsMayBeTakenBack() async throws {
        try await withOrigin { origin in
            origin.serve("/a", response(404))
            origin.serve("/b", response(200, type: "application/octet-stream"))
            origin.serve("/c", .notFound)
            let lines = ["/a", "/b", "/c"].map(origin.url)
            try await withWorkspace(without: [.retries]) { workspace in
                let text = """
                    accept-status = "404"
                    accept-type = "image/png"
                    blacklist-status = "404"

                    """
                try workspace.write(Array(text.utf8), to: "run.toml")
                let flags = ["--config", "run.toml"]
                let run = try await workspace.prefetch(lines, flags)
                #expect(
                    run.report.verdicts
                        == ["downloaded", "failed/not-an-image", "failed/http-status"],
                    "\(run.result)")
                let back = [
                    "--accept-status", "none", "--accept-type", "*/*", "--blacklist-status",
                    "none", "--refresh", "all",
                ]
                // Of the blacklisted one, too: it depended on the settings.
                for _ in 0..<2 {
                    let all = try await workspace.prefetch(lines, flags + back)
                    #expect(
                        all.report.verdicts
                            == ["failed/http-status", "downloaded", "failed/http-status"],
                        "\(all.result)")
                }

                // Chosen statuses blacklist immediately, and others do not.
                origin.serve("/500", Response(500))
                origin.serve("/404", .notFound)
                origin.serve("/403", Response(403))
                let paths = ["/500", "/404", "/403"].map(origin.url)
                let chosen = ["--blacklist-status", "403,500"]
                _ = try await workspace.prefetch(paths, chosen)
                let second = try await workspace.prefetch(paths, chosen)
                #expect(
                    second.report.verdicts == [
                        "blacklisted", "failed/http-status", "blacklisted",
                    ],
                    "\(second.result)")
            }
        }
    }
}

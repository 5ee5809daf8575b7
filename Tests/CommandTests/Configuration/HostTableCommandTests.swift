import TestSupport
import Testing

/// The tables `[host."PATTERN"]` of configuration files.
@Suite(.timeLimit(.minutes(15)))
struct HostTableCommandTests {
    /// A stranger's table for the same host, or for a more specific pattern, hides nothing.
    @Test(arguments: ["127.0.0.1", "127.*", "127.0.0.*1"])
    func aProjectDoesNotHideTheUsersProxy(pattern: String) async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(1)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                try workspace.writeConfiguration(
                    "[host.\"127.0.0.*\"]\nproxy = \"http://127.0.0.1:9\"\n",
                    to: ".config/prefetch/config.toml")
                try workspace.writeConfiguration("[host.\"\(pattern)\"]\nretry = 1\n")
                let run = try await workspace.prefetch(urls)
                #expect(run.summary["failed"] == 1, "\(run.result)")
                #expect(origin.requests.isEmpty)
            }
        }
    }

    @Test func aHostHasLimitsOfItsOwn() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            for number in 0..<6 {
                origin.serve("/\(number)", .image(Fixtures.png(seed: number), gate: gate))
            }
            let lines = (0..<6).map { origin.url("/\($0)") }
            try await withWorkspace { workspace in
                try workspace.writeConfiguration(
                    "[host.\"127.0.0.*\"]\nhost-concurrency = 2\n")
                let running = try workspace.prefetchCommand(lines).start()
                try await origin.wait(for: "two requests") { $0.requests.count == 2 }
                gate.open()
                let result = await running.wait()
                let run = try workspace.finish(result)
                #expect(run.summary.outcomes == ["downloaded": 6], "\(result)")
                #expect(origin.snapshot.peakInFlight == 2)
            }
        }
    }

    @Test func aHostHasRetriesTimeoutsAndStatusesOfItsOwn() async throws {
        try await withOrigin { origin in
            origin.serve("/500", Response(500))
            origin.serve(
                "/404",
                Response(
                    404, headers: [("Cache-Control", "max-age=60")], body: Fixtures.png(seed: 1),
                    type: "image/png"))
            origin.serve("/stall", Response(body: [1], ending: .stalledBeforeHead))
            let lines = ["/500", "/404", "/stall"].map(origin.url)
            try await withWorkspace { workspace in
                try workspace.writeConfiguration(
                    """
                    [host."127.0.0.1"]
                    retry = 0
                    accept-status = "404"
                    stall-timeout = "1s"
                    user = "$LOGIN"
                    header = ["X-Token: $TOKEN"]
                    """)
                var command = try workspace.prefetchCommand(lines, ["--trust-project-config"])
                command.environment["LOGIN"] = "u:p"
                command.environment["TOKEN"] = "t0"
                let run = try workspace.finish(try await command.run())
                #expect(
                    run.report.verdicts == ["failed/http-status", "downloaded", "failed/stalled"],
                    "\(run.result)")
                #expect(run.report.entries.allSatisfy { $0.attempts == 1 })
                #expect(
                    origin.requests.allSatisfy {
                        $0.header("Authorization") == "Basic dTpw" && $0.header("X-Token") == "t0"
                    })
            }
        }
    }

    /// A pattern may have a port. `header` may be a secret, and stays at the listed origin.
    @Test func theFieldsOfAHostFollowRedirects() async throws {
        try await withOrigin { listed in
            try await withOrigin { target in
                target.serve("/i.png", .image(Fixtures.png(seed: 1)))
                listed.serve("/r", .redirect(to: target.url("/i.png")))
                try await withWorkspace { workspace in
                    func table(_ origin: Origin, _ name: String) -> String {
                        let authority = origin.url("").dropFirst("http://".count)
                        return """
                            [host."\(authority.prefix { $0 != "/" })"]
                            user-agent = "\(name)"
                            header = "X-Name: \(name)"
                            accept-formats = "\(name == "listed" ? "jpeg" : "png,jpeg")"

                            """
                    }
                    try workspace.writeConfiguration(
                        table(listed, "listed") + table(target, "target"))
                    let run = try await workspace.prefetch([listed.url("/r")])
                    #expect(run.summary.outcomes == ["downloaded": 1], "\(run.result)")
                    let requests = try [listed, target].map { try #require($0.requests.first) }
                    #expect(requests.map { $0.header("User-Agent") } == ["listed", "target"])
                    #expect(requests.map { $0.header("X-Name") } == ["listed", nil])
                    #expect(
                        requests.map { $0.header("Accept") } == [
                            "image/jpeg, */*;q=0.1", "image/png, image/jpeg, */*;q=0.1",
                        ])
                }
            }
        }
    }

    @Test func variablesMustBeSetAndProjectsMayNotUseThem() async throws {
        try await withWorkspace { workspace in
            let manifest = try workspace.manifest([])
            try workspace.writeConfiguration("[host.\"*\"]\nheader = [\"A: $MISSING_ONE\"]\n")
            let refused = try await workspace.run(manifest)
            #expect(refused.status != 0 && refused.error.contains("header"), "\(refused)")
            let unset = try await workspace.run(manifest, "--trust-project-config")
            #expect(unset.error.contains("MISSING_ONE is not set"), "\(unset)")
            // A stranger's file could send any variable to any host.
            for key in ["user-agent", "ttl", "accept-type"] {
                try workspace.writeConfiguration("[host.\"*\"]\n\(key) = \"$HOME\"\n")
                let refused = try await workspace.run(manifest)
                #expect(refused.status != 0 && refused.error.contains("'\(key)'"), "\(refused)")
                #expect(!refused.error.contains(workspace.folder + "'"), "\(refused)")
            }
            // Every mistake of a table is found.
            try workspace.writeConfiguration(
                """
                [host."a"]
                retry = -1
                host-concurrency = 0
                accept-status = "301"
                proxi = ""
                """)
            let keys = try await workspace.run("config", "check")
            #expect(keys.error.contains("prefetch.toml:5"), "\(keys)")
            try workspace.writeConfiguration(
                "[host.\"a\"]\nretry = -1\nhost-concurrency = 0\naccept-status = \"301\"\n")
            let values = try await workspace.run("config", "check")
            #expect(values.status == 64)
            for line in 2...4 {
                #expect(values.error.contains("prefetch.toml:\(line)"), "\(values)")
            }
        }
    }

    @Test func insecureIsForOneHostAndWarned() async throws {
        let authority = try await TestAuthority.shared()
        try await withOrigin(security: authority.security(.own)) { origin in
            origin.serve { _ in .image(Fixtures.png(seed: 1)) }
            let lines = [origin.url("/a", host: "localhost"), origin.url("/b")]
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                try workspace.writeConfiguration("[host.\"localhost\"]\ninsecure = true\n")
                let run = try await workspace.prefetch(lines, "--trust-project-config")
                #expect(run.report.verdicts == ["downloaded", "failed/tls"], "\(run.result)")
                #expect(run.result.error.contains("[host.\"localhost\"] insecure:"))
            }
        }
    }
}

import Foundation
import TestSupport
import Testing

/// A blacklist entry applies only to runs with the settings that caused it.
@Suite(.timeLimit(.minutes(15)))
struct BlacklistConditionTests {
    private static let control = ("Cache-Control", "max-age=3600")
    private static let picture = Fixtures.png(width: 600, height: 600, isNoise: true)

    /// A failing run, and a difference in another run over the same list.
    struct Change: CustomTestStringConvertible {
        let path: String
        var line = ""
        var options: [String] = []
        let reason: String
        /// Flags with which it is still blacklisted.
        var stricter: [String] = []
        var laterLine = ""
        var laterOptions: [String] = []

        var testDescription: String { "\(reason) \(line)\(options) → \(laterLine)\(laterOptions)" }
    }

    private static let changes = [
        Change(
            path: "/a.png", options: ["--max-filesize", "20KB"], reason: "too-large",
            stricter: ["--max-filesize", "10KB"]),
        Change(
            path: "/a.png", options: ["--max-pixels", "1000"], reason: "too-many-pixels",
            stricter: ["--max-pixels", "500"]),
        Change(
            path: "/animated.png", options: ["--animated", "refuse"], reason: "unsupported-image",
            stricter: ["--animated", "refuse", "--quality", "30"]),
        // The memory for a decode depends on the whole recipe.
        Change(
            path: "/large.png", options: ["--memory", "16MiB", "--effort", "small"],
            reason: "too-many-pixels", stricter: ["--memory", "16MiB", "--effort", "small"],
            laterOptions: ["--memory", "16MiB"]),
        Change(
            path: "/redirect.png", options: ["--max-redirects", "0"], reason: "redirect",
            stricter: ["--max-redirects", "0", "--max-filesize", "1GiB"]),
        Change(
            path: "/members.png", reason: "http-status", stricter: ["--quality", "30"],
            laterLine: " header=x-member:yes"),
        Change(
            path: "/members.png", reason: "http-status", stricter: ["--user-agent", "prefetch/99"],
            laterOptions: ["--header", "X-Member: yes"]),
        Change(
            path: "/members.png", reason: "http-status", stricter: ["--max-pixels", "900000"],
            laterOptions: ["--user", "me:secret"]),
    ]

    private func serve(_ origin: Origin) throws {
        let animated = try Fixtures.file("animated.png")
        let redirect = Response.redirect(to: origin.url("/a.png"))
        let large = Fixtures.png(width: 1_000, height: 1_000, isNoise: true)
        origin.serve { request in
            switch request.path {
            case "/a.png":
                .picture(BlacklistConditionTests.picture, BlacklistConditionTests.control)
            case "/animated.png": .picture(animated, BlacklistConditionTests.control)
            case "/redirect.png": redirect
            case "/large.png": .picture(large, BlacklistConditionTests.control)
            case "/members.png":
                request.header("X-Member") != nil || request.header("Authorization") != nil
                    ? .picture(BlacklistConditionTests.picture, BlacklistConditionTests.control)
                    : .notFound
            default: nil
            }
        }
    }

    @Test(arguments: changes)
    func differentSettingsIgnoreTheBlacklist(change: Change) async throws {
        try await withOrigin { origin in
            try serve(origin)
            let url = origin.url(change.path)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                func run(_ line: String, _ options: [String]) async throws -> Workspace.Run {
                    try await workspace.finish(
                        workspace.prefetchCommand([url + line], options).run(), entries: 1)
                }
                let first = try await run(change.line, change.options)
                #expect(first.report.verdicts == ["failed/\(change.reason)"], "\(first.result)")
                let requests = origin.requests.count
                for options in [change.options, change.stricter] {
                    let blacklisted = try await run(change.line, options)
                    #expect(blacklisted.report.verdicts == ["blacklisted"], "\(blacklisted.result)")
                }
                #expect(origin.requests.count == requests)
                let later = try await run(change.laterLine, change.laterOptions)
                #expect(later.report.verdicts == ["downloaded"], "\(later.result)")
            }
        }
    }

    /// Another cause, or a limit raised without success, confirms nothing.
    @Test func onlyTheSameCauseConfirms() async throws {
        try await withOrigin { origin in
            origin.serve(
                "/a.png", .picture(BlacklistConditionTests.picture, BlacklistConditionTests.control)
            )
            let url = origin.url("/a.png")
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                for (options, runs) in [
                    (["--max-filesize", "10KB"], "1"), (["--max-filesize", "20KB"], "1"),
                    (["--max-filesize", "20KB", "--retry-failed"], "2"),
                    (["--max-pixels", "100"], "1"),
                ] {
                    let run = try await workspace.finish(
                        workspace.prefetchCommand([url], options).run(), entries: 1)
                    #expect(run.summary["failed"] == 1, "\(run.result)")
                    #expect(
                        try await workspace.query("SELECT runs_in_a_row, former FROM failure")
                            == [[runs, nil]])
                }
            }
        }
    }

    /// The same file may now hold other credentials.
    @Test func changedCredentialsAreTried() async throws {
        try await withOrigin { origin in
            let secret = "Basic " + Data("me:right".utf8).base64EncodedString()
            origin.serve { request in
                request.header("Authorization") == secret
                    ? .picture(BlacklistConditionTests.picture, BlacklistConditionTests.control)
                    : .notFound
            }
            let url = origin.url("/a.png")
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                for (password, verdict) in [
                    ("wrong", "failed/http-status"), ("wrong", "blacklisted"),
                    ("right", "downloaded"),
                ] {
                    try workspace.write(
                        Array("machine 127.0.0.1 login me password \(password)\n".utf8),
                        to: "netrc")
                    let run = try await workspace.prefetch([url], "--netrc-file", "netrc")
                    #expect(run.report.verdicts == [verdict], "\(run.result)")
                }

                // No secret is stored.
                let run = try await workspace.prefetch(
                    [origin.url("/b.png") + " header=x-token:hunter2"], "--user", "me:hunter2")
                #expect(run.report.verdicts == ["failed/http-status"], "\(run.result)")
                let rows = try await workspace.query("SELECT conditions FROM failure")
                #expect(rows.count == 1)
                let text = try #require(rows.first?.first ?? nil)
                #expect(text.hasPrefix("request=") && !text.contains("hunter2"), "\(text)")
                // 32 bits for each of the settings.
                #expect(text.split(separator: " ").allSatisfy { $0.drop { $0 != "=" }.count <= 9 })
            }
        }
    }

    @Test func uncacheableURLIsRequestedWithTTL() async throws {
        try await withOrigin { origin in
            origin.serve(
                "/a.png", .picture(BlacklistConditionTests.picture, ("Cache-Control", "no-store")))
            let url = origin.url("/a.png")
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                for verdict in ["failed/uncacheable", "failed/uncacheable", "blacklisted"] {
                    let run = try await workspace.prefetch([url])
                    #expect(run.report.verdicts == [verdict], "\(run.result)")
                }
                let run = try await workspace.prefetch([url], "--ttl", "1h")
                #expect(run.report.verdicts == ["downloaded"], "\(run.result)")
            }
        }
    }

    /// Rows without settings, and with decoders of another version.
    @Test(arguments: [("NULL", "blacklisted"), ("'codecs=jpeg/0'", "downloaded")])
    func rowsOfOtherVersions(conditions: String, verdict: String) async throws {
        try await withOrigin { origin in
            let url = origin.url("/a.png")
            origin.serve(
                "/a.png", .image(Fixtures.damaged(BlacklistConditionTests.picture)),
                .image(Fixtures.png(seed: 1)))
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let first = try await workspace.prefetch([url])
                #expect(first.report.verdicts == ["failed/corrupt-image"], "\(first.result)")
                try await workspace.query("UPDATE failure SET conditions = \(conditions)")
                let second = try await workspace.prefetch([url])
                #expect(second.report.verdicts == [verdict], "\(second.result)")
            }
        }
    }
}

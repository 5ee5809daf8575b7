import TestSupport
import Testing

/// Runs of the command as a user types it, without any flag that makes it less patient.
@Suite(.timeLimit(.minutes(15)))
struct ShippedDefaultTests {
    private static let picture = Fixtures.png(width: 40, height: 40, isNoise: true)

    private func run(_ workspace: Workspace, _ lines: [String]) async throws -> Workspace.Run {
        let manifest = try workspace.manifest(lines)
        return try workspace.finish(
            await workspace.run(manifest, "--report", "report.jsonl"), entries: lines.count)
    }

    @Test func whatIsSoonOverIsRetriedAndWhatIsGoneIsNot() async throws {
        try await withOrigin { origin in
            let picture = ShippedDefaultTests.picture
            origin.serve("/good.png", .image(picture))
            origin.serve("/ill.png", .unavailable(500), .unavailable(503), .image(picture))
            origin.serve(
                "/cut.png", .image(picture, ending: .resetAfter(bodyBytes: 100)), .image(picture))
            origin.serve("/damaged.png", .image(Fixtures.damaged(picture)))
            let names = ["good", "ill", "cut", "damaged", "gone"]
            try await withWorkspace { workspace in
                let lines = names.map { origin.url("/\($0).png") }
                let first = try await run(workspace, lines)
                #expect(first.result.status == 1, "\(first.result)")
                #expect(
                    first.report.verdicts == [
                        "downloaded", "downloaded", "downloaded", "failed/corrupt-image",
                        "failed/http-status",
                    ], "\(first.result)")
                #expect(
                    names.map { origin.snapshot.count(of: "/\($0).png") } == [1, 3, 2, 1, 1],
                    "\(first.result)")
                // Warm images are not requested, and permanent failures are blacklisted.
                let second = try await run(workspace, lines)
                #expect(
                    second.summary.outcomes == ["fresh": 3, "blacklisted": 2], "\(second.result)")
                #expect(origin.requests.count == 8)
            }
        }
    }

    /// Three retries, each after a second at most, then two and four.
    @Test func whatStaysIllFailsAfterThreeRetries() async throws {
        try await withOrigin { origin in
            origin.serve("/ill.png", Response(500))
            try await withWorkspace { workspace in
                let run = try await run(workspace, [origin.url("/ill.png")])
                #expect(run.report.verdicts == ["failed/http-status"], "\(run.result)")
                #expect(run.report[line: 1]?.attempts == 4)
                #expect(origin.snapshot.count(of: "/ill.png") == 4)
                #expect(run.result.time < .seconds(7) * 1.5 + .seconds(10))
            }
        }
    }
}

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

    /// Three retries, each after a second at most, then two and four.
    @Test func whatIsSoonOverIsRetriedAndWhatIsGoneIsNot() async throws {
        try await withOrigin { origin in
            let picture = ShippedDefaultTests.picture
            origin.serve("/good.png", .image(picture))
            origin.serve("/ill.png", .unavailable(500), .unavailable(503), .image(picture))
            origin.serve(
                "/cut.png", .image(picture, ending: .resetAfter(bodyBytes: 100)), .image(picture))
            origin.serve("/damaged.png", .image(Fixtures.damaged(picture)))
            origin.serve("/always.png", Response(500))
            let names = ["good", "ill", "cut", "damaged", "gone", "always"]
            try await withWorkspace { workspace in
                // At a host of its own, since failures slow their host down.
                let lines =
                    names.dropLast().map { origin.url("/\($0).png") } + [
                        origin.url("/always.png", host: "always.localhost")
                    ]
                let first = try await run(workspace, lines)
                #expect(first.result.status == 1, "\(first.result)")
                #expect(
                    first.report.verdicts == [
                        "downloaded", "downloaded", "downloaded", "failed/corrupt-image",
                        "failed/http-status", "failed/http-status",
                    ], "\(first.result)")
                #expect(
                    names.map { origin.snapshot.count(of: "/\($0).png") } == [1, 3, 2, 1, 1, 4],
                    "\(first.result)")
                #expect(first.report[line: 6]?.attempts == 4)
                #expect(first.result.time < .seconds(7) * 1.5 + .seconds(10))
                // Warm images are not requested, and permanent failures are blacklisted.
                let second = try await run(workspace, Array(lines.dropLast()))
                #expect(
                    second.summary.outcomes == ["fresh": 3, "blacklisted": 2], "\(second.result)")
                #expect(origin.requests.count == 12)
            }
        }
    }
}

import TestSupport
import Testing

/// `ulimit -v`. Sanitizers reserve terabytes.
@Suite(.timeLimit(.minutes(15)), .enabled(if: !Sanitizer.isActive))
struct AddressSpaceTests {
    @Test(arguments: [150_000, 250_000, 300_000])
    func tooLittleIsOneErrorWithTheRemedy(kibibytes: Int) async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(3)
            try await withWorkspace { workspace in
                let list = try workspace.manifest(urls)
                func run(_ kibibytes: Int) async throws -> CommandResult {
                    var command = workspace.command([list])
                    command.arguments =
                        [
                            "-c", "ulimit -v \(kibibytes); exec \"$@\"", "sh", command.executable,
                        ] + command.arguments
                    command.executable = "/bin/sh"
                    return try await command.run()
                }
                let refused = try await run(kibibytes)
                #expect(refused.status == 2, "\(refused)")
                #expect(refused.error.hasPrefix("prefetch: memory: the limit of "), "\(refused)")
                #expect(origin.requests.isEmpty)
                let hint = try #require(
                    refused.error.firstMatch(of: /ulimit -v ([0-9]+)/).flatMap { Int($0.1) })
                let done = try await run(hint + 100)
                #expect(done.status == 0, "\(done)")
            }
        }
    }
}

import TestSupport
import Testing

/// Buckets that respond slowly or without end.
@Suite(.timeLimit(.minutes(15)))
struct SlowBucketTests {
    /// Commands that end soon with an error that names the bucket.
    private static let commands = [
        ["run", "manifest.txt", "--sink", "s3://b/p", "--timeout", "2s", "--stall-timeout", "1s"],
        ["pull", "s3://b/p"], ["get", "http://h.localhost/1.png", "--sink", "s3://b/p"],
    ]

    /// Runs a command that uses a bucket, and kills it after 8 seconds.
    private func run(
        _ arguments: [String], images: Int = 1, memory: Bool = false,
        _ alters: @escaping @Sendable (Origin.Request, Response) -> Response
    ) async throws -> CommandResult {
        try await withOrigin { bucketOrigin in
            let bucket = Bucket(on: bucketOrigin, alters: alters)
            defer { withExtendedLifetime(bucket) {} }
            return try await withOrigin { origin in
                let urls = (0..<images).map { index in
                    origin.serve("/\(index).png", .image(Fixtures.png(seed: index)))
                    return origin.url("/\(index).png")
                }
                return try await withWorkspace(measuresMemory: memory) { workspace in
                    try workspace.manifest(urls)
                    var command = workspace.command(arguments + ["--sink-credentials", "none"])
                    command.environment.merge(Bucket.environment(bucketOrigin)) { $1 }
                    command.timeLimit = .seconds(8)
                    return try await command.run()
                }
            }
        }
    }

    private func expectEnd(_ result: CommandResult, _ statuses: Set<Int32>) {
        #expect(!result.hasTimedOut && result.status.map(statuses.contains) == true, "\(result)")
        #expect(result.error.contains("s3://b"), "\(result)")
    }

    private enum Fault: CaseIterable {
        /// A trailer of 1 KB, again and again.
        case endlessTrailers
        /// A field of 1 KB, again and again.
        case endlessHead
        /// A byte every tenth of a second, which does not count as a stall.
        case drip

        func alter(_ answer: Response) -> Response {
            var answer = answer
            switch self {
            case .endlessTrailers:
                (answer.framing, answer.ending) = (.chunked, .endlessTrailers)
            case .endlessHead:
                answer.headers.insert(("X-Field", String(repeating: "x", count: 1000)), at: 0)
                answer.ending = .endlessHead
            case .drip:
                answer.body = Array(repeating: UInt8(ascii: " "), count: 100_000)
                answer.drip = (1, .milliseconds(100))
            }
            return answer
        }
    }

    @Test(arguments: commands, Fault.allCases)
    private func answersAreLimited(command: [String], fault: Fault) async throws {
        let result = try await run(command, memory: true) { fault.alter($1) }
        expectEnd(result, [2, 3])
        #expect((result.peakMemoryInBytes ?? 0) < 100_000_000, "\(result)")
    }

    /// Each file takes half a second, or does not end. `--until` is a deadline, to the minute.
    /// `pull` takes the limits of a run.
    @Test(arguments: [["--deadline", "2s"], ["--timeout", "1s"], ["--stall-timeout", "1s"]])
    func limitsOfARunHoldForBuckets(limit: [String]) async throws {
        let isDeadline = limit[0] == "--deadline"
        let upload = try await run(
            ["run", "manifest.txt", "--sink", "s3://b/p"] + limit, images: isDeadline ? 200 : 1
        ) { request, answer in
            var answer = answer
            if request.method == "PUT" {
                if isDeadline {
                    answer.delayBeforeHead = .milliseconds(500)
                } else {
                    answer.ending = .stalledBeforeHead
                }
            }
            return answer
        }
        expectEnd(upload, isDeadline ? [3] : [1, 2, 3])
        let pull = try await run(["pull", "s3://b/p"] + limit) { _, answer in
            var answer = answer
            answer.ending = .stalledInsideHead
            return answer
        }
        expectEnd(pull, [2, 3])
    }
}

import SeededRandom
import TestSupport
import Testing

/// Lines of the same key.
@Suite(.timeLimit(.minutes(15)))
struct DuplicateTests {
    private static let control = ("Cache-Control", "max-age=3600")

    private func serve(_ origin: Origin, _ count: Int) -> [String] {
        (0..<count).map { number in
            origin.serve(
                "/\(number).png",
                .picture(Fixtures.png(seed: number), DuplicateTests.control))
            return origin.url("/\(number).png")
        }
    }

    /// The stored image would be wrong for one of them.
    @Test(arguments: [
        (" key=logo", 1, " key=logo"), ("", 0, " header=x-a:1"), (" header=x-a:1", 0, ""),
        (" header=x-a:1", 0, " header=x-a:2"),
    ])
    func linesOfOneKeyThatDifferAreRefused(
        first: String, url: Int, second: String
    ) async throws {
        try await withOrigin { origin in
            let urls = serve(origin, 2)
            let lines = [urls[0] + first, "# between", urls[url] + second, urls[0] + first]
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let name = try workspace.manifest(lines)
                func run() async throws -> Workspace.Run {
                    let result = try await workspace.run(
                        name, "--report", "r", "--retry", "0", "-j", "1")
                    return try workspace.finish(result, entries: 3)
                }
                let cold = try await run()
                #expect(
                    cold.report.verdicts.sorted() == [
                        "downloaded", "duplicate", "failed/invalid-entry",
                    ], "\(cold.result)")
                let refused = try #require(
                    cold.report.entries.first { $0.reason == "invalid-entry" })
                #expect(refused.line == 3 && cold.result.status == 1)
                let message = try #require(refused.message)
                #expect(message.hasPrefix("manifest.txt:3: same key as manifest.txt:1"))
                let owner = "which is that of \(urls[0])"
                #expect(message.hasSuffix(owner) == (url == 1), "\(message)")
                #expect(origin.requests.count == 1)
                // A run over a warm list says the same.
                let warm = try await run()
                #expect(
                    warm.report.verdicts.sorted() == [
                        "duplicate", "failed/invalid-entry", "fresh",
                    ], "\(warm.result)")
                #expect(warm.result.status == 1 && origin.requests.count == 1)
            }
        }
    }

    /// A key alone finds nothing, in any command.
    @Test func theImageOfAnotherURLIsNotAnswered() async throws {
        try await withOrigin { origin in
            let urls = serve(origin, 3)
            let lines = urls.map { "\($0) key=logo" }
            try await withWorkspace { workspace in
                func batch(_ arguments: String..., line: String) async throws -> CommandResult {
                    var command = workspace.command(arguments + ["--batch"])
                    command.input = .bytes(Array("\(line)\n".utf8))
                    return try await command.run()
                }
                _ = try await workspace.prefetch([lines[0]])
                // A query may differ; a line of the key as its URL may not.
                let signed = try await workspace.prefetch(["\(urls[0])?sig=2 key=logo"])
                #expect(signed.report.verdicts == ["fresh"], "\(signed.result)")
                let mirror = "\(urls[2]) url=\(urls[0]) key=logo"
                let mirrored = try await workspace.prefetch([mirror])
                #expect(mirrored.report.verdicts == ["fresh"], "\(mirrored.result)")
                #expect(origin.requests.count == 1)

                #expect(try await batch("get", line: lines[1]).output == "-\n")
                let removal = try await batch("remove", line: lines[1])
                #expect(removal.status == 1 && removal.error.contains("not in the cache"))
                let list = try workspace.manifest([lines[1]], name: "other.txt")
                let export = try await workspace.run("export", "e", list, "--layout", "mirror")
                let reason = "its key 'logo' has the image of \(urls[0])"
                #expect(export.error.contains(reason), "\(export)")
                let offline = try await workspace.prefetch([lines[1]], "--offline")
                #expect(offline.summary["excluded"] == 1, "\(offline.result)")

                let other = try await workspace.prefetch([lines[1]])
                #expect(other.report.verdicts == ["downloaded"], "\(other.result)")
                #expect(other.result.error.contains(": \(reason)\n"), "\(other.result)")
                #expect(origin.requests.count == 2)
                #expect(origin.requests.last?.header("If-None-Match") == nil)
                #expect(try await batch("get", line: lines[1]).status == 0)
                #expect(try await batch("get", line: lines[0]).status == 1)
                let last = try workspace.manifest([lines[2]], name: "last.txt")
                let seeded = try await workspace.run(
                    last, "--cache-dir", "other", "--seed-cache", workspace.cache)
                #expect(seeded.error.contains("1 downloaded"), "\(seeded)")
                #expect(origin.requests.count == 3)
            }
        }
    }

    @Test func linesThatAskForTheSameAreDuplicates() async throws {
        try await withOrigin { origin in
            let urls = serve(origin, 5)
            let url = urls[4]
            try await withWorkspace { workspace in
                // A duplicate of higher priority raises the entry. In LIFO order everything is read
                // before the first start.
                let run = try await workspace.prefetch(
                    urls[..<4] + [urls[1] + " priority=high", urls[2] + " priority=low"],
                    "--order", "lifo", "--host-concurrency", "1")
                let starts = run.report.entries.filter { $0.start != nil }
                    .sorted { ($0.start ?? 0) < ($1.start ?? 0) }
                #expect(starts.map(\.line) == [2, 4, 3, 1], "\(run.result)")
                #expect(run.summary["downloaded"] == 4 && run.summary["duplicate"] == 2)

                let lines = [
                    url + " key=logo header=x-a:1", url + " header=x-a:1 key=logo ttl=1h",
                    url + " key=other", url + " key=other attr.a=b",
                    // A key that says nothing else, and fields in another order and spelling.
                    url, url + " key=\(url)",
                    url + " key=third header=X-A:1 header=x-b:2",
                    url + " key=third header=x-b:2 header=x-a:1",
                ]
                for first in ["downloaded", "fresh"] {
                    let run = try await workspace.prefetch(lines)
                    #expect(run.summary[first] == 4, "\(run.result)")
                    #expect(run.summary["duplicate"] == 4, "\(run.result)")
                }
            }
        }
    }

    /// Raised, spilled, redirected, failed and retried entries: each line has its one outcome,
    /// and each image one download.
    @Test(arguments: ["fifo", "lifo"], ["3", "40", "1000"])
    func everyLineHasOneOutcome(order: String, capacity: String) async throws {
        try await withOrigin { origin in
            var urls = serve(origin, 40)
            for number in 0..<10 {
                origin.serve("/moved/\(number)", .redirect(to: urls[number]))
                urls.append(origin.url("/moved/\(number)"))
                origin.serve(
                    "/ill/\(number)", .unavailable(500),
                    .picture(Fixtures.png(seed: 100 + number), DuplicateTests.control))
                urls.append(origin.url("/ill/\(number)"))
                urls.append("http://127.0.0.1:9/\(number)")
            }
            var random = SplitMix(seed: 7)
            var lines = urls
            for _ in 0..<300 {
                let priority = Int.random(in: -100...100, using: &random)
                lines.append(
                    (urls.randomElement(using: &random) ?? "") + " priority=\(priority)")
            }
            try await withWorkspace(
                without: [.retries, .probes, .stalls]
            ) { [lines, urls] workspace in
                let run = try await workspace.finish(
                    workspace.prefetchCommand(
                        lines,
                        [
                            "--order", order, "--queue-capacity", capacity, "--retry", "2",
                            "--retry-delay", "10ms", "-j", "4", "--host-concurrency", "2",
                        ]
                    ).run(), entries: lines.count)
                #expect(run.summary["downloaded"] == 60, "\(run.result)")
                #expect(run.summary["failed"] == 10, "\(run.result)")
                #expect(run.summary["duplicate"] == lines.count - urls.count)
                for number in 10..<40 {
                    #expect(origin.requests.count { $0.path == "/\(number).png" } == 1)
                }
            }
        }
    }
}

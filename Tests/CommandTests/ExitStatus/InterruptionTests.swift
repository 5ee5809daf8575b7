import Glibc
import SeededRandom
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15)))
struct InterruptionTests {
    /// Four pictures that arrive, and eight that the gate holds.
    private func serve(_ origin: Origin, _ gate: Gate) -> [String] {
        (0..<12).map { index in
            let picture = Fixtures.png(width: 12, height: 12, seed: index)
            origin.serve("/\(index)", .image(picture, gate: index < 4 ? nil : gate))
            return origin.url("/\(index)")
        }
    }

    /// Starts a run and returns after four responses, with four entries held.
    private func startMidway(
        _ workspace: Workspace, _ origin: Origin, _ lines: [String]
    ) async throws -> RunningCommand {
        let running = try workspace.prefetchCommand(lines, ["-j", "4", "--summary", "json"]).start()
        try await origin.wait(for: "four held") { $0.inFlight == 4 && $0.answered == 4 }
        return running
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func aSignalEndsTheRunWithItsSummaryAndTheNextRunCompletes(signal: Int32) async throws {
        try await withOrigin { origin in
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let gate = Gate()
                let lines = serve(origin, gate)
                let running = try await startMidway(workspace, origin, lines)
                running.signal(signal)
                let first = try workspace.finish(await running.wait(), entries: 12)
                #expect(first.result.signal == signal, "\(first.result)")
                #expect(first.result.time < .seconds(12))
                #expect(first.summary["cancelled"] == 8, "\(first.result)")
                #expect(first.summary["downloaded"] == 4, "\(first.result)")
                let printed = try Report.Summary(json: first.result.output)
                #expect(printed.outcomes == first.summary.outcomes)
                #expect(try await workspace.judge() == 4)

                gate.open()
                let second = try await workspace.prefetch(lines)
                #expect(second.result.status == 0, "\(second.result)")
                #expect(second.summary.outcomes == ["fresh": 4, "downloaded": 8])
            }
        }
    }

    /// A black picture of 30 000 × 400 pixels; each row takes a tenth of a second with the
    /// preloaded decoder.
    private static let slowPicture: [UInt8] = {
        let mark = "\nFaultyJPEG: slow\n"
        let comment = [0xFF, 0xFE, 0, UInt8(mark.utf8.count + 2)] + Array(mark.utf8)
        let quantisation = [0xFF, 0xDB, 0, 67, 0] + [UInt8](repeating: 1, count: 64)
        let frame: [UInt8] =
            [0xFF, 0xC0, 0, 11, 8]
            + [400, 30_000].flatMap { side -> [UInt8] in
                [UInt8(side >> 8), UInt8(side & 255)]
            }
        // One code of one bit each: "no difference" and "end of block".
        let codes = [UInt8(1)] + [UInt8](repeating: 0, count: 15) + [0]
        let tables = [0xFF, 0xC4, 0, 38, 0x00] + codes + [0x10] + codes
        let blocks = 30_000 / 8 * 400 / 8
        var file: [UInt8] = [0xFF, 0xD8]
        file += comment + quantisation + frame + [1, 1, 0x11, 0] + tables
        file += [0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0]
        return file + [UInt8](repeating: 0, count: blocks / 4) + [0xFF, 0xD9]
    }()

    /// Work that takes less than five seconds is finished; a decode of forty is cancelled.
    @Test(.enabled(if: !Sanitizer.isActive, "a sanitizer is loaded first"))
    func aDecodeThatTakesLongIsCancelled() async throws {
        try await withOrigin { origin in
            origin.serve("/slow.jpg", .image(InterruptionTests.slowPicture))
            let lines = [origin.url("/slow.jpg")]
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                // The decoder writes to the standard error of its process.
                let command = try workspace.prefetchCommand(
                    lines, ["--encode", "png", "--sandbox", "off"])
                let running = try CrashTests.faulty(command).start()
                try await eventually("the decode has begun") {
                    running.errorSoFar.contains("FaultyJPEG: slow")
                }
                let before = ContinuousClock.now
                running.signal(SIGINT)
                let run = try workspace.finish(await running.wait(), entries: 1)
                let time = ContinuousClock.now - before
                #expect(run.result.signal == SIGINT, "\(run.result)")
                #expect(run.report.verdicts == ["cancelled"], "\(run.result)")
                #expect(time > .seconds(4) && time < .seconds(10), "\(time)")
                let failures = try await workspace.run("failed", "list")
                #expect(failures.output.isEmpty, "\(failures)")
                #expect(try await workspace.judge() == 0)

                let next = try await workspace.finish(
                    workspace.prefetchCommand(lines, ["--encode", "png"]).run(), entries: 1)
                #expect(next.report.verdicts == ["downloaded"], "\(next.result)")
                #expect(try await workspace.judge() == 1)
            }
        }
    }

    @Test func nohupKeepsTheRunAlive() async throws {
        try await withOrigin { origin in
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let gate = Gate()
                let lines = serve(origin, gate)
                var command = try workspace.prefetchCommand(lines, ["-j", "4"])
                command.arguments = [command.executable] + command.arguments
                command.executable = "/usr/bin/nohup"
                let running = try command.start()
                try await origin.wait(for: "four held") { $0.inFlight == 4 && $0.answered == 4 }
                running.signal(SIGHUP)
                try await running.waitUntilTaken(SIGHUP)
                gate.open()
                let result = await running.wait()
                #expect(result.status == 0, "\(result)")
                #expect(try await workspace.judge() == 12)
            }
        }
    }

    /// Interrupts a run twice, and expects that the second one ends it.
    private func interruptTwice(_ running: RunningCommand) async throws {
        let before = ContinuousClock.now
        running.signal(SIGINT)
        try await running.waitUntilTaken(SIGINT)
        // Sooner it counts as the same.
        try await eventually("0.2 s have passed") {
            ContinuousClock.now - before > .milliseconds(200)
        }
        running.signal(SIGINT)
        let result = await running.wait()
        #expect(result.signal == SIGINT, "\(result)")
        #expect(ContinuousClock.now - before < .seconds(3))
    }

    @Test func aSecondInterruptEndsAtOnce() async throws {
        try await withOrigin { origin in
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let gate = Gate()
                let lines = serve(origin, gate)
                let running = try await startMidway(workspace, origin, lines)
                try await interruptTwice(running)
                gate.open()
                let second = try await workspace.prefetch(lines)
                #expect(second.summary["fresh"] + second.summary["downloaded"] == 12)
            }
        }
    }

    /// Runs over one cache, each ended after a random number of further answers: with a report and
    /// without one they account for every line, and the last one completes the cache.
    @Test func interruptsAtAnyMomentLoseNothing() async throws {
        let seed = UInt64.random(in: 0...1_000_000)
        var random = SplitMix(seed: seed)
        try await withOrigin { origin in
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let picture = Fixtures.png(width: 3, height: 2, seed: 1)
                origin.serve { $0.path.hasPrefix("/i/") ? .image(picture) : nil }
                var lines = (0..<6000).map { origin.url("/i/\($0)") }
                // Some of these later lines of keys raise their entries.
                lines += (0..<600).map { origin.url("/i/\($0 * 7)") + " priority=\($0 % 3 - 1)" }
                var interrupted = 0
                for number in 0..<20 {
                    // A fast machine answers far more than the next moment needs.
                    if origin.snapshot.answered > 5000 { break }
                    let order = ["fifo", "lifo", "random"][number % 3]
                    let options = ["--order", order, "--queue-capacity", "50", "--retry", "0"]
                    let isReported = number % 2 == 0
                    let running =
                        try isReported
                        ? workspace.prefetchCommand(lines, options).start()
                        : workspace.command(
                            [
                                workspace.manifest(lines, name: "list.txt"), "-q", "--summary",
                                "json",
                            ]
                                + options
                        ).start()
                    let answers = origin.snapshot.answered + Int.random(in: 1...300, using: &random)
                    try await origin.wait(for: "a moment of run \(number)") {
                        $0.answered >= answers
                    }
                    running.signal(SIGINT)
                    let result = await running.wait()
                    #expect(result.signal == SIGINT, "seed \(seed), run \(number): \(result)")
                    // Both check that rows and outcomes agree.
                    let summary =
                        try isReported
                        ? workspace.finish(result, entries: lines.count).summary
                        : Report.Summary(json: result.output)
                    #expect(summary.entries == lines.count, "seed \(seed), run \(number)")
                    #expect(summary["failed"] == 0, "seed \(seed), run \(number)")
                    interrupted += summary["cancelled"]
                }
                #expect(interrupted > 5_000)
                let last = try await workspace.prefetch(lines)
                #expect(last.result.status == 0, "\(last.result)")
                #expect(last.summary["fresh"] + last.summary["downloaded"] == 6000)
                #expect(try await workspace.judge() == 6000)
            }
        }
    }

    /// The first interrupt leaves hundreds of thousands of rows to be written.
    @Test func aSecondInterruptEndsALongRunAtOnce() async throws {
        try await withOrigin { origin in
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let gate = Gate()
                origin.serve { _ in .image(Fixtures.png(width: 2, height: 2, seed: 1), gate: gate) }
                let lines = (0..<400_000).map { origin.url("/\($0)") }
                let running = try workspace.prefetchCommand(
                    lines, ["-j", "4", "--order", "lifo"]
                ).start()
                try await origin.wait(for: "four held") { $0.inFlight == 4 }
                try await interruptTwice(running)
                gate.open()
            }
        }
    }

    @Test func aKilledRunLeavesACacheThatTheNextOneCompletes() async throws {
        try await withOrigin { origin in
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let gate = Gate()
                let lines = serve(origin, gate)
                for _ in 0..<3 {
                    // Images of the last run are fresh, so each run requests fewer.
                    let running = try workspace.prefetchCommand(lines, ["-j", "4"]).start()
                    try await origin.wait(for: "four held") { $0.inFlight == 4 }
                    running.signal(SIGKILL)
                    let result = await running.wait()
                    #expect(result.signal == SIGKILL, "\(result)")
                    try await origin.wait(for: "its connections' ends") { $0.inFlight == 0 }
                }
                // Files that a kill at another moment would have left.
                let stray = "content/00/" + String(repeating: "0", count: 64) + ".png"
                let plant = Command(
                    executable: "/bin/sh",
                    arguments: [
                        "-c", "umask 077; mkdir -p content/00; echo x >\(stray); echo x >tmp/left",
                    ],
                    environment: ["PATH": "/bin:/usr/bin"], folder: workspace.cache)
                #expect(try await plant.run().status == 0)
                gate.open()
                // They are gone, by the judge.
                let last = try await workspace.prefetch(lines)
                #expect(last.result.status == 0, "\(last.result)")
                #expect(last.summary["fresh"] + last.summary["downloaded"] == 12)
                #expect(try await workspace.judge() == 12)
            }
        }
    }

    @Test func anotherRunOverTheSameCacheExits75() async throws {
        try await withOrigin { origin in
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let gate = Gate()
                let lines = serve(origin, gate)
                let running = try await startMidway(workspace, origin, lines)
                try workspace.manifest(lines, name: "second")
                for options in [[], ["--lock", "fail"]] {
                    let second = try await workspace.command(["second"] + options).run()
                    #expect(second.status == 75, "\(second)")
                    #expect(second.error.contains("prefetch: "), "\(second)")
                }
                #expect(origin.requests.count == 8)
                // Readers need no lock.
                let list = try await workspace.run("list")
                #expect(list.status == 0, "\(list)")
                // A run that waits has taken nothing over yet: the first interrupt ends it.
                let waiting = try workspace.prefetchCommand(lines, ["--lock", "wait"]).start()
                try await eventually("the second run hears signals itself") {
                    waiting.blocks(SIGINT)
                }
                waiting.signal(SIGINT)
                #expect(await waiting.wait().signal == SIGINT)
                gate.open()
                let run = try workspace.finish(await running.wait(), entries: 12)
                #expect(run.summary["downloaded"] == 12, "\(run.result)")
            }
        }
    }
}

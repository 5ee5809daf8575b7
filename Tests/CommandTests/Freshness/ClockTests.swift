import Foundation
import TestSupport
import Testing

/// A wall clock that is set forward or back, before or during a run.
@Suite(
    .timeLimit(.minutes(15)),
    .enabled(if: FakeClock.isAvailable, "libfaketime is not there, or a sanitizer is"))
struct ClockTests {
    private static let offsets = ["+1h", "-1h", "+10y", "-10y"]

    /// Fresh for a day, then validated for another one.
    private func serve(_ origin: Origin, _ count: Int, gate: Gate? = nil) -> [String] {
        (0..<count).map { index in
            let held = index < count / 2 ? nil : gate
            origin.serve(
                "/\(index).png",
                .picture(
                    Fixtures.png(seed: index), ("Cache-Control", "max-age=86400"),
                    ("ETag", "\"\(index)\""), gate: held),
                .notModified)
            return origin.url("/\(index).png")
        }
    }

    private func run(
        _ workspace: Workspace, _ lines: [String], clock: String, _ options: [String] = []
    ) async throws -> Workspace.Run {
        let clock = try FakeClock(workspace, clock)
        let running = try clock.start(workspace.prefetchCommand(lines, options))
        return try workspace.finish(await clock.wait(running), entries: lines.count)
    }

    /// An hour changes nothing. A copy from the future is stale, and so is one that is years old;
    /// neither stays fresh once the clock is right again. A failure from the future is ignored, and
    /// one that is years old has expired.
    @Test(arguments: offsets)
    func aStepOfYearsMakesCopiesStale(clock: String) async throws {
        try await withOrigin { origin in
            let isShort = clock.hasSuffix("h")
            let lines = serve(origin, 4) + (isShort ? [] : [origin.url("/gone")])
            try await withWorkspace { workspace in
                let started = Int(Date().timeIntervalSince1970 * 1000)
                _ = try await run(workspace, lines, clock: "+0")
                for clock in [clock, "+0"] {
                    let asked = try await run(workspace, lines, clock: clock)
                    #expect(
                        asked.summary.outcomes
                            == (isShort ? ["fresh": 4] : ["revalidated": 4, "failed": 1]),
                        "\(asked.result)")
                    let settled = try await run(workspace, lines, clock: clock)
                    #expect(
                        settled.summary.outcomes
                            == (isShort ? ["fresh": 4] : ["fresh": 4, "blacklisted": 1]),
                        "\(settled.result)")
                    // Otherwise this would pass without testing anything.
                    guard clock == "+10y" else { continue }
                    let found = try await workspace.query(
                        "SELECT (max(validated_at) - \(started)) / 86400000 FROM resource")
                    let days = try #require(Int(found[0][0] ?? ""))
                    #expect((3649...3655).contains(days))
                }
                #expect(origin.requests.count == (isShort ? 4 : 15))
            }
        }
    }

    /// Images with a lifetime of 90 minutes, read every hour. Only the first runs do not know yet
    /// when the next one is. Queries in between do not count.
    @Test(arguments: ["list.txt", "-"])
    func regularRunsRefreshImagesBeforeTheyExpire(list: String) async throws {
        try await withOrigin { origin in
            let url = origin.url("/a.png")
            origin.serve(
                "/a.png",
                .picture(
                    Fixtures.png(seed: 1), ("Cache-Control", "max-age=5400"), ("ETag", "\"1\"")),
                .notModified)
            try await withWorkspace { workspace in
                try workspace.manifest([url], name: "list.txt")
                func run(_ minute: Int, _ arguments: String...) async throws -> CommandResult {
                    let clock = try FakeClock(workspace, "+\(minute)m")
                    var command = workspace.command(arguments)
                    if list == "-" { command.input = .bytes(Array("\(url)\n".utf8)) }
                    return await clock.wait(try clock.start(command))
                }
                for hour in 0..<8 {
                    let warmed = try await run(60 * hour, list, "-v")
                    #expect(warmed.status == 0, "\(warmed)")
                    #expect(
                        warmed.error.contains("these manifests are read every 1 h") == (hour > 1),
                        "\(warmed)")
                    _ = try await run(60 * hour + 20, list, "--offline")
                    let get = try await run(60 * hour + 59, "get", url)
                    #expect(get.status == (hour == 1 ? 1 : 0), "hour \(hour): \(get)")
                }
                let offline = try await run(8 * 60, list, "--offline")
                #expect(offline.status == 0, "\(offline)")
                let requests = origin.requests.count
                let off = try await run(8 * 60, list, "--ahead", "0")
                #expect(off.error.contains("1 fresh"), "\(off)")
                #expect(origin.requests.count == requests)
            }
        }
    }

    @Test(arguments: offsets)
    func stepDuringARunHasNoEffect(step: String) async throws {
        try await withOrigin { origin in
            let gate = Gate()
            let lines = serve(origin, 8, gate: gate)
            try await withWorkspace(without: [.stalls]) { workspace in
                let clock = try FakeClock(workspace, "+0")
                let running = try clock.start(workspace.prefetchCommand(lines))
                try await origin.wait(for: "four held") { $0.answered == 4 && $0.inFlight == 4 }
                try await eventually("four are committed") {
                    try await workspace.query("SELECT count(*) FROM resource") == [["4"]]
                }
                try clock.set(step)
                gate.open()
                let first = try workspace.finish(await clock.wait(running), entries: 8)
                #expect(first.summary.outcomes == ["downloaded": 8], "\(first.result)")
                #expect(first.result.status == 0)

                let next = try await run(workspace, lines, clock: "+0")
                let wanted = step.hasSuffix("h") ? ["fresh": 8] : ["fresh": 4, "revalidated": 4]
                #expect(next.summary.outcomes == wanted, "\(next.result)")
                let last = try await run(workspace, lines, clock: "+0")
                #expect(last.summary.outcomes == ["fresh": 8], "\(last.result)")
            }
        }
    }

    @Test(arguments: ["+10y", "-10y"])
    func timeoutIgnoresClockSteps(step: String) async throws {
        try await withOrigin { origin in
            let url = origin.url("/a.png")
            origin.serve(
                "/a.png", .image(Fixtures.png(), ending: .stalledAfter(bodyBytes: 20)))
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let clock = try FakeClock(workspace, "+0")
                let running = try clock.start(
                    workspace.prefetchCommand([url], ["--stall-timeout", "1s"]))
                try await origin.wait(for: "the request") { $0.requests.count == 1 }
                try clock.set(step)
                let result = try workspace.finish(await clock.wait(running), entries: 1)
                #expect(result.report.verdicts == ["failed/stalled"], "\(result.result)")
                #expect(result.result.time > .milliseconds(900), "\(result.result)")
                #expect(result.result.time < .seconds(20), "\(result.result)")
            }
        }
    }
}

/// A wall clock of its own for a program, by libfaketime; monotonic clocks are unchanged.
private struct FakeClock {
    private static let library: String? = {
        let root = "/usr/lib"
        let folders = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
        return (folders.map { "\(root)/\($0)/faketime" } + ["\(root)/faketime"])
            .map { "\($0)/libfaketimeMT.so.1" }
            .first(where: FileManager.default.fileExists(atPath:))
    }()

    /// A sanitizer's own library would have to be loaded first.
    static var isAvailable: Bool { library != nil && !Sanitizer.isActive }

    private let file: URL

    /// Starts with a clock that is off by `offset`, like `-10y`.
    init(_ workspace: Workspace, _ offset: String) throws {
        file = URL(filePath: workspace.folder).appending(path: "clock")
        try set(offset)
    }

    /// Changes the clock, also of a running program.
    func set(_ offset: String) throws {
        try Data("\(offset)\n".utf8).write(to: file, options: .atomic)
    }

    func start(_ command: Command) throws -> RunningCommand {
        var command = command
        // The library adds a variable to the first program's environment, which moves it; but
        // Swift's runtime expects the arguments directly before the environment.
        command.arguments.insert(command.executable, at: 0)
        command.executable = "/usr/bin/env"
        command.environment["LD_PRELOAD"] = FakeClock.library
        command.environment["FAKETIME_TIMESTAMP_FILE"] = file.path
        command.environment["FAKETIME_NO_CACHE"] = "1"
        command.environment["FAKETIME_DONT_FAKE_MONOTONIC"] = "1"
        return try command.start()
    }

    /// Waits for the program's end, and removes the library's shared memory.
    func wait(_ running: RunningCommand) async -> CommandResult {
        let result = await running.wait()
        for name in ["faketime_shm_", "sem.faketime_sem_"] {
            try? FileManager.default.removeItem(atPath: "/dev/shm/\(name)\(running.process)")
        }
        return result
    }
}

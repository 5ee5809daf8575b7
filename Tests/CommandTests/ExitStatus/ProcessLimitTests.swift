import Foundation
import Glibc
import TestSupport
import Testing

/// Limits of open files and threads, and the ways a process ends.
@Suite(.timeLimit(.minutes(15)))
struct ProcessLimitTests {
    /// Runs with a hard and soft limit of open files.
    private static func limited(_ command: Command, openFiles: Int) -> Command {
        wrapped(command, ["/usr/bin/prlimit", "--nofile=\(openFiles):\(openFiles)"])
    }

    private static func wrapped(_ command: Command, _ words: [String]) -> Command {
        var command = command
        command.arguments = words.dropFirst() + [command.executable] + command.arguments
        command.executable = words[0]
        return command
    }

    private static func tracer(_ options: [String]) -> [String] {
        ["/usr/bin/strace", "-f", "-o", "trace.txt"] + options
    }

    /// Some systems forbid tracing.
    static let allowsTracing: Bool = {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/strace")
        process.arguments = ["-o", "/dev/null", "/bin/true"]
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }()

    /// Swift's library finds the arguments there, and the program without it.
    @Test(
        .enabled(if: Namespace.allowsMounts, "nothing can be mounted over /proc here"),
        .disabled(if: Sanitizer.isActive, "sanitizers need /proc themselves"))
    func argumentsArriveWithoutProc() async throws {
        try await withWorkspace { workspace in
            let command = ProcessLimitTests.wrapped(
                workspace.command(["--version"]),
                [
                    Namespace.program, "-rm", "/bin/sh", "-c",
                    #"mount -t tmpfs tmpfs /proc && exec "$0" "$@""#,
                ])
            let result = try await command.run()
            #expect(result.status == 0, "\(result)")
            #expect(result.output.hasPrefix("prefetch "), "\(result)")
        }
    }

    // MARK: Open files

    @Test(.enabled(if: !Sanitizer.isActive, "sanitizers open files"), arguments: [31, 64, 128])
    func aRunFitsItsLimitOfOpenFiles(limit: Int) async throws {
        try await withOrigin { origin in
            let lines = origin.serveImages(300)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let command = try workspace.prefetchCommand(
                    lines, ["--queue-capacity", "50", "--host-concurrency", "32"])
                let first = try await workspace.finish(
                    ProcessLimitTests.limited(command, openFiles: limit).run(), entries: 300)
                #expect(first.result.status == 0, "\(first.result)")
                #expect(first.summary.outcomes == ["downloaded": 300], "\(first.result)")
                let second = try await workspace.finish(
                    ProcessLimitTests.limited(workspace.prefetchCommand(lines), openFiles: limit)
                        .run(), entries: 300)
                #expect(second.summary.outcomes == ["fresh": 300], "\(second.result)")
            }
        }
    }

    /// Either there are enough or the limit is said by name.
    @Test(.enabled(if: !Sanitizer.isActive, "sanitizers open files"), arguments: 4...25)
    func tooFewOpenFilesAreSaidByName(limit: Int) async throws {
        try await withOrigin { origin in
            let lines = origin.serveImages(10)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let result = try await ProcessLimitTests.limited(
                    workspace.prefetchCommand(lines), openFiles: limit
                ).run()
                #expect([0, 2].contains(result.status), "\(result)")
                if result.status == 2 {
                    #expect(result.error.contains("open files: the limit of \(limit) leaves"))
                    #expect(result.error.contains("hint: raise the limit: ulimit -n 64"))
                    _ = try await workspace.prefetch(lines)
                }
                // From there on there are enough for all of them.
                guard limit <= 16 else { return }
                for arguments in [
                    ["list"], ["stats"], ["get", lines[0]], ["attr", "set", lines[0], "a", "b"],
                    ["attr", "list", lines[0]], ["failed", "list"], ["failed", "clear"],
                ] {
                    let result = try await ProcessLimitTests.limited(
                        workspace.command(arguments), openFiles: limit
                    ).run()
                    #expect([0, 2].contains(result.status), "\(result)")
                    #expect(result.status == 0 || result.error.contains("open files"), "\(result)")
                    if limit == 16 { #expect(result.status == 0, "\(result)") }
                }
            }
        }
    }

    @Test func theLimitOfOpenFilesIsRaised() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            let lines = origin.serveImages(1, gate: gate)
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let running = try ProcessLimitTests.wrapped(
                    workspace.prefetchCommand(lines), ["/usr/bin/prlimit", "--nofile=128:300"]
                ).start()
                try await origin.wait(for: "one held") { $0.inFlight == 1 }
                let text = try String(
                    contentsOfFile: "/proc/\(running.process)/limits", encoding: .utf8)
                let line = text.split(separator: "\n").first { $0.hasPrefix("Max open files") }
                let fields = line?.split(separator: " ")
                gate.open()
                #expect(await running.wait().status == 0)
                #expect(fields?[3] == "300", "\(text)")
            }
        }
    }

    // MARK: Threads

    /// The threads are started in this order: signals, readers, codec workers, writer, transfers.
    @Test(
        .enabled(if: allowsTracing, "tracing is not allowed"),
        .enabled(if: !Sanitizer.isActive, "sanitizers have threads of their own"),
        arguments: 1...9)
    func aThreadThatCannotBeStartedIsDoneWithoutOrSaid(number: Int) async throws {
        try await withOrigin { origin in
            let lines = origin.serveImages(10)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let result = try await ProcessLimitTests.wrapped(
                    workspace.prefetchCommand(lines),
                    ProcessLimitTests.tracer([
                        "-e", "trace=clone,clone3",
                        "-e", "inject=clone,clone3:error=EAGAIN:when=\(number)",
                    ])
                ).run()
                if result.status == 2 {
                    #expect(result.error.contains("prefetch: thread \""), "\(result)")
                    #expect(result.error.contains("hint: raise the limits of processes"))
                    // Before the run there is no report.
                    if number > 1 { _ = try workspace.finish(result, entries: number > 2 ? 10 : 0) }
                } else {
                    #expect(result.status == 0, "\(result)")
                    #expect(number > 1, "nothing was injected")
                }
                let next = try await workspace.prefetch(lines)
                #expect(next.result.status == 0, "\(next.result)")
            }
        }
    }

    /// After a failed look-up a thread does not wait for the one that reads standard input.
    @Test func aFailedLookUpEndsARunThatStillReadsItsInput() async throws {
        try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
            _ = try await workspace.prefetch([])
            var command = workspace.command(["-", "--offline"])
            command.input = .open
            command.timeLimit = .seconds(60)
            let running = try command.start()
            // The database is checked before the run begins; the table is read by the threads
            // that read, with the first line.
            try await eventually("the run is noted") {
                try await workspace.query("SELECT 1 FROM run WHERE ended_at IS NULL") == [["1"]]
            }
            try await workspace.runSQL("DROP TABLE failure")
            running.send(Array("http://example.com/a.png\n".utf8))
            let result = await running.wait()
            #expect(result.status == 2, "\(result)")
            #expect(result.error.contains("the index failure_run_id"), "\(result)")
            try FileManager.default.removeItem(atPath: workspace.cache)
        }
    }

    // MARK: The end

    /// The kernel does not let the first process of a container die of a signal.
    @Test(.enabled(if: Namespace.allowsMounts, "namespaces are not allowed"))
    func theFirstProcessOfAContainerEndsAfterASignal() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            let lines = origin.serveImages(2, gate: gate)
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                var command = try ProcessLimitTests.wrapped(
                    workspace.prefetchCommand(lines),
                    [Namespace.program, "-r", "--pid", "--fork", "--kill-child"])
                command.timeLimit = .seconds(60)
                let running = try command.start()
                try await origin.wait(for: "held") { $0.inFlight == 2 }
                let path = "/proc/\(running.process)/task/\(running.process)/children"
                let child = try String(contentsOfFile: path, encoding: .utf8)
                let process = try #require(Int32(child.trimmingCharacters(in: .whitespaces)))
                kill(process, SIGTERM)
                let result = await running.wait()
                gate.open()
                #expect(result.status == 128 + SIGTERM, "\(result)")
            }
        }
    }
}

import Foundation
import PrefetchModel
import TestSupport
import Testing

private func probe(_ argument: String) async throws -> CommandResult {
    try await Command(
        executable: Workspace.product("sandbox-probe"), arguments: [argument], environment: [:],
        folder: "/"
    ).run()
}

/// Images are decoded in workers that can only compute.
@Suite(
    .timeLimit(.minutes(15)), .enabled(if: !Sanitizer.isActive, "a sanitizer is loaded first"),
    .enabled("this machine has all walls") { try await probe("walls").status == 0 })
struct SandboxTests {
    /// Whether this machine has all walls.
    static func hasAllWalls() async throws -> Bool { try await probe("walls").status == 0 }

    /// Faults of ``FaultyJPEG``, the messages in the report, and the signals in `crashes`.
    private static let faults: [(mark: String, message: String, signal: Int32?)] = [
        ("abort", "its decoder crashed (SIGABRT)", SIGABRT),
        ("free", "its decoder crashed (SIGABRT)", SIGABRT),
        ("segment", "its decoder crashed (SIGSEGV)", SIGSEGV),
        ("exit", "its decoder ended with status 7", 0),
        ("loop", "its decoder took more than 3 s", nil),
        ("allocate", "its decoder crashed (SIGABRT)", SIGABRT),
        ("open", "its decoder made a forbidden system call (SIGSYS)", SIGSYS),
        ("connect", "its decoder made a forbidden system call (SIGSYS)", SIGSYS),
        ("fork", "its decoder made a forbidden system call (SIGSYS)", SIGSYS),
        ("kill", "its decoder made a forbidden system call (SIGSYS)", SIGSYS),
        ("execute", "its decoder made a forbidden system call (SIGSYS)", SIGSYS),
        ("forge", "its decoder sent nonsense", 0),
    ]

    @Test(arguments: faults)
    func faultyDecoderCostsOneEntry(mark: String, message: String, signal: Int32?) async throws {
        let bytes = try Fixtures.jpegForFaultyDecoder(mark)
        try await withOrigin { origin in
            origin.serve("/bad.jpg", .picture(bytes))
            let bad = origin.url("/bad.jpg")
            let pictures = origin.serveImages(6)
            let lines = Array(pictures[..<3] + [bad] + pictures[3...])
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                func run(_ options: String...) async throws -> Workspace.Run {
                    try await workspace.finish(
                        CrashTests.faulty(
                            workspace.prefetchCommand(
                                lines,
                                ["--sandbox", "auto", "--max-decode-time", "1s"]
                                    + ["--memory", "32MiB"] + options)
                        ).run(), entries: lines.count)
                }
                let first = try await run()
                #expect(first.result.status == 1, "\(first.result)")
                let entry = try #require(first.report.entries.first { $0.url == bad })
                #expect(entry.verdict == "failed/unsupported-image")
                #expect(entry.message == message)
                #expect(first.summary.outcomes == ["downloaded": 6, "failed": 1])
                let noted = CrashTests.crashes(workspace)
                #expect(noted?.hasSuffix(" \(signal ?? -1)\n") == signal.map { _ in true })

                // The image is known, and costs nothing any more.
                let again = try await run("--retry-failed")
                #expect(again.report.entries.first { $0.url == bad }?.message == message)
                let next = try await run()
                #expect(next.summary.outcomes == ["fresh": 6, "blacklisted": 1])
                #expect(try await workspace.judge() == 6)
            }
        }
    }

    /// The numbers of the program's workers.
    private static func workers(of process: pid_t) -> [pid_t] {
        let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task"))
        return (tasks ?? []).flatMap { task -> [pid_t] in
            let path = "/proc/\(process)/task/\(task)/children"
            let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
            return text.split(separator: " ").compactMap { pid_t($0) }
        }.filter { worker in
            let line = try? String(contentsOfFile: "/proc/\(worker)/cmdline", encoding: .utf8)
            return line?.contains("--decoding-worker") == true
        }
    }

    /// A worker that is killed from outside says nothing about its image.
    @Test func killedWorkersLoseNothing() async throws {
        try await withOrigin { origin in
            // A different picture for each line: the bytes of a crash are not decoded again.
            let lines = (0..<1000).map { number in
                origin.serve(
                    "/\(number)",
                    .image(Fixtures.png(width: 80, height: 80, seed: number, isNoise: true)))
                return origin.url("/\(number)")
            }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let running = try workspace.prefetchCommand(
                    lines, ["--encode", "jpeg", "--sandbox", "auto"]
                ).start()
                let killer = Task {
                    var killed = 0
                    repeat {
                        if let worker = SandboxTests.workers(of: running.process).randomElement() {
                            kill(worker, SIGKILL)
                            killed += 1
                        }
                    } while (try? await Task.sleep(for: .milliseconds(100))) != nil
                    return killed
                }
                let result = await running.wait()
                killer.cancel()
                let killed = await killer.value
                let run = try workspace.finish(result, entries: lines.count)
                let failed = run.report.entries.filter { $0.outcome == "failed" }
                #expect(failed.allSatisfy { $0.message == "its decoder crashed (SIGKILL)" })
                // An image fails by its third kill.
                #expect(killed > 3 && failed.count <= killed / 3, "\(killed): \(run.result)")
                #expect(
                    run.summary.outcomes["downloaded"] == lines.count - failed.count,
                    "\(run.result)")
                #expect(try await workspace.judge() == lines.count - failed.count)
            }
        }
    }

    /// A worker has no descriptor, no variable and no memory with anything but images.
    @Test func workersHaveNoSecrets() async throws {
        let secret = "s3cret-\(UUID().uuidString)"
        try await withOrigin { origin in
            let gate = Gate()
            let lines = origin.serveImages(1) + origin.serveImages(1, gate: gate)
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                var command = try workspace.prefetchCommand(
                    lines,
                    ["--sandbox", "require", "--header", "Authorization: Bearer \(secret)"])
                command.environment["AWS_SECRET_ACCESS_KEY"] = secret
                let running = try command.start()
                try await origin.wait(for: "one held") { $0.inFlight > 0 }
                try await eventually("a worker runs") {
                    !SandboxTests.workers(of: running.process).isEmpty
                }
                let worker = try #require(SandboxTests.workers(of: running.process).first)
                try await eventually("its walls stand") {
                    let status = try? String(
                        contentsOfFile: "/proc/\(worker)/status", encoding: .utf8)
                    return status?.contains("Seccomp:\t2") == true
                }
                let descriptors = try FileManager.default.contentsOfDirectory(
                    atPath: "/proc/\(worker)/fd")
                #expect(Set(descriptors).isSubset(of: ["0", "1", "2", "5"]))
                let variables = try Data(contentsOf: URL(filePath: "/proc/\(worker)/environ"))
                #expect(!String(decoding: variables, as: UTF8.self).contains("AWS"))
                let found = try await Command(
                    executable: "/usr/bin/python3",
                    arguments: [
                        "-c", SandboxTests.searchMemory, "\(worker)", "\(running.process)", secret,
                    ], environment: [:], folder: "/"
                ).run()
                // The second process shows that the search finds it.
                #expect(found.output == "False\nTrue\n", "\(found)")
                gate.open()
                let result = await running.wait()
                #expect(result.status == 0, "\(result)")
            }
        }
    }

    private static let searchMemory = """
        import sys
        for process in sys.argv[1:3]:
            found = False
            for line in open(f"/proc/{process}/maps"):
                first, last = (int(part, 16) for part in line.split()[0].split("-"))
                if line.split()[1][0] != "r" or line.endswith("[vvar]\\n"):
                    continue
                with open(f"/proc/{process}/mem", "rb", 0) as memory:
                    try:
                        memory.seek(first)
                        found = found or sys.argv[3].encode() in memory.read(last - first)
                    except (OSError, OverflowError):
                        pass
            print(found)
        """

    /// Every number of a system call that the list does not have ends the process.
    @Test func onlyListedCallsPass() async throws {
        func lines(_ argument: String, by separator: Character) async throws -> [[String]] {
            let result = try await probe(argument)
            #expect(result.status == 0, "\(result)")
            return result.outputLines.map { line in
                line.split(separator: separator, omittingEmptySubsequences: false).map(String.init)
            }
        }
        let list = try await lines("list", by: "\t")
        #expect(list.count == 17)
        // Linux lets its own probes (uretprobe, uprobe) pass every filter, to no effect here.
        let probes = ["335", "336"]
        let allowed = Dictionary(uniqueKeysWithValues: list.map { ($0[0], $0[1]) })
        for line in try await lines("calls", by: " ") where !probes.contains(line[0]) {
            let isAllowed = allowed[line[0]] != nil
            #expect(
                line[1] == (isAllowed ? "0" : "\(SIGSYS)"), "\(line): \(allowed[line[0]] ?? "")")
        }
        for line in try await lines("arguments", by: " ") {
            #expect(line[1] == "\(SIGSYS)", "\(line)")
        }
        // The page for users has the same table.
        let page = try String(
            contentsOf: SourceTree.root.appending(path: "docs/security.md"), encoding: .utf8)
        for call in list { #expect(page.contains("| `\(call[1])` |"), "\(call)") }
    }

    /// Walls that a container, systemd or an emulated kernel refuses are named, and `require` ends
    /// the run.
    @Test(arguments: ["seccomp", "landlock", "both"], [EPERM, ENOSYS])
    func missingWallsAreNamed(refused: String, error: Int32) async throws {
        try await withOrigin { origin in
            let lines = origin.serveImages(2)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let names = refused == "both" ? ["landlock", "seccomp"] : [refused]
                let calls = names.map { $0 == "landlock" ? "landlock_create_ruleset" : $0 }
                func run(_ mode: String, _ cache: String) async throws -> CommandResult {
                    try await SandboxTests.filtered(
                        workspace.prefetchCommand(
                            lines, ["--sandbox", mode, "--cache-dir", cache]),
                        by: ["refuse", "\(error)", calls.joined(separator: ",")]
                    ).run()
                }
                let auto = try await run("auto", "a")
                #expect(auto.status == 0, "\(auto)")
                let reason = String(cString: strerror(error))
                let text = names.map { "\($0) (\(reason))" }.joined(separator: ", ")
                #expect(auto.error.contains("  sandbox: on, without \(text)\n"), "\(auto)")
                let required = try await run("require", "b")
                #expect(required.status == 2, "\(required)")
                #expect(required.error.contains("--sandbox require: there is no \(text) here"))
                let file = SourceTree.tests.appending(path: "TestSupport/Fixtures/baseline.jpg")
                    .path
                let put = try await SandboxTests.filtered(
                    workspace.command(["put", lines[0], file, "--sandbox", "require"]),
                    by: ["refuse", "\(error)", calls.joined(separator: ",")]
                ).run()
                #expect(put.status == 2, "\(put)")
                #expect(put.error.contains("--sandbox require: there is no \(text) here"))
            }
        }
    }

    /// A run that decodes nothing starts no worker.
    @Test func warmRunStartsNoWorker() async throws {
        try await withOrigin { origin in
            let lines = origin.serveImages(3)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let cold = try await workspace.prefetch(lines, "--sandbox", "require")
                #expect(cold.summary.sandbox == "on", "\(cold.result)")
                let warm = try await workspace.prefetch(lines, "--sandbox", "require")
                #expect(warm.summary.outcomes == ["fresh": 3])
                #expect(warm.summary.sandbox == nil)
            }
        }
    }

    /// Only the module that has the walls decodes images. Others read headers by this program's own
    /// code, or the user's own files.
    @Test func onlyWorkersDecode() throws {
        let decoding = [
            "ImageProcessor.process(", "StoredPlaceholder.make(", "Codecs.header(",
            "overlays.add(", "CodecLibraries.failing",
        ]
        let allowed = [
            // The headers of stored files, with an own reader.
            "Upkeep/Verify/FolderCheck.swift": ["Codecs.header("],
            // The user's own files.
            "Pipeline/Configuration/OverlayFiles.swift": ["overlays.add("],
            // The program's own pictures.
            "Upkeep/Doctor/Diagnosis.swift": ["CodecLibraries.failing"],
        ]
        let sources = SourceTree.root.appending(path: "Sources")
        let files = try #require(
            FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil))
        var found: [String: [String]] = [:]
        for case let file as URL in files where file.pathExtension == "swift" {
            let name = String(file.path.dropFirst(sources.path.count + 1))
            guard !name.hasPrefix("Codecs/"), !name.hasPrefix("Decoding/") else { continue }
            let text = try String(contentsOf: file, encoding: .utf8)
            let calls = decoding.filter(text.contains)
            if !calls.isEmpty { found[name] = calls }
        }
        #expect(found == allowed)
    }

    /// Without workers, images are decoded in the program, which says so.
    @Test func machineWithoutWorkersIsNamed() async throws {
        try await withOrigin { origin in
            let lines = origin.serveImages(2)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                func run(_ mode: String) async throws -> CommandResult {
                    try await SandboxTests.filtered(
                        workspace.prefetchCommand(lines, ["--sandbox", mode]),
                        by: ["refuse", "\(ENOSYS)", "memfd_create"]
                    ).run()
                }
                let reason = "a worker cannot be started: Function not implemented"
                let required = try await run("require")
                #expect(required.status == 2, "\(required)")
                #expect(required.error.contains(reason), "\(required)")
                let auto = try await run("auto")
                #expect(auto.status == 0, "\(auto)")
                #expect(auto.error.contains("  sandbox: none: "), "\(auto)")
                #expect(auto.error.contains(reason), "\(auto)")
            }
        }
    }

    /// The command behind a filter of system calls.
    static func filtered(_ command: Command, by filter: [String]) -> Command {
        let script = SourceTree.tests.appending(path: "CommandTests/Security/filtered.py").path
        var command = command
        command.arguments = [script] + filter + [command.executable] + command.arguments
        command.executable = "/usr/bin/python3"
        command.environment["PATH"] = "/usr/bin:/bin"
        return command
    }

    /// The deb's service lets the walls stand.
    @Test(.enabled(if: FileManager.default.fileExists(atPath: "/usr/bin/systemd-analyze")))
    func serviceKeepsAllWalls() async throws {
        let unit = SourceTree.root.appending(path: "Packaging/deb/debian/prefetch@.service").path
        try await withOrigin { origin in
            let lines = origin.serveImages(3)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let command = try workspace.prefetchCommand(lines, ["--sandbox", "require"])
                let run = try await workspace.finish(
                    SandboxTests.filtered(command, by: ["unit", unit]).run(), entries: 3)
                #expect(run.result.status == 0, "\(run.result)")
                #expect(run.summary.sandbox == "on")
            }
        }
    }
}

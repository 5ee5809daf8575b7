import Foundation
import TestSupport
import Testing

/// The transfers' thread, which a byte that libcurl sends itself should wake, when that fails.
@Suite(
    .timeLimit(.minutes(15)),
    .enabled(if: FailingCalls.areAvailable, "strace is not there, or may not trace"))
struct TransferWakeUpTests {
    /// No descriptors for wake-ups, and wake-ups that fail from the second one on. The first
    /// `sendto` of each thread succeeds: for the transfers' own thread it is the request.
    @Test(arguments: ["socketpair:error=EMFILE", "sendto:error=EIO:when=2+"])
    func aRunEndsWithoutWakeUps(fault: String) async throws {
        try await withOrigin { origin in
            origin.serve("/a.png", .image(Fixtures.png(width: 8, height: 8)))
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let command = try workspace.prefetchCommand([origin.url("/a.png")])
                let start = ContinuousClock.now
                let result = try await FailingCalls.run(command, fault)
                let run = try workspace.finish(result, entries: 1)
                #expect(run.report.verdicts == ["downloaded"], "\(run.result)")
                // It used to wait for a minute each time.
                #expect(ContinuousClock.now - start < .seconds(30))
            }
        }
    }
}

/// Runs programs with failing or recorded system calls.
enum FailingCalls {
    private static let tracer = "/usr/bin/strace"

    static let areAvailable: Bool = {
        guard !Sanitizer.isActive, FileManager.default.isExecutableFile(atPath: tracer) else {
            return false
        }
        let process = Process()
        process.executableURL = URL(filePath: tracer)
        process.arguments = ["-o", "/dev/null", "/bin/true"]
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }()

    // `fault` is an argument of strace's `inject`.
    static func run(_ command: Command, _ fault: String) async throws -> CommandResult {
        var traced = command
        traced.executable = tracer
        let name = fault.prefix { $0 != ":" }
        traced.arguments =
            [
                "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(name)", "-e", "inject=\(fault)",
                command.executable,
            ] + command.arguments
        return try await traced.run()
    }

    /// Records the calls of these classes, in strace's format.
    static func run(_ command: Command, tracing calls: String, to path: String) async throws
        -> CommandResult
    {
        var traced = command
        traced.executable = tracer
        traced.arguments =
            ["-f", "-qq", "-s", "256", "-o", path, "-e", "trace=\(calls)", command.executable]
            + command.arguments
        return try await traced.run()
    }
}

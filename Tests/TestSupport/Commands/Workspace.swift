import Foundation
import Glibc
import PrefetchModel
import Threading

/// A temporary folder in which a test runs `prefetch` with a clean environment.
///
/// The cache is its subfolder `cache`, set by the environment variable `PREFETCH_CACHE_DIR`.
package final class Workspace: Sendable {
    package let folder: String
    private let runs = Monitor(0)

    package var cache: String { folder + "/cache" }

    /// `$PREFETCH_BINARY`, else the binary in the test runner's folder.
    package static let binary =
        ProcessInfo.processInfo.environment["PREFETCH_BINARY"] ?? product("prefetch")

    /// The path of a product that was built with the tests.
    package static func product(_ name: String) -> String {
        let tests =
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return URL(filePath: tests).deletingLastPathComponent().appending(path: name).path
    }

    private let switchedOff: SwitchedOff
    private let measuresMemory: Bool

    fileprivate init(folder: String, without switchedOff: SwitchedOff, measuresMemory: Bool) {
        self.folder = folder
        self.switchedOff = switchedOff
        self.measuresMemory = measuresMemory
    }

    /// Defaults of runs that tests disable, because they check the first failure, need it soon, or
    /// delay responses. Options that the test passes take precedence.
    package struct SwitchedOff: OptionSet, Sendable {
        package let rawValue: Int

        package init(rawValue: Int) { self.rawValue = rawValue }

        /// Does not retry failures: `--retry 0`.
        package static let retries = SwitchedOff(rawValue: 1)
        /// Does not probe hosts that time out: `--host-timeout 0`.
        package static let probes = SwitchedOff(rawValue: 2)
        /// Allows responses as slow as the test itself: `--stall-timeout 5m`.
        package static let stalls = SwitchedOff(rawValue: 4)
        /// Adds no attributes but the test's own: `--no-placeholders`.
        package static let placeholders = SwitchedOff(rawValue: 8)

        fileprivate func arguments(beside options: [String]) -> [String] {
            [
                (SwitchedOff.retries, ["--retry", "0"]), (.probes, ["--host-timeout", "0"]),
                (.stalls, ["--stall-timeout", "5m"]), (.placeholders, ["--no-placeholders"]),
            ].filter { contains($0.0) && !options.contains($0.1[0]) }.flatMap(\.1)
        }
    }

    /// No proxies, user locale or configuration; settings of sanitizers and coverage are kept.
    package var environment: [String: String] {
        var environment = [
            "HOME": folder, "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8",
            "TERM": "xterm-256color", "PREFETCH_CACHE_DIR": cache,
        ]
        let inherited = ProcessInfo.processInfo.environment
        for name in ["LLVM_PROFILE_FILE", "ASAN_OPTIONS", "TSAN_OPTIONS"] {
            environment[name] = inherited[name]
        }
        // The program exits in the middle of its frames; their contents do not leak.
        environment["ASAN_OPTIONS"] = (environment["ASAN_OPTIONS"] ?? "") + ":detect_leaks=0"
        return environment
    }

    /// Writes a file and returns its name relative to the folder.
    @discardableResult
    package func write(_ bytes: [UInt8], to name: String) throws -> String {
        try Data(bytes).write(to: URL(filePath: folder).appending(path: name))
        return name
    }

    /// Writes a manifest with these lines and returns its name.
    @discardableResult
    package func manifest(_ lines: [String], name: String = "manifest.txt") throws -> String {
        try write(Array(lines.map { $0 + "\n" }.joined().utf8), to: name)
    }

    package func command(_ arguments: [String]) -> Command {
        var command = Command(
            executable: Workspace.binary, arguments: arguments, environment: environment,
            folder: folder)
        command.measuresMemory = measuresMemory
        return command
    }

    package func run(_ arguments: String...) async throws -> CommandResult {
        try await command(arguments).run()
    }

    /// The result and report of a `run`.
    package struct Run: Sendable {
        package let result: CommandResult
        package let report: Report

        package var summary: Report.Summary { report.summary }
    }

    /// Runs over a manifest with these lines.
    ///
    /// - Throws: ``Report/Invalid`` with the whole result when the report is inconsistent.
    package func prefetch(_ lines: [String], _ options: String...) async throws -> Run {
        try await prefetch(lines, options)
    }

    package func prefetch(_ lines: [String], _ options: [String]) async throws -> Run {
        try await finish(prefetchCommand(lines, options).run(), entries: lines.count)
    }

    /// Creates the command of ``prefetch(_:_:)``, for tests that change it or watch it run;
    /// ``finish(_:entries:)`` reads its report.
    package func prefetchCommand(_ lines: [String], _ options: [String] = []) throws -> Command {
        let number = runs.withLock { runs in
            runs += 1
            return runs
        }
        let name = try manifest(lines, name: "manifest-\(number).txt")
        return command(
            [name, "--report", "report-\(number).jsonl"]
                + switchedOff.arguments(beside: options) + options)
    }

    package func finish(_ result: CommandResult, entries: Int? = nil) throws -> Run {
        guard let option = result.command.arguments.firstIndex(of: "--report") else {
            throw Report.Invalid(description: "no report was asked for")
        }
        do {
            let name = result.command.arguments[option + 1]
            let report = try Report(contentsOfFile: "\(folder)/\(name)")
            if let entries, report.entries.count != entries {
                throw Report.Invalid(
                    description: "\(report.entries.count) results for \(entries) entries")
            }
            return Run(result: result, report: report)
        } catch {
            throw Report.Invalid(description: "\(error)\n\(result)")
        }
    }

    /// Checks the current cache with ``Judge``.
    ///
    /// - Parameters:
    ///   - sources: The bytes that a stored picture must show, by cache key.
    ///   - variants: The names by which every resource must have a variant in use.
    /// - Returns: The number of variants.
    /// - Throws: ``Judge/Verdict`` when anything is wrong.
    @discardableResult
    package func judge(
        sources: [String: [UInt8]] = [:], variants: [String] = []
    ) async throws -> Int {
        var files: [String: String] = [:]
        for (index, (key, bytes)) in sources.enumerated() {
            files[key] = folder + "/" + (try write(bytes, to: "source-\(index)"))
        }
        return try await Judge.check(
            cache: cache, sources: files, variants: variants, folder: folder)
    }
}

/// All tests start together, and as many programs would make every short time-out expire. Most wait
/// for a clock or an origin half of their time, so there are more slots than processors.
private let slots = Slots(3 * ProcessInfo.processInfo.activeProcessorCount)

/// Runs `body` in a new workspace, checks its cache and removes it.
///
/// Waits for a slot first, so workspaces must not be nested. Runs use the shipped defaults, except
/// those that the test disables.
///
/// - Throws: The error of `body`, else ``Judge/Verdict``.
@discardableResult
package func withWorkspace<Success>(
    without switchedOff: Workspace.SwitchedOff = [], measuresMemory: Bool = false,
    isolation: isolated (any Actor)? = #isolation, _ body: (Workspace) async throws -> Success
) async throws -> Success {
    await slots.take()
    defer { slots.giveBack() }
    let folder = FileManager.default.temporaryDirectory
        .appending(path: "prefetch-test-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let workspace = Workspace(
        folder: folder, without: switchedOff, measuresMemory: measuresMemory)
    let success = try await body(workspace)
    try await workspace.judge()
    return success
}

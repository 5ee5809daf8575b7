import Foundation
import Glibc
import PrefetchModel
import Threading

/// A folder of a test's own in which `prefetch` runs with an environment of its own.
///
/// The cache is `cache` in it, by the environment variable `PREFETCH_CACHE_DIR`.
package final class Workspace: Sendable {
    package let folder: String
    private let runs = Monitor(0)

    package var cache: String { folder + "/cache" }

    /// `$PREFETCH_BINARY`, else the binary beside the program that runs the tests.
    package static let binary: String = {
        if let named = ProcessInfo.processInfo.environment["PREFETCH_BINARY"] { return named }
        let tests =
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return URL(filePath: tests).deletingLastPathComponent().appending(path: "prefetch").path
    }()

    package static var hasBinary: Bool { access(binary, X_OK) == 0 }

    fileprivate init(folder: String) {
        self.folder = folder
    }

    /// No proxies, no locale of the user, no configuration; sanitizers and coverage keep theirs.
    package var environment: [String: String] {
        var environment = [
            "HOME": folder, "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8",
            "TERM": "xterm-256color", "PREFETCH_CACHE_DIR": cache,
        ]
        let inherited = ProcessInfo.processInfo.environment
        for name in ["LLVM_PROFILE_FILE", "ASAN_OPTIONS", "TSAN_OPTIONS"] {
            environment[name] = inherited[name]
        }
        // The program ends with `exit` in the midst of its frames: what they hold is no leak.
        environment["ASAN_OPTIONS"] = (environment["ASAN_OPTIONS"] ?? "") + ":detect_leaks=0"
        return environment
    }

    /// Writes a file and returns its name, which is relative to the folder.
    @discardableResult
    package func write(_ bytes: [UInt8], to name: String) throws -> String {
        try Data(bytes).write(to: URL(filePath: folder).appending(path: name))
        return name
    }

    /// Writes these lines and returns the manifest's name.
    @discardableResult
    package func manifest(_ lines: [String], name: String = "manifest.txt") throws -> String {
        try write(Array(lines.map { $0 + "\n" }.joined().utf8), to: name)
    }

    package func command(_ arguments: [String]) -> Command {
        Command(
            executable: Workspace.binary, arguments: arguments, environment: environment,
            folder: folder)
    }

    package func run(_ arguments: String...) async throws -> CommandResult {
        try await command(arguments).run()
    }

    /// A `run` with a report that its result is read from.
    package struct Run: Sendable {
        package let result: CommandResult
        package let report: Report

        package var summary: Report.Summary { report.summary }
    }

    /// Runs over a manifest of these lines.
    ///
    /// - Throws: ``Report/Invalid`` with the whole result when the report is not accounted.
    package func prefetch(_ lines: [String], _ options: String...) async throws -> Run {
        try await finish(prefetchCommand(lines, options).run(), entries: lines.count)
    }

    /// The command of ``prefetch(_:_:)``, for tests that change it or watch it run; ``finish(_:entries:)``
    /// reads its report.
    ///
    /// Failures are not retried unless the options say so with `--retry`, and hosts that give no answer
    /// not probed unless they say so with `--host-timeout`: most tests want to see the first failure,
    /// and soon.
    package func prefetchCommand(_ lines: [String], _ options: [String] = []) throws -> Command {
        let number = runs.withLock { runs in
            runs += 1
            return runs
        }
        let name = try manifest(lines, name: "manifest-\(number).txt")
        // Answers that a test holds back take as long as the test is kept from going on.
        let defaults = [("--retry", "0"), ("--host-timeout", "0"), ("--stall-timeout", "5m")]
            .filter { !options.contains($0.0) }.flatMap { [$0.0, $0.1] }
        return command([name, "--report", "report-\(number).jsonl"] + defaults + options)
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

    /// Judges the cache as it is now.
    ///
    /// - Parameters:
    ///   - sources: by cache key the bytes that the stored picture must show.
    ///   - variants: the names by which every resource must have one in use.
    /// - Returns: the number of variants.
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

/// A program of its own, in another language and with other decoders, that looks at a cache.
package enum Judge {
    package struct Verdict: Error, CustomStringConvertible {
        package let description: String
    }

    /// Debian's Python, for which the package `python3-pil` is installed.
    private static let interpreter = "/usr/bin/python3"

    /// - Returns: the number of variants.
    /// - Throws: ``Verdict`` with every problem found.
    package static func check(
        cache: String, sources: [String: String] = [:], variants: [String] = [],
        folder: String
    ) async throws -> Int {
        let script = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "judge.py")
        let arguments =
            [script.path, cache] + sources.flatMap { key, path in ["--source", key, path] }
            + (variants.isEmpty ? [] : ["--variants", variants.joined(separator: ",")])
        let command = Command(
            executable: interpreter, arguments: ["-I", "-B"] + arguments,
            environment: ["PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"], folder: folder)
        let result = try await command.run()
        let last = result.output.split(separator: "\n").last ?? ""
        guard result.status == 0, last.hasPrefix("rows="),
            let rows = Int(last.dropFirst(5).prefix { $0.isNumber })
        else { throw Verdict(description: "the judge refuses the cache\n\(result)") }
        return rows
    }
}

/// All tests start at once; that many programs at once would make every short time-out expire.
private let slots = Slots(2 * ProcessInfo.processInfo.activeProcessorCount)

/// Runs `body` in a fresh workspace, judges its cache afterwards and removes it. Waits for its turn first, so
/// a test must not open one inside another.
///
/// - Throws: what `body` throws, else ``Judge/Verdict``.
@discardableResult
package func withWorkspace<Success>(
    isolation: isolated (any Actor)? = #isolation, _ body: (Workspace) async throws -> Success
) async throws -> Success {
    await slots.take()
    defer { slots.giveBack() }
    let folder = FileManager.default.temporaryDirectory
        .appending(path: "prefetch-test-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let workspace = Workspace(folder: folder)
    let success = try await body(workspace)
    try await workspace.judge()
    return success
}

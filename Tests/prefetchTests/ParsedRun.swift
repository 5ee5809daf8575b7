import ArgumentParser
import Foundation
import Pipeline
import PrefetchModel

@testable import prefetch

/// Calls a closure with a new folder, and removes it.
func withFolder<Success>(_ body: (_ folder: String) throws -> Success) throws -> Success {
    let folder = NSTemporaryDirectory() + "prefetch-tests-\(UUID())"
    try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    return try body(folder)
}

/// `prefetch run list` in this process, up to its configuration.
///
/// The only configuration file is one with the given lines. Messages show it as `c.toml`.
enum ParsedRun {
    /// The message, hint and exit status of a command that is refused.
    struct Refusal {
        let text: String
        let hint: String?
        let status: Int32
    }

    private static func withFile<Success>(
        _ lines: String, _ body: (_ path: String) throws -> Success
    ) throws -> Success {
        try withFolder { folder in
            let path = folder + "/run.toml"
            try lines.write(toFile: path, atomically: true, encoding: .utf8)
            return try body(path)
        }
    }

    private static func command(_ arguments: [String], _ path: String) -> ConfiguredCommand {
        ConfiguredCommand(["run", "list", "--config", path] + arguments)
    }

    private static func parse(_ arguments: [String]) throws -> RunCommand {
        try RunCommand.parse(Array(arguments.dropFirst()))
    }

    static func command(_ arguments: [String], file lines: String) throws -> ConfiguredCommand {
        try withFile(lines) { path in
            var command = command(arguments, path)
            try command.configure()
            return command
        }
    }

    static func configuration(
        _ arguments: [String], file lines: String
    ) throws -> RunConfiguration {
        let command = try command(arguments, file: lines)
        return try parse(command.arguments).configuration(manifests: [], command.invocation)
    }

    /// Returns nil for a run that would start.
    static func refusal(_ arguments: [String], file lines: String = "") throws -> Refusal? {
        try withFile(lines) { path in
            var command = command(arguments, path)
            do {
                try command.configure()
                _ = try parse(command.arguments).configuration(
                    manifests: [], command.invocation)
                return nil
            } catch {
                let error = command.failure(for: error) { _ = try parse($0) } ?? error
                if let failure = UserError(error, command.invocation.lists) {
                    return Refusal(
                        text: failure.description.replacing(path, with: "c.toml"),
                        hint: failure.hint, status: failure.exitStatus(of: nil))
                }
                return Refusal(
                    text: UsageAdvice.adding(to: Prefetch.fullMessage(for: error)), hint: nil,
                    status: Prefetch.exitCode(for: error).rawValue)
            }
        }
    }
}

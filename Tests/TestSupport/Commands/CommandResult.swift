import Foundation
import Glibc

/// A program's exit and output.
package struct CommandResult: Sendable {
    package let command: Command
    package let outputBytes: [UInt8]
    package let errorBytes: [UInt8]
    /// Nil if a signal ended the program.
    package let status: Int32?
    /// Nil if the program exited.
    package let signal: Int32?
    package let hasTimedOut: Bool
    package let time: Duration
    /// The user and system time of all threads.
    package let processorTime: Duration
    /// Nil unless ``Command/measuresMemory``.
    package let peakMemoryInBytes: Int?

    init(
        command: Command, output: [UInt8], error: [UInt8], waitStatus: Int32, hasTimedOut: Bool,
        time: Duration, processorTime: Duration, peakMemoryInBytes: Int?
    ) {
        self.command = command
        outputBytes = output
        errorBytes = error
        let number = waitStatus & 0x7F
        status = number == 0 ? (waitStatus >> 8) & 0xFF : nil
        signal = number == 0 ? nil : number
        self.hasTimedOut = hasTimedOut
        self.time = time
        self.processorTime = processorTime
        self.peakMemoryInBytes = peakMemoryInBytes
    }

    package var output: String { String(decoding: outputBytes, as: UTF8.self) }
    package var error: String { String(decoding: errorBytes, as: UTF8.self) }
    /// Non-empty lines.
    package var outputLines: [String] { output.split(separator: "\n").map(String.init) }
    package var errorLines: [String] { error.split(separator: "\n").map(String.init) }
}

/// Contains everything needed to diagnose a failed test.
extension CommandResult: CustomStringConvertible {
    package var description: String {
        let ending =
            hasTimedOut
            ? "killed after its time limit"
            : signal.map { "signal \($0)" } ?? "status \(status ?? -1)"
        let memory = peakMemoryInBytes.map { ", peak memory \($0 >> 10) KiB" } ?? ""
        let names =
            FileManager.default.subpaths(atPath: command.folder)?.sorted().prefix(60) ?? []
        return """
            command: \(([command.executable] + command.arguments).joined(separator: " "))
            ended: \(ending) after \(time)\(memory)
            stdout: \(CommandResult.shortened(output))
            stderr: \(CommandResult.shortened(error))
            folder: \(names.joined(separator: " "))
            """
    }

    private static func shortened(_ text: String) -> String {
        text.utf8.count <= 6000 ? text : text.prefix(4000) + "\n…\n" + text.suffix(2000)
    }
}

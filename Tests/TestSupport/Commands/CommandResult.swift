import Foundation
import Glibc

/// How a program ended and what it said.
package struct CommandResult: Sendable {
    package let command: Command
    package let outputBytes: [UInt8]
    package let errorBytes: [UInt8]
    /// Nil when a signal ended it.
    package let status: Int32?
    /// Nil when it exited.
    package let signal: Int32?
    package let hasTimedOut: Bool
    package let time: Duration
    /// Of all threads, in the program and in the kernel for it.
    package let processorTime: Duration
    package let peakMemoryInBytes: Int

    init(
        command: Command, output: [UInt8], error: [UInt8], waitStatus: Int32, hasTimedOut: Bool,
        time: Duration, processorTime: Duration, peakMemoryInBytes: Int
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
}

/// Everything that is needed to see why a test failed.
extension CommandResult: CustomStringConvertible {
    package var description: String {
        let ending =
            hasTimedOut
            ? "killed after its time limit"
            : signal.map { "signal \($0)" } ?? "status \(status ?? -1)"
        let names =
            FileManager.default.subpaths(atPath: command.folder)?.sorted().prefix(60) ?? []
        return """
            command: \(([command.executable] + command.arguments).joined(separator: " "))
            ended: \(ending) after \(time), peak memory \(peakMemoryInBytes >> 10) KiB
            stdout: \(CommandResult.shortened(output))
            stderr: \(CommandResult.shortened(error))
            folder: \(names.joined(separator: " "))
            """
    }

    private static func shortened(_ text: String) -> String {
        text.utf8.count <= 6000 ? text : text.prefix(4000) + "\n…\n" + text.suffix(2000)
    }
}

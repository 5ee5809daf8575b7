import Foundation
import Glibc
import PrefetchModel
import Threading

/// A process of `serve.py`, which answers one request after the other.
///
/// Each is used by one caller at a time and kept for the next one; it ends with the tests, whose end of its
/// standard input is closed then.
package struct PythonServer: Sendable {
    package struct Answer: Sendable {
        /// Both its streams.
        package let text: String
        package let status: Int
    }

    package struct Failed: Error, CustomStringConvertible {
        package let description: String
    }

    private let process: pid_t
    private let input: Int32
    private let output: Int32

    private static let idle = Monitor<[PythonServer]>([])

    /// Debian's Python, for which the package `python3-pil` is installed.
    private static func start() throws -> PythonServer {
        let script = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "serve.py")
        let command = Command(
            executable: "/usr/bin/python3", arguments: ["-I", "-B", script.path],
            environment: ["PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"], folder: "/")
        let (input, output) = (try Pipe(), try Pipe())
        defer {
            close(input.reading)
            close(output.writing)
        }
        let process = try command.spawn(
            input: input.reading, output: output.writing, error: output.writing)
        return PythonServer(process: process, input: input.writing, output: output.reading)
    }

    /// Runs a program, in Python, in a folder. What it leaves open or changed of the process is its
    /// own fault.
    ///
    /// - Throws: ``Failed`` when no process can be started, or when it ends instead of answering.
    package static func run(
        _ program: String, _ arguments: [String] = [], folder: String
    ) async throws -> Answer {
        try await ask(["folder": folder, "program": program, "arguments": arguments])
    }

    /// - Parameter request: an object as `serve.py` describes it.
    /// - Returns: what it was answered, whatever its status.
    /// - Throws: ``Failed`` when no process can be started, or when it ends instead of answering.
    static func ask(_ request: [String: Any]) async throws -> Answer {
        let line = try JSONSerialization.data(withJSONObject: request) + Data("\n".utf8)
        return try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(
                    with: Result {
                        let server = try idle.withLock { $0.popLast() } ?? start()
                        let answer = try server.answer(Array(line))
                        idle.withLock { $0.append(server) }
                        return answer
                    })
            }
        }
    }

    private func answer(_ line: [UInt8]) throws(Failed) -> Answer {
        var start = 0
        while start < line.count {
            let count = line[start...].withUnsafeBytes { write(input, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw ended([]) }
            start += count
        }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while bytes.last != 0 {
            let count = read(output, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw ended(bytes) }
            bytes += buffer[..<count]
        }
        let lines = String(decoding: bytes.dropLast(), as: UTF8.self).split(
            separator: "\n", omittingEmptySubsequences: false)
        // The last one is empty, since the status ends its line.
        guard let status = lines.dropLast().last.flatMap({ Int($0) }) else { throw ended(bytes) }
        return Answer(text: lines.dropLast(2).joined(separator: "\n"), status: status)
    }

    private func ended(_ bytes: [UInt8]) -> Failed {
        close(input)
        close(output)
        var status: Int32 = 0
        kill(process, SIGKILL)
        while waitpid(process, &status, 0) < 0, errno == EINTR {}
        return Failed(
            description: "serve.py gave no answer\n\(String(decoding: bytes, as: UTF8.self))")
    }
}

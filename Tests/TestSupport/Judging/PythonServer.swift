import Foundation
import Glibc
import PrefetchModel
import Threading

/// A process of `serve.py`, which handles requests one at a time.
///
/// Each process has one caller at a time and is then reused. It exits with the tests, when its
/// standard input is closed.
package struct PythonServer: Sendable {
    package struct Answer: Sendable {
        /// The output of both streams.
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

    /// Uses Debian's Python, for which the package `python3-pil` is installed.
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

    /// Runs a Python program in a folder. It must clean up its own changes to the process.
    ///
    /// - Throws: ``Failed`` when no process can be started, or when it exits without a response.
    package static func run(
        _ program: String, _ arguments: [String] = [], folder: String
    ) async throws -> Answer {
        try await ask(["folder": folder, "program": program, "arguments": arguments])
    }

    /// Sends a request.
    ///
    /// - Parameter request: An object as described in `serve.py`.
    /// - Returns: The response, with any status.
    /// - Throws: ``Failed`` when no process can be started, or when it exits without a response.
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
        // The last line is empty, since a newline follows the status.
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

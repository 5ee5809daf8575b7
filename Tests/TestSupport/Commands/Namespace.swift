import Foundation

/// Kernel namespaces that give a test its own mounts and network addresses (`unshare(1)`). Some
/// systems and containers forbid them; tests that need one are skipped there.
package enum Namespace {
    package static let program = "/usr/bin/unshare"

    /// Whether `unshare -rm` allows mounting a tmpfs.
    package static let allowsMounts = succeeds([
        "-rm", "/bin/sh", "-c", "mount -t tmpfs tmpfs /mnt",
    ])

    /// Whether ``answeringEverywhere(_:log:picture:)`` works.
    package static let allowsAddresses = succeeds([
        "-rn", "/bin/sh", "-c",
        """
        ip link set lo up && ip -4 route add local default dev lo \
            && ip -6 route add local default dev lo
        """,
    ])

    /// Runs the command in a network namespace where one web server listens on every unicast
    /// address, IPv4 and IPv6, at port 80.
    ///
    /// `/to?URL` redirects to that URL; all other requests return `picture`. Requests are logged to
    /// `log` for ``EverywhereLog``. Both are paths.
    package static func answeringEverywhere(
        _ command: Command, log: String, picture: String
    ) -> Command {
        let script = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "everywhere.py")
        var wrapped = command
        wrapped.executable = program
        wrapped.arguments =
            ["-rn", "/usr/bin/python3", "-I", "-B", script.path, log, picture, command.executable]
            + command.arguments
        return wrapped
    }

    private static func succeeds(_ arguments: [String]) -> Bool {
        let process = Process()
        process.executableURL = URL(filePath: program)
        process.arguments = arguments
        process.environment = ["PATH": "/usr/bin:/bin"]
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }
}

/// The requests to the server of ``Namespace/answeringEverywhere(_:log:picture:)``.
package struct EverywhereLog: Sendable {
    package struct Request: Sendable {
        /// The address that the client connected to.
        package let address: String
        package let target: String
    }

    /// The addresses of all connections, including those without a request.
    package private(set) var connections: Set<String> = []
    package private(set) var requests: [Request] = []

    /// Reads a log.
    ///
    /// - Throws: When the file does not exist.
    package init(contentsOfFile path: String) throws {
        for line in try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n") {
            let words = line.split(separator: " ", maxSplits: 2).map(String.init)
            switch (words.first, words.count) {
            case ("connection", 2): connections.insert(words[1])
            case ("request", 3): requests.append(Request(address: words[1], target: words[2]))
            // An error of the server itself.
            default: throw Unreadable(description: "\(path): \(line)")
            }
        }
    }

    package struct Unreadable: Error, CustomStringConvertible {
        package let description: String
    }
}

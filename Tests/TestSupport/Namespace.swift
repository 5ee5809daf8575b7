import Foundation

/// Namespaces of the kernel, in which a test has mounts and network addresses of its own
/// (`unshare(1)`). Some systems and containers forbid them; what needs one is skipped there.
package enum Namespace {
    package static let program = "/usr/bin/unshare"

    /// Whether a file system in memory can be mounted after `unshare -rm`.
    package static let allowsMounts = succeeds([
        "-rm", "/bin/sh", "-c", "mount -t tmpfs tmpfs /mnt",
    ])

    /// Whether the loopback device takes any address after `unshare -rn`.
    package static let allowsAddresses = succeeds([
        "-rn", "/bin/sh", "-c",
        "ip link set lo up && ip address add 203.0.113.7/32 dev lo && ip -6 route show",
    ])

    private static func succeeds(_ arguments: [String]) -> Bool {
        let process = Process()
        process.executableURL = URL(filePath: program)
        process.arguments = arguments
        process.environment = ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin"]
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }
}

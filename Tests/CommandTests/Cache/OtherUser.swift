import Foundation
import Glibc
import TestSupport

/// Runs commands as somebody who is neither the cache's owner nor of the owner's group.
enum OtherUser {
    /// Mostly `nobody`; no more than a number here.
    static let number = 65534

    /// Whether that can be done: root may become anybody, and everybody has to be able to start the program.
    static let isPossible: Bool = {
        guard geteuid() == 0 else { return false }
        let trial = Process()
        trial.executableURL = URL(filePath: "/usr/bin/setpriv")
        trial.arguments = arguments + [Workspace.binary, "--help"]
        trial.standardOutput = FileHandle.nullDevice
        trial.standardError = FileHandle.nullDevice
        guard (try? trial.run()) != nil else { return false }
        trial.waitUntilExit()
        let folder = FileManager.default.temporaryDirectory.path
        return trial.terminationStatus == 0 && isOpen(folder)
    }()

    fileprivate static let arguments = [
        "--reuid", "\(number)", "--regid", "\(number)", "--clear-groups", "--",
    ]

    /// Whether everybody may go through a folder and those above it.
    private static func isOpen(_ folder: String) -> Bool {
        var path = URL(filePath: folder).resolvingSymlinksInPath()
        while path.path != "/" {
            var status = stat()
            guard stat(path.path, &status) == 0, status.st_mode & 0o001 != 0 else { return false }
            path.deleteLastPathComponent()
        }
        return true
    }
}

extension Command {
    /// The same as another user; for root.
    func asOtherUser() -> Command {
        var command = self
        command.arguments = OtherUser.arguments + [executable] + arguments
        command.executable = "/usr/bin/setpriv"
        // The workspace is not theirs.
        command.environment["HOME"] = "/"
        return command
    }

    /// The same with that umask.
    func withUmask(_ mask: String) -> Command {
        var command = self
        command.arguments = ["-c", "umask \(mask); exec \"$0\" \"$@\"", executable] + arguments
        command.executable = "/bin/sh"
        return command
    }
}

extension Workspace {
    /// Lets everybody go through the workspace's own folder, as a cache for others needs it.
    func openFolder() throws {
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder)
    }

    func asOtherUser(_ arguments: String...) async throws -> CommandResult {
        try await command(arguments).asOtherUser().run()
    }
}

import Foundation
import Glibc
import TestSupport

/// Runs commands as a user who is neither the cache's owner nor in its group.
enum OtherUser {
    /// Usually `nobody`; here just a number.
    static let number = 65534

    /// Whether this is possible: it requires root, and a program that every user may execute.
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

    /// Whether every user may traverse a folder and its parents.
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
    /// The command as another user; requires root.
    func asOtherUser() -> Command {
        var command = self
        command.arguments = OtherUser.arguments + [executable] + arguments
        command.executable = "/usr/bin/setpriv"
        // The other user cannot access the workspace.
        command.environment["HOME"] = "/"
        return command
    }

    /// The command with that umask.
    func withUmask(_ mask: String) -> Command {
        inShell("umask \(mask); exec \"$0\" \"$@\"")
    }
}

extension Workspace {
    /// Lets every user traverse the workspace's folder, as a shared cache requires.
    func openFolder() throws {
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder)
    }

    func asOtherUser(_ arguments: String...) async throws -> CommandResult {
        try await command(arguments).asOtherUser().run()
    }
}

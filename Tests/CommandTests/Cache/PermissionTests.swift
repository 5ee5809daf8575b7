import Foundation
import Glibc
import TestSupport
import Testing

/// Messages about folders and files of the cache that its owner made inaccessible.
@Suite(
    .timeLimit(.minutes(15)),
    .enabled(if: OtherUser.isPossible, "needs root, and a program that everybody may start"))
struct PermissionTests {
    /// Stores a picture as the other user.
    private func put(in workspace: Workspace) async throws -> CommandResult {
        let file = "\(workspace.folder)/b.png"
        try Data(Fixtures.png(seed: 1)).write(to: URL(filePath: file))
        #expect(chmod(file, 0o644) == 0)
        return try await workspace.asOtherUser("put", "http://127.0.0.1:1/b", file)
    }

    /// The hint names path, mode and the command that helps.
    @Test(arguments: [
        ("", 0o400, "-R u+rwX"), ("", 0o500, "-R u+rwX"), ("/content", 0o400, "-R u+rwX"),
        ("/tmp", 0o000, "-R u+rwX"), ("/lock", 0o400, "u+rw"), ("/prefetch.sqlite", 0o400, "u+rw"),
        ("/prefetch.sqlite", 0o000, "u+rw"),
    ])
    func hintNamesPathAndMode(name: String, mode: Int, change: String) async throws {
        try await withOrigin { origin in
            origin.serve("/a", .image(Fixtures.png()))
            try await withWorkspace { workspace in
                try workspace.openFolder()
                _ = try await workspace.prefetch([origin.url("/a")])
                let owner = uid_t(OtherUser.number)
                for path in try FileManager.default.subpathsOfDirectory(atPath: workspace.cache)
                    + ["."]
                {
                    #expect(lchown("\(workspace.cache)/\(path)", owner, owner) == 0)
                }
                let path = workspace.cache + name
                #expect(chmod(path, mode_t(mode)) == 0)
                let run = try await put(in: workspace)
                #expect(run.status == 2, "\(run)")
                let digits = String(mode, radix: 8)
                let remedy = "chmod \(change) \(path)"
                #expect(
                    run.error.contains(
                        "hint: \(path) has mode \(digits == "0" ? "0000" : "0" + digits): `\(remedy)`"
                    ), "\(run)")
                var repair = workspace.command([])
                repair.executable = "/bin/sh"
                repair.arguments = ["-c", remedy]
                #expect(try await repair.asOtherUser().run().status == 0)
                let again = try await workspace.asOtherUser("list")
                #expect(again.status == 0 && again.output.contains("/a"), "\(again)")
            }
        }
    }

    @Test func hintNamesFolderOfAnotherUser() async throws {
        try await withWorkspace { workspace in
            try workspace.openFolder()
            let run = try await put(in: workspace)
            #expect(run.status == 2, "\(run)")
            #expect(
                run.error.contains(
                    """
                     has mode 0755 and belongs to another user (uid 0); run as that user, or name \
                    another place with --cache-dir
                    """), "\(run)")
        }
    }
}

import Foundation
import Glibc
import TestSupport
import Testing

/// An export that fails or is killed leaves the folder as it was.
@Suite(.timeLimit(.minutes(10)))
struct ExportSafetyTests {
    private static let count = 40

    private func withImages(_ body: (Workspace, [String]) async throws -> Void) async throws {
        try await withOrigin { origin in
            let lines = (0..<ExportSafetyTests.count).map { index in
                origin.serve(
                    "/\(index % 4)/\(index).png",
                    .image(Fixtures.png(width: 60, height: 60, seed: index, isNoise: true)))
                return origin.url("/\(index % 4)/\(index).png")
            }
            try await withWorkspace { workspace in
                let run = try await workspace.prefetch(lines, "--variant", "s=2x2,png")
                #expect(run.result.status == 0, "\(run.result)")
                try await body(workspace, lines)
            }
        }
    }

    /// The digest of all names and bytes, without the export's own.
    private func digest(_ folder: String, in workspace: Workspace) async throws -> String {
        var command = workspace.command([
            "-c",
            "cd \(folder) && find . -type f ! -path './.prefetch-export*' -print0 | sort -z | "
                + "xargs -0 sha256sum | sha256sum",
        ])
        command.executable = "/bin/sh"
        return try await command.run().output
    }

    /// Killed at each of its file operations in turn, by strace.
    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/strace")))
    func killedExportLeavesOldOrNewFolder() async throws {
        try await withImages { workspace, _ in
            func export(_ folder: String, _ variant: String) -> [String] {
                ["export", folder, "--layout", "mirror", "--variant", variant]
            }
            for variant in ["main", "s"] {
                #expect(try await workspace.command(export(variant, variant)).run().status == 0)
            }
            let old = try await digest("main", in: workspace)
            let new = try await digest("s", in: workspace)
            #expect(old != new)
            var ends: Set<String> = []
            for call in ["linkat", "openat", "renameat2", "unlinkat", "syncfs", "mkdirat", "fsync"]
            {
                for number in [1, 2, 5, 20, 41, 60, 100] {
                    try? FileManager.default.removeItem(atPath: workspace.folder + "/out")
                    #expect(try await workspace.command(export("out", "main")).run().status == 0)
                    var traced = workspace.command(
                        [
                            "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)", "-e",
                            "inject=\(call):signal=KILL:when=\(number)", Workspace.binary,
                        ] + export("out", "s"))
                    traced.executable = "/usr/bin/strace"
                    _ = try await traced.run()
                    let after = try await digest("out", in: workspace)
                    #expect([old, new].contains(after), "\(call) \(number)")
                    ends.insert(after)
                    let again = try await workspace.command(export("out", "s")).run()
                    #expect(again.status == 0, "\(call) \(number): \(again)")
                    #expect(try await digest("out", in: workspace) == new)
                    let names = try FileManager.default.contentsOfDirectory(
                        atPath: workspace.folder)
                    #expect(!names.contains { $0.hasPrefix(".out") }, "\(names)")
                }
            }
            #expect(ends == [old, new])
        }
    }

    /// The next export completes a killed `--update`.
    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/strace")))
    func killedUpdateIsCompleted() async throws {
        try await withImages { workspace, lines in
            try workspace.manifest(Array(lines.prefix(20)), name: "some.txt")
            try workspace.manifest(Array(lines.suffix(30)), name: "others.txt")
            let flags = ["--layout", "mirror", "--update", "--delete"]
            #expect(
                try await workspace.run("export", "goal", "others.txt", "--layout", "mirror")
                    .status == 0)
            let goal = try await digest("goal", in: workspace)
            for call in ["renameat", "unlinkat", "syncfs", "openat"] {
                for number in [1, 2, 3, 10, 21, 30, 45] {
                    try? FileManager.default.removeItem(atPath: workspace.folder + "/out")
                    _ = try await workspace.command(["export", "out", "some.txt"] + flags).run()
                    var traced = workspace.command(
                        [
                            "-f", "-qq", "-o", "/dev/null", "-e", "trace=\(call)", "-e",
                            "inject=\(call):signal=KILL:when=\(number)", Workspace.binary,
                            "export", "out", "others.txt",
                        ] + flags)
                    traced.executable = "/usr/bin/strace"
                    _ = try await traced.run()
                    let again = try await workspace.command(
                        ["export", "out", "others.txt"] + flags
                    )
                    .run()
                    #expect(again.status == 0, "\(call) \(number): \(again)")
                    #expect(try await digest("out", in: workspace) == goal, "\(call) \(number)")
                }
            }
        }
    }

    @Test(
        .enabled(if: Namespace.allowsMounts, "a small file system cannot be mounted here"),
        arguments: [[], ["--update"]])
    func fullDiskLeavesTheOldFolder(_ flags: [String]) async throws {
        try await withImages { workspace, lines in
            try workspace.manifest([lines[0]], name: "one.txt")
            var command = workspace.command([
                "-rm", "/bin/sh", "-c",
                """
                mkdir disk && mount -t tmpfs -o size=200k tmpfs disk &&
                "$0" export disk/out one.txt --layout mirror "$@" || exit 3
                before=$(find disk -type f -printf '%p %s\\n' | sort)
                "$0" export disk/out --layout mirror "$@"; echo "status $?"
                after=$(find disk -type f -printf '%p %s\\n' | sort)
                [ "$before" = "$after" ] && echo unchanged
                """, Workspace.binary,
            ])
            command.arguments += flags
            command.executable = Namespace.program
            let result = try await command.run()
            #expect(result.output == "status 2\nunchanged\n", "\(result)")
            #expect(result.error.contains("free some space"), "\(result)")
        }
    }

    /// Two exports at a time: one of them is refused, and both leave a whole folder.
    @Test func concurrentExportsTakeTurns() async throws {
        try await withImages { workspace, _ in
            for _ in 0..<20 {
                let exports = try ["main", "s"].map { variant in
                    try workspace.command([
                        "export", "out", "--layout", "mirror", "--variant", variant, "-q",
                    ]).start()
                }
                var statuses: [Int32?] = []
                for export in exports { statuses.append(await export.wait().status) }
                #expect(statuses.allSatisfy { $0 == 0 || $0 == 75 }, "\(statuses)")
                #expect(statuses.contains(0))
                let files = try FileManager.default.subpathsOfDirectory(
                    atPath: workspace.folder + "/out")
                #expect(files.count { $0.hasSuffix(".png") } == ExportSafetyTests.count)
            }
        }
    }
}

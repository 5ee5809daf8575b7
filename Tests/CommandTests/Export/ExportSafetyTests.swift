import Foundation
import Glibc
import TestSupport
import Testing

/// An export that fails or is killed leaves the folder as it was.
@Suite(.timeLimit(.minutes(15)))
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
                    let killed = try await traced.run()
                    let after = try await digest("out", in: workspace)
                    #expect([old, new].contains(after), "\(call) \(number)")
                    ends.insert(after)
                    let again = try await workspace.command(export("out", "s")).run()
                    #expect(again.status == 0, "\(call) \(number): \(again)")
                    #expect(try await digest("out", in: workspace) == new)
                    let names = try FileManager.default.contentsOfDirectory(
                        atPath: workspace.folder)
                    #expect(!names.contains { $0.hasPrefix(".out") }, "\(names)")
                    // It has no more calls than these.
                    if killed.status == 0 { break }
                }
            }
            #expect(ends == [old, new])
        }
    }

    /// In a shared folder another user may give the name of a temporary folder to any folder.
    @Test(
        .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/strace")),
        arguments: [".out.prefetch-new", ".out.prefetch-old"])
    func otherFolderUnderATemporaryNameStays(name: String) async throws {
        try await withImages { workspace, _ in
            let shared = workspace.folder + "/shared"
            try FileManager.default.createDirectory(
                atPath: "\(shared)/\(name)", withIntermediateDirectories: true)
            try #require(chmod(shared, 0o777) == 0)
            try workspace.write(Array("precious".utf8), to: "shared/\(name)/notes.txt")
            let export = ["export", "shared/out", "--layout", "mirror"]
            let refused = try await workspace.command(export).run()
            #expect(refused.status == 2, "\(refused)")
            #expect(refused.error.contains("\(name): is in the way"), "\(refused)")
            let notes = "\(shared)/\(name)/notes.txt"
            #expect(try String(contentsOfFile: notes, encoding: .utf8) == "precious")
            try FileManager.default.removeItem(atPath: "\(shared)/\(name)")

            // That of a killed export is used again.
            var traced = workspace.command(
                [
                    "-f", "-qq", "-o", "/dev/null", "-e", "trace=syncfs", "-e",
                    "inject=syncfs:signal=KILL", Workspace.binary,
                ] + export)
            traced.executable = "/usr/bin/strace"
            _ = try await traced.run()
            let left = try FileManager.default.contentsOfDirectory(atPath: shared)
            #expect(left == [".out.prefetch-new"])
            let again = try await workspace.command(export).run()
            #expect(again.status == 0, "\(again)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: shared) == ["out"])
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
                    let killed = try await traced.run()
                    let again = try await workspace.command(
                        ["export", "out", "others.txt"] + flags
                    )
                    .run()
                    #expect(again.status == 0, "\(call) \(number): \(again)")
                    #expect(try await digest("out", in: workspace) == goal, "\(call) \(number)")
                    if killed.status == 0 { break }
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

    /// Links in the folder and paths in its state lead out of it.
    @Test func nothingOutsideOfTheFolderIsRemoved() async throws {
        try await withImages { workspace, lines in
            try workspace.manifest(Array(lines.suffix(30)), name: "others.txt")
            let flags = ["--layout", "mirror", "--update", "--delete"]
            #expect(try await workspace.run("export", "out", "--layout", "mirror").status == 0)
            var move = workspace.command([
                "-euc",
                """
                for folder in out/*/0; do mv "$folder" outside; ln -s "$PWD/outside" "$folder"; done
                printf '%032d - 1 5 ../victim\\0' 0 >>out/.prefetch-export
                echo 1 >victim
                """,
            ])
            move.executable = "/bin/sh"
            #expect(try await move.run().status == 0)
            let before = try await digest("outside", in: workspace)
            for _ in 0..<2 {
                _ = try await workspace.command(["export", "out", "others.txt"] + flags).run()
                #expect(try await digest("outside", in: workspace) == before)
                #expect(FileManager.default.fileExists(atPath: workspace.folder + "/victim"))
                // Then with a state that has no such path.
                var mend = workspace.command([
                    "-i", "s/[0 ]*- 1 5 ..\\/victim\\x00//", "out/.prefetch-export",
                ])
                mend.executable = "/bin/sed"
                #expect(try await mend.run().status == 0)
            }
        }
    }

    /// Files that are put into the folder during an export, which strace delays.
    @Test(
        .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/strace")),
        arguments: [[], ["--update"]])
    func filesAddedMeanwhileStay(_ flags: [String]) async throws {
        try await withImages { workspace, lines in
            try workspace.manifest([lines[0]], name: "one.txt")
            let first = try await workspace.command(
                ["export", "out", "one.txt", "--layout", "mirror"]
            ).run()
            #expect(first.status == 0, "\(first)")
            var traced = workspace.command(
                [
                    "-f", "-qq", "-o", "/dev/null", "-e", "trace=syncfs", "-e",
                    "inject=syncfs:delay_enter=3000000", Workspace.binary, "export", "out",
                    "--layout", "mirror",
                ] + flags)
            traced.executable = "/usr/bin/strace"
            let running = try traced.start()
            let stage =
                flags.isEmpty ? ".out.prefetch-new" : "out/.prefetch-export-new"
            let origin = try #require(URL(string: lines[4]))
            let path = "out/\(origin.host() ?? ""):\(origin.port ?? 0)\(origin.path)"
            try await eventually("the new files are written") {
                FileManager.default.fileExists(
                    atPath: "\(workspace.folder)/\(stage)/.prefetch-export")
            }
            try workspace.write(Array("mine".utf8), to: path)
            let result = await running.wait()
            #expect(result.status == (flags.isEmpty ? 2 : 1), "\(result)")
            #expect(result.error.contains("no export wrote"), "\(result)")
            #expect(
                try Data(contentsOf: URL(filePath: "\(workspace.folder)/\(path)"))
                    == Data("mine".utf8))
            let again = try await workspace.command(
                ["export", "out", "--layout", "mirror"] + flags
            ).run()
            #expect(again.status == (flags.isEmpty ? 2 : 1), "\(again)")
        }
    }

    @Test(arguments: [["--update"], ["--update", "--delete"], []])
    func filesBecomeFolders(_ flags: [String]) async throws {
        try await withWorkspace { workspace in
            let lists = [
                ["http://h.example/x", "http://h.example/xx/1.png"],
                ["http://h.example/x/y.png", "http://h.example/xx"],
            ]
            for url in lists.joined() {
                try workspace.write(Fixtures.png(seed: url.utf8.count), to: "image.png")
                #expect(try await workspace.run("put", url, "image.png", "-q").status == 0)
            }
            for list in lists + lists {
                try workspace.manifest(list, name: "list.txt")
                let export = try await workspace.command(
                    ["export", "out", "list.txt", "--layout", "mirror"] + flags
                ).run()
                #expect(export.status == 0, "\(export)")
                for url in list {
                    let path = workspace.folder + "/out/" + url.dropFirst("http://".count)
                    var isFolder: ObjCBool = true
                    #expect(FileManager.default.fileExists(atPath: path, isDirectory: &isFolder))
                    #expect(!isFolder.boolValue, "\(path)")
                }
            }
        }
    }

    /// One image without a possible name does not stop the others.
    @Test(arguments: [
        (
            "mirror",
            ["http://h.example/q", "http://h.example/q/y.png", "http://h.example/q~file/z.png"], 3
        ),
        ("workbox", ["http://precache-manifest.json/x.jpg", "http://h.example/a.png"], 1),
        (
            "imagefolder",
            ["http://h.example/a.png class=metadata.jsonl", "http://h.example/b.png"], 1
        ),
        (
            "sdwebimage",
            [
                "http://h.example/a." + String(repeating: "%E4%B8%AD", count: 222),
                "http://h.example/b.png",
            ], 1
        ),
        (
            "mirror",
            ["http://h.example/" + String(repeating: "a/", count: 200), "http://h.example/b"], 1
        ),
    ])
    func oneNameDoesNotStopTheOthers(
        _ layout: String, _ lines: [String], _ exported: Int
    ) async throws {
        try await withWorkspace { workspace in
            try workspace.write(Fixtures.png(seed: 1), to: "image.png")
            for line in lines {
                let parts = line.split(separator: " ").map(String.init)
                let put = try await workspace.command(
                    ["put", parts[0], "image.png", "-q"]
                        + parts.dropFirst().flatMap { ["--attr", $0] }
                ).run()
                #expect(put.status == 0, "\(put)")
            }
            for _ in 0..<2 {
                let export = try await workspace.run("export", "out", "--layout", layout, "--json")
                #expect(export.status == (exported == lines.count ? 0 : 1), "\(export)")
                #expect(export.output.contains(#""images":\#(exported),"#), "\(export)")
            }
        }
    }

    @Test func nothingToExportLeavesTheFolder() async throws {
        try await withImages { workspace, lines in
            #expect(try await workspace.run("export", "out", "--layout", "mirror").status == 0)
            let before = try await digest("out", in: workspace)
            for list in ["", "http://h.example/none.png\n"] {
                try workspace.write(Array(list.utf8), to: "list.txt")
                let export = try await workspace.run(
                    "export", "out", "list.txt", "--layout", "mirror")
                #expect(export.status == 1 && export.error.contains("unchanged"), "\(export)")
                #expect(try await digest("out", in: workspace) == before)
            }
            let empty = try await workspace.run(
                "export", "out", "/dev/null", "--layout", "mirror", "--allow-empty")
            #expect(empty.status == 0, "\(empty)")
            #expect(
                try FileManager.default.contentsOfDirectory(atPath: workspace.folder + "/out")
                    == [".prefetch-export"])

            // The index of a layout names exported images only.
            let get = try await workspace.run("get", lines[3])
            let path = get.output.trimmingCharacters(in: .newlines)
            let whole = try Data(contentsOf: URL(filePath: path))
            try Data().write(to: URL(filePath: path))
            let incomplete = try await workspace.run("export", "web", "--layout", "workbox")
            try whole.write(to: URL(filePath: path))
            #expect(incomplete.status == 1, "\(incomplete)")
            let index = try String(
                contentsOfFile: workspace.folder + "/web/precache-manifest.json", encoding: .utf8)
            #expect(!index.contains("\"\(lines[3])\"") && index.contains("\"\(lines[4])\""))
        }
    }
}

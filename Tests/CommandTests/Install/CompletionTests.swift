import Foundation
import TestSupport
import Testing

/// The completion scripts in real shells, on a terminal.
@Suite(.timeLimit(.minutes(15)))
struct CompletionTests {
    /// A command line up to the key Tab, and words of the completed line or of the candidates.
    private struct Case {
        let line: String
        let wanted: [String]

        init(_ line: String, _ wanted: String...) {
            self.line = line
            self.wanted = wanted
        }
    }

    private static let cases = [
        Case("prefetch ru", "run"),
        Case("prefetch --enc", "--encode"),
        Case("prefetch run --enc", "--encode"),
        Case("prefetch run --encode ", "avif", "original"),
        Case("prefetch --encode j", "jpeg"),
        Case("prefetch --encode ", "avif", "original"),
        Case("prefetch notes.txt --ord", "--order"),
        Case("prefetch notes.txt --order ", "lifo", "random"),
        Case("prefetch --http", "--http1.1"),
        Case("prefetch failed l", "list"),
        Case("prefetch list --so", "--sort"),
        Case("prefetch note", "notes.txt"),
        Case("prefetch run note", "notes.txt"),
        Case("prefetch put x note", "notes.txt"),
        Case("prefetch attr set x y --file note", "notes.txt"),
        Case("prefetch prune --unlisted note", "notes.txt"),
        Case("prefetch get --variant ", "main", "thumb"),
        Case("prefetch list --variant th", "thumb"),
        Case("prefetch list --host ", "127.0.0.1:8000", "cdn.example.com"),
        Case("prefetch hosts clear cd", "cdn.example.com"),
        Case("prefetch list --cache-dir other --host el", "elsewhere.example"),
        Case("prefetch notes.txt --profile ni", "nightly"),
        Case("prefetch stats --profile ", "nightly", "weekly"),
        Case("prefetch stats --config own.toml --profile ", "mine"),
        Case("prefetch @", "shop", "archive"), Case("prefetch @sh", "@shop"),
        Case("prefetch run @sh", "@shop"), Case("prefetch run @", "shop", "archive"),
        Case("prefetch plan notes.txt @ar", "@archive"),
        Case("prefetch export folder @ar", "@archive"),
        Case("prefetch export folder not", "notes.txt"),
        Case("prefetch import folder @ar", "@archive"),
        Case("prefetch import folder not", "notes.txt"),
        Case("prefetch prune --unlisted @ar", "@archive"),
    ]

    /// A shell, and a file of its package.
    private static let shells = [
        ("bash", "/usr/share/bash-completion/bash_completion"), ("zsh", "/bin/zsh"),
        ("fish", "/usr/bin/fish"),
    ].filter { FileManager.default.fileExists(atPath: $0.1) }.map(\.0)

    @Test(arguments: shells)
    func completes(shell: String) async throws {
        try await withWorkspace { workspace in
            // Without a cache it makes none, and reports nothing.
            let early = try await complete(
                ["prefetch list --host ", "prefetch get --cache-dir notes.txt --variant "],
                in: shell, workspace)
            for text in early { #expect(!text.contains("prefetch:"), "\(text)") }
            #expect(!FileManager.default.fileExists(atPath: workspace.cache))

            try await fill(workspace)
            let lines = CompletionTests.cases.map(\.line)
            let shown = try await complete(lines, in: shell, workspace)
            for (this, shown) in zip(CompletionTests.cases, shown) {
                for word in this.wanted { #expect(shown.contains(word), "\(this.line)") }
            }
            try await expectNothingRun(shell, workspace)
        }
    }

    /// A program of the current folder, and names in a cache that a shell would expand.
    private func expectNothingRun(_ shell: String, _ workspace: Workspace) async throws {
        try workspace.write(Array("#!/bin/sh\n>ran\n".utf8), to: "prefetch")
        try #require(chmod("\(workspace.folder)/prefetch", 0o755) == 0)
        try await workspace.runSQL(
            """
            INSERT INTO total (host, format, name, superseded, variants, bytes)
            VALUES ('https://$(>ran)x', 'png', 0, 0, 1, 1), ('`>ran`', 'png', 0, 0, 1, 1)
            """)
        try workspace.write([], to: "$(>ran).txt")
        let shown = try await complete(
            [
                "./prefetch list --host ", "prefetch list --host ", "prefetch list --host $",
                "prefetch run ", "prefetch run $",
            ], in: shell, workspace)
        #expect(shown[1].contains("cdn.example.com"), "\(shown[1])")
        #expect(!shown[1].contains("ran"), "\(shown[1])")
        #expect(!FileManager.default.fileExists(atPath: "\(workspace.folder)/ran"))
        try await workspace.runSQL("DELETE FROM total WHERE host LIKE '%ran%'")
    }

    private func fill(_ workspace: Workspace) async throws {
        try workspace.manifest(
            [
                "[profile.nightly]", "quiet = true", "[profile.weekly]", "[list.shop]",
                "file = \"notes.txt\"", "[list.archive]", "file = \"notes.txt\"",
            ], name: "prefetch.toml")
        try workspace.manifest(["[profile.mine]"], name: "own.toml")
        try workspace.write(Fixtures.file("baseline.jpg"), to: "image.jpg")
        for (url, flags) in [
            ("http://127.0.0.1:8000/a.jpg", ["--variant", "thumb=8x8"]),
            ("https://cdn.example.com/a.jpg", []),
            ("https://elsewhere.example/a.jpg", ["--cache-dir", "other"]),
        ] {
            let result = try await workspace.command(["put", url, "image.jpg"] + flags).run()
            try #require(result.status == 0, "\(result)")
        }
    }

    /// The terminal's text for each line.
    private func complete(
        _ lines: [String], in shell: String, _ workspace: Workspace
    ) async throws -> [String] {
        let text = try await workspace.run("--generate-completion-script", shell)
        try #require(text.status == 0, "\(text)")
        try workspace.write(Array(text.output.utf8), to: "completions")
        try workspace.write([], to: "notes.txt")
        let driver = SourceTree.root.appending(path: "Tests/CommandTests/Install/terminal.py")
        var command = workspace.command(["-I", driver.path, shell, "completions"])
        let program = URL(filePath: command.executable)
        // The installed program, under any name.
        try FileManager.default.createDirectory(
            atPath: "\(workspace.folder)/bin", withIntermediateDirectories: true)
        try? FileManager.default.createSymbolicLink(
            atPath: "\(workspace.folder)/bin/prefetch", withDestinationPath: program.path)
        command.environment["PATH"] = "\(workspace.folder)/bin:/usr/bin:/bin"
        command.executable = "/usr/bin/python3"
        command.input = .bytes(Array(try JSONEncoder().encode(lines)))
        let result = try await command.run()
        try #require(result.status == 0, "\(result)")
        return try JSONDecoder().decode([String].self, from: Data(result.outputBytes))
    }
}

import Foundation
import TestSupport
import Testing

/// The completion scripts, as the shells run them.
@Suite(.timeLimit(.minutes(5)))
struct CompletionTests {
    private struct Case: Sendable, CustomTestStringConvertible {
        let line: String
        let wanted: [String]
        var testDescription: String { line }
    }

    private static let cases = [
        Case(line: "prefetch ru", wanted: ["run"]),
        Case(line: "prefetch --enc", wanted: ["--encode"]),
        Case(line: "prefetch run --enc", wanted: ["--encode"]),
        Case(line: "prefetch run --encode j", wanted: ["jpeg"]),
        Case(line: "prefetch --encode j", wanted: ["jpeg"]),
        Case(line: "prefetch notes.txt --ord", wanted: ["--order"]),
        Case(line: "prefetch notes.txt --order l", wanted: ["lifo"]),
        Case(line: "prefetch --http", wanted: ["--http1.1"]),
        Case(line: "prefetch failed l", wanted: ["list"]),
        Case(line: "prefetch list --so", wanted: ["--sort"]),
        Case(line: "prefetch note", wanted: ["notes.txt"]),
        Case(line: "prefetch run note", wanted: ["notes.txt"]),
        Case(line: "prefetch put x note", wanted: ["notes.txt"]),
        Case(line: "prefetch attr set x y --file note", wanted: ["notes.txt"]),
        Case(line: "prefetch prune --unlisted note", wanted: ["notes.txt"]),
    ]

    private func complete(
        _ workspace: Workspace, _ shell: String, _ script: (Case) -> String
    ) async throws {
        let text = try await workspace.run("--generate-completion-script", shell)
        #expect(text.status == 0, "\(text)")
        try workspace.write(Array(text.output.utf8), to: "completions")
        try workspace.write([], to: "notes.txt")
        for this in CompletionTests.cases {
            var command = workspace.command(["-c", script(this)])
            let folder = URL(filePath: command.executable).deletingLastPathComponent().path
            command.environment["PATH"] = "\(folder):/usr/bin:/bin"
            command.executable = "/usr/bin/\(shell)"
            let result = try await command.run()
            // fish prints a description after a tab.
            let found = result.outputLines.compactMap {
                $0.split(separator: "\t").first.map(String.init)
            }
            #expect(found == this.wanted, "\(this.line): \(result)")
        }
    }

    @Test func bash() async throws {
        try await withWorkspace { workspace in
            try await complete(workspace, "bash") { this in
                let words = this.line.split(separator: " ")
                return """
                    source ./completions
                    COMP_WORDS=(\(this.line)); COMP_CWORD=\(words.count - 1); COMP_LINE='\(this.line)'
                    COMP_POINT=${#COMP_LINE}
                    _prefetch prefetch '\(words[words.count - 1])' '\(words[words.count - 2])'
                    printf '%s\\n' "${COMPREPLY[@]}"
                    """
            }
        }
    }

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/fish")))
    func fish() async throws {
        try await withWorkspace { workspace in
            try await complete(workspace, "fish") { this in
                "source ./completions; complete -C '\(this.line)'"
            }
        }
    }

    /// A value is missing, without which the parser.s script for fish never ends.
    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/fish")))
    func fishOffersValuesBehindAnOption() async throws {
        try await withWorkspace { workspace in
            let text = try await workspace.run("--generate-completion-script", "fish")
            try workspace.write(Array(text.output.utf8), to: "completions")
            var command = workspace.command([
                "-c", "source ./completions; complete -C 'prefetch run --encode '",
            ])
            command.executable = "/usr/bin/fish"
            let result = try await command.run()
            #expect(result.output.contains("avif"), "\(result)")
        }
    }
}

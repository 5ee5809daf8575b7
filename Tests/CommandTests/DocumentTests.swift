import Foundation
import TestSupport
import Testing

/// Compares quotations in the documents with the output of the program.
@Suite(.timeLimit(.minutes(15)))
struct DocumentTests {
    private static let root = SourceTree.root

    @Test(arguments: ["flags", "configuration"])
    func theManualIsWhatTheCommandSays(document: String) async throws {
        try await withWorkspace { workspace in
            let script = DocumentTests.root.appending(path: "Scripts/make-flags").path
            let command = Command(
                executable: "/usr/bin/python3",
                arguments: [script, "--print", "--binary", Workspace.binary, document],
                environment: workspace.environment, folder: workspace.folder)
            let result = try await command.run()
            #expect(result.status == 0, "\(result)")
            let manual = try String(
                contentsOf: DocumentTests.root.appending(path: "docs/\(document).md"),
                encoding: .utf8)
            #expect(
                result.output == manual,
                "docs/\(document).md is out of date; run Scripts/make-flags")
        }
    }
}

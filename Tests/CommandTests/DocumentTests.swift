import Foundation
import TestSupport
import Testing

/// Compares quotations in the documents with the output of the program.
@Suite(.timeLimit(.minutes(15)))
struct DocumentTests {
    private static let root = SourceTree.root

    static func document(_ name: String) throws -> String {
        try String(contentsOf: root.appending(path: name), encoding: .utf8)
    }

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
            let manual = try DocumentTests.document("docs/\(document).md")
            #expect(
                result.output == manual,
                "docs/\(document).md is out of date; run Scripts/make-flags")
        }
    }

    @Test func theSchemaIsThatOfANewDatabase() async throws {
        let documented =
            try statements(in: DocumentTests.document("docs/cache.md"))
            + statements(in: "\n```sql\n\(DocumentTests.document("docs/schema.sql"))\n```\n")
        try await withWorkspace { workspace in
            let run = try await workspace.prefetch([], "--allow-empty")
            #expect(run.result.status == 0, "\(run.result)")
            let stored = try await workspace.query(
                "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL"
            ).compactMap { $0[0].map(normalized) }
            #expect(stored.count > 15)
            #expect(documented.filter { !stored.contains($0) } == [], "is not in the database")
            #expect(stored.filter { !documented.contains($0) } == [], "is not documented")
        }
    }

    /// The statements of the blocks of SQL in a document.
    private func statements(in document: String) throws -> [String] {
        let blocks = document.matches(of: /(?s)\n```sql\n(.*?)\n```\n/).map { $0.output.1 }
        let text = blocks.joined(separator: "\n").replacing(#/--[^\n]*/#, with: "")
        // A trigger has semicolons in it.
        let starts = text.matches(of: #/(?m)^CREATE /#).map(\.range.lowerBound) + [text.endIndex]
        return zip(starts, starts.dropFirst()).map { normalized(String(text[$0..<$1])) }
    }

    /// The statement without the white space that means nothing.
    private func normalized(_ statement: String) -> String {
        var statement = statement.trimmingCharacters(in: .whitespacesAndNewlines)
        if statement.hasSuffix(";") { statement.removeLast() }
        return statement.replacing(/\s+/, with: " ").replacing(#/ ?([(),;]) ?/#) { $0.output.1 }
    }
}

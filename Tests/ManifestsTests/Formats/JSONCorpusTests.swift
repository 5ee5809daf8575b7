import Foundation
import PrefetchModel
import Testing

@testable import Manifests

/// The shared files about JSON parsing, each as a member of a line. Their names begin with `y_` for
/// valid JSON, `n_` for invalid, `i_` where parsers differ.
@Suite(.timeLimit(.minutes(15)))
struct JSONCorpusTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private static let files: [URL] = {
        let shared =
            ProcessInfo.processInfo.environment["PREFETCH_SHARED_DATA"]
            ?? URL(filePath: #filePath).appending(path: "../../../../../shared/data")
            .standardized.path
        let folder = URL(filePath: shared).appending(path: "text/json-parsing")
        let files = try? FileManager.default.contentsOfDirectory(
            at: folder, includingPropertiesForKeys: nil)
        return (files ?? []).filter { $0.pathExtension == "json" }
            .sorted { $0.path < $1.path }
    }()

    @Test(.enabled(if: !JSONCorpusTests.files.isEmpty))
    func verdictsAreThoseOfTheNames() throws {
        for file in JSONCorpusTests.files {
            var value = Array(try Data(contentsOf: file))
            while let last = value.last, [0x0A, 0x0D].contains(last) { value.removeLast() }
            // A line feed ends the line.
            guard !value.contains(0x0A) else { continue }
            let line = Array(#"{"url":"http://a.b/1","x":"#.utf8) + value + Array("}\n".utf8)
            let next = Array(#"{"url":"http://a.b/2"}"#.utf8)
            let (entries, error) = try folder.read(line + next, .jsonl)
            let name = file.lastPathComponent
            #expect(error == nil && entries.count == 2, "\(name)")
            guard entries.count == 2 else { continue }
            #expect(entries[1].problem == nil, "\(name)")
            switch name.first {
            case "y": #expect(entries[0].problem == nil, "\(name)")
            case "n":
                // Numbers that Python writes, and bytes that are not UTF-8, are read.
                let isRead = ["NaN.", "infinity.", "invalid_utf8", "invalid-utf-8"].contains {
                    name.contains($0)
                }
                if !isRead { #expect(entries[0].problem != nil, "\(name)") }
            default: break
            }
            // The columns go into the report as they are.
            guard let columns = entries[0].columns else { continue }
            let object = try JSONSerialization.jsonObject(with: Data(columns.utf8))
            #expect((object as? [String: Any])?["x"] != nil, "\(name)")
        }
    }
}

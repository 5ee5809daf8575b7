import Foundation

/// Checks HTML pages with Python's parser, see `page.py`.
package enum PageJudge {
    /// Returns the complaints about a page; empty for a good one.
    package static func complaints(_ page: [UInt8]) async throws -> String {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("page-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appendingPathComponent("page.html")
        try Data(page).write(to: file)
        // Well-formed XML is more than HTML requires: it shows that nothing escapes an element.
        do {
            _ = try XMLDocument(file.path)
        } catch {
            return "\(error)"
        }
        return try await complaints(file: file.path, folder: folder.path)
    }

    private static func complaints(file: String, folder: String) async throws -> String {
        let script = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "page.py")
        let result = try await Command(
            executable: "/usr/bin/python3", arguments: [script.path, file], environment: [:],
            folder: folder
        ).run()
        return result.status == 0 ? "" : result.output + result.error
    }
}

extension Workspace {
    /// Returns the complaints about a page in the folder; empty for a good one.
    package func pageComplaints(_ name: String) async throws -> String {
        try await PageJudge.complaints(
            Array(try Data(contentsOf: URL(filePath: "\(folder)/\(name)"))))
    }
}

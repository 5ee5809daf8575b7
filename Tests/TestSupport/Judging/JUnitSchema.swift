import Foundation

extension Workspace {
    /// Checks a file of test results by the schema of Jenkins' xUnit plugin
    /// (<https://github.com/jenkinsci/xunit-plugin>).
    ///
    /// - Returns: xmllint's complaints; empty for a valid file.
    package func junitComplaints(_ name: String) async throws -> String {
        let schema = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "junit-10.xsd")
        let result = try await Command(
            executable: "/usr/bin/xmllint",
            arguments: ["--noout", "--nonet", "--schema", schema.path, name], environment: [:],
            folder: folder
        ).run()
        return result.status == 0 ? "" : result.error
    }
}

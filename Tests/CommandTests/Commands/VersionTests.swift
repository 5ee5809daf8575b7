import Foundation
import TestSupport
import Testing

/// `--version`: the commit, the schema and the loaded libraries.
@Suite(.timeLimit(.minutes(15)))
struct VersionTests {
    /// The loaded libraries; the test process has loaded the same ones.
    @Test func versionListsCommitSchemaAndLibraries() async throws {
        try await withWorkspace { workspace in
            let result = try await workspace.run("--version")
            let lines = result.outputLines
            let names = [
                "prefetch", "commit", "cache schema", "libcurl", "SQLite", "libpng",
                "libjpeg-turbo", "libdeflate", "zlib", "expat", "libwebp", "libavif", "giflib",
                "liblcms2", "libtiff", "libheif", "libjxl", "openjpeg",
            ]
            try #require(lines.count == names.count, "\(result)")
            for (line, name) in zip(lines, names) {
                #expect(line.hasPrefix(name + " "), "\(line)")
                #expect(line.count > name.count + 1)
            }
            let curl = try await Command(
                executable: "/usr/bin/curl", arguments: ["-V"], environment: [:], folder: "/tmp"
            ).run()
            let version = try #require(curl.output.split(separator: " ").dropFirst().first)
            #expect(lines[3].hasPrefix("libcurl \(version) ("), "\(lines[3])")
            #expect(lines[3].contains("OpenSSL/") && lines[3].contains("nghttp2/"))
            let schema = try await workspace.schemaVersion()
            #expect(lines[2] == "cache schema \(schema)")
            for arguments in [["stats", "--version"], ["run", "--version"], ["-V"]] {
                let other = try await workspace.command(arguments).run()
                #expect(other.output == result.output, "\(other)")
            }
        }
    }

    /// Determined by each build with git.
    @Test func recordsBuiltCommit() async throws {
        let root = SourceTree.root.path
        func git(_ arguments: String...) async throws -> CommandResult {
            try await Command(
                executable: "/usr/bin/git", arguments: arguments,
                environment: ["PATH": "/usr/bin:/bin", "HOME": "/"], folder: root
            ).run()
        }
        try await withWorkspace(without: [.retries, .probes]) { workspace in
            let folder = workspace.folder + "/recorded"
            let script = Command(
                executable: root + "/Scripts/record-commit", arguments: [folder],
                environment: ["PATH": "/usr/bin:/bin", "HOME": "/"], folder: workspace.folder)
            #expect(try await script.run().status == 0)
            let path = folder + "/Recorded.swift"
            let text = try String(contentsOfFile: path, encoding: .utf8)
            let head = try await git("rev-parse", "HEAD")
            let hash = head.status == 0 ? "\"\(head.output.dropLast())\"" : "nil"
            #expect(text.hasPrefix("let recordedHash: String? = \(hash)\nlet recordedChanges = "))
            let written = try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber]
            let time = try FileManager.default.attributesOfItem(atPath: path)[.modificationDate]
            #expect(try await script.run().status == 0)
            let again = try FileManager.default.attributesOfItem(atPath: path)
            #expect(again[.modificationDate] as? Date == time as? Date)
            #expect(again[.systemFileNumber] as? Int == written as? Int)
        }
    }
}

extension Workspace {
    /// The schema version of a new cache.
    fileprivate func schemaVersion() async throws -> String {
        _ = try await prefetch([])
        let rows = try await query("PRAGMA user_version")
        return try #require(rows.first?.first ?? nil)
    }
}

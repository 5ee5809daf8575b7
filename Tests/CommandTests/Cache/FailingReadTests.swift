import Foundation
import TestSupport
import Testing

/// One failing read does not prove damage: a database that can be read the second time is never
/// replaced, nor marked as certainly damaged.
@Suite(
    .timeLimit(.minutes(15)),
    .enabled(if: ProcessLimitTests.allowsTracing, "tracing is not allowed"))
struct FailingReadTests {
    /// The files of a cache that hold its state of damage.
    private func marks(_ folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder).filter { name in
            let size = try? FileManager.default.attributesOfItem(atPath: "\(folder)/\(name)")[.size]
            return name.contains(".damaged-") || name == "suspect" && size as? Int != 0
        }
    }

    /// Every read of the database and its log fails in turn, in every way, for every command that
    /// opens a cache for writing.
    @Test(
        arguments: ["error=EIO", "error=ENOMEM", "retval=0"],
        [
            ["run", "manifest.txt", "--allow-empty"], ["merge", "copy", "other"],
            ["prune", "--gone"],
        ])
    func noReadThatFailsOnceReplacesTheDatabase(
        fault: String, command: [String]
    ) async throws {
        try await withOrigin { origin in
            let lines = origin.serveImages(3)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                for name in ["cache", "other"] {
                    let run = try await workspace.prefetch(lines, "--cache-dir", name)
                    #expect(run.result.status == 0, "\(run.result)")
                }
                try workspace.manifest([])
                let rows = "SELECT key, sha256 FROM resource JOIN variant ON id = resource_id"
                let before = try await workspace.query(rows)
                let copy = workspace.folder + "/copy"
                let trace = workspace.folder + "/trace"
                var number = 0
                var isInjected = true
                while isInjected {
                    number += 1
                    try FileManager.default.copyItem(atPath: workspace.cache, toPath: copy)
                    let options = command[0] == "merge" ? [] : ["--cache-dir", "copy"]
                    var traced = workspace.command(
                        [
                            "-f", "-qq", "-o", trace, "-P", copy + "/prefetch.sqlite", "-P",
                            copy + "/prefetch.sqlite-wal", "-e", "trace=pread64", "-e",
                            "inject=pread64:\(fault):when=\(number)", Workspace.binary,
                        ] + command + options)
                    traced.executable = "/usr/bin/strace"
                    let result = try await traced.run()
                    isInjected = try String(contentsOfFile: trace, encoding: .utf8)
                        .contains("INJECTED")
                    let context = "\(fault) \(number): \(result)"
                    #expect(try marks(copy).isEmpty, "\(context)")
                    #expect(try await workspace.query(rows, of: "copy") == before, "\(context)")
                    let next = try await workspace.run(
                        "run", "manifest.txt", "--allow-empty", "--cache-dir", "copy")
                    #expect(next.status == 0, "\(context), \(next)")
                    #expect(try marks(copy).isEmpty, "\(context), \(next)")
                    try FileManager.default.removeItem(atPath: copy)
                }
                #expect(number > 5)
            }
        }
    }
}

import Foundation
import TestSupport
import Testing

/// An entry is a hit only if its file exists.
@Suite(.timeLimit(.minutes(15)))
struct MissingFileTests {
    private static let picture = Fixtures.png(seed: 1)

    /// Runs `body` after a run that stored a picture, with the picture's URL and file path.
    private func withStoredPicture(
        _ body: (_ workspace: Workspace, _ url: String, _ path: String) async throws -> Void
    ) async throws {
        try await withOrigin { origin in
            let url = origin.url("/a.png")
            origin.serve("/a.png", .image(MissingFileTests.picture))
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.prefetch([url])
                try await body(workspace, url, #require(run.report.entries.first?.path))
            }
        }
    }

    @Test func downloadsRemovedAndDamagedFilesAgain() async throws {
        try await withStoredPicture { workspace, url, path in
            let whole = try await workspace.run("get", "--json", url)
            #expect(whole.output.contains("\"checked\":true"), "\(whole)")
            try workspace.removeFile(path)
            let got = try await workspace.run("get", url)
            #expect(got.status == 1 && got.error.contains("is missing or damaged"), "\(got)")
            #expect(got.error.contains("hint: "), "\(got)")
            let second = try await workspace.prefetch([url])
            #expect(second.report.verdicts == ["downloaded"], "\(second.result)")
            #expect(second.result.error.contains("1 cached file is missing"))
            #expect(try workspace.bytes(of: path).count > 0)
            let third = try await workspace.prefetch([url])
            #expect(third.report.verdicts == ["fresh"], "\(third.result)")
            #expect(!third.result.error.contains("missing"), "\(third.result)")

            // The cache is repaired when the exit status is 0.
            try workspace.removeFile(path)
            let quiet = try await workspace.prefetch([url], "-q")
            #expect(quiet.report.verdicts == ["downloaded"], "\(quiet.result)")
            #expect(quiet.result.error.isEmpty, "\(quiet.result)")

            try workspace.removeFile(path)
            let offline = try await workspace.prefetch([url], "--offline")
            #expect(offline.report.verdicts == ["excluded"], "\(offline.result)")
            #expect(offline.result.status == 1)
            _ = try await workspace.prefetch([url])

            var bytes = try workspace.bytes(of: path)
            bytes[bytes.count / 2] ^= 1
            try workspace.write(bytes, to: "cache/" + path)
            let damaged = try await workspace.run("get", url)
            #expect(damaged.status == 1 && damaged.output.isEmpty, "\(damaged)")
            let trusting = try await workspace.run("get", "--no-check", "--json", url)
            #expect(trusting.status == 0, "\(trusting)")
            #expect(trusting.output.contains("\"checked\":false"), "\(trusting)")
            // The command that the hint names.
            let mended = try await workspace.prefetch([url], "--refresh", "force")
            #expect(mended.report.verdicts == ["downloaded"], "\(mended.result)")
            #expect(try await workspace.run("get", url).status == 0)
        }
    }

    @Test(arguments: [true, false])
    func obstructedPathAffectsOneImage(isFolder: Bool) async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(12)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let first = try await workspace.prefetch([urls[0]])
                let path = try #require(first.report.entries.first?.path)
                let obstacle = URL(filePath: workspace.cache + "/" + path)
                if isFolder {
                    try FileManager.default.removeItem(at: obstacle)
                    try FileManager.default.createDirectory(
                        at: obstacle, withIntermediateDirectories: false)
                } else {
                    let folder = obstacle.deletingLastPathComponent()
                    try FileManager.default.removeItem(at: folder)
                    try Data().write(to: folder)
                }
                let second = try await workspace.prefetch(urls)
                #expect(second.report[line: 1]?.verdict == "failed/disk", "\(second.result)")
                // Other images may belong in the obstructed folder.
                let failed = second.report.entries.count { $0.reason == "disk" }
                #expect(second.summary["downloaded"] == urls.count - failed)
                #expect(failed < 6 && second.result.status == 1)
                // The judge would reject the obstacle.
                let place = isFolder ? obstacle : obstacle.deletingLastPathComponent()
                try FileManager.default.removeItem(at: place)
            }
        }
    }

    /// A cache with files and without a database is not empty.
    @Test func lostDatabaseIsSaid() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(3)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                _ = try await workspace.prefetch(urls, "--snapshot", "off")
                for name in ["", "-wal", "-shm"] {
                    try? workspace.removeFile("prefetch.sqlite" + name)
                }
                for command in ["list", "verify", "stats", "doctor"] {
                    let result = try await workspace.run(command)
                    let text = result.output + result.error
                    #expect(
                        text.contains("has lost its database: 3 content files have no rows"),
                        "\(result)")
                    #expect(text.contains("downloads listed images again"), "\(result)")
                    #expect(result.status != 0, "\(result)")
                }
                let next = try await workspace.prefetch(urls)
                #expect(next.report.verdicts == ["downloaded", "downloaded", "downloaded"])
                #expect(try await workspace.judge() == 3)
            }
        }
    }
}

import Foundation
import TestSupport
import Testing

/// `prefetch verify` over a part of the cache, in several sessions, and of files outside `content`.
@Suite(.timeLimit(.minutes(15)))
struct VerifyExtentTests {
    private func withImages(
        _ body: (Workspace, _ urls: [String]) async throws -> Void
    ) async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(12)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.prefetch(urls)
                #expect(run.summary.outcomes == ["downloaded": 12], "\(run.result)")
                try await body(workspace, urls)
                let last = try await workspace.prefetch(urls)
                #expect(last.result.status == 0, "\(last.result)")
            }
        }
    }

    private struct Summary {
        let files: Int
        let read: Int
        let folders: Int
        let isComplete: Bool
        let kinds: [String]
        let result: CommandResult
    }

    private func verify(_ workspace: Workspace, _ options: String...) async throws -> Summary {
        let result = try await workspace.command(["verify", "--json"] + options).run()
        let objects = try result.jsonLines()
        let last = try #require(objects.last, "\(result)")
        let kinds = objects.dropLast().compactMap { $0["kind"] as? String }
        #expect(result.status == (kinds.isEmpty ? 0 : 1), "\(result)")
        return Summary(
            files: try #require(last["files"] as? Int),
            read: try #require(last["files_read"] as? Int),
            folders: try #require(last["folders"] as? Int),
            isComplete: try #require(last["complete"] as? Bool), kinds: kinds.sorted(),
            result: result)
    }

    /// Flips a bit of an image's file and returns the number of its folder.
    private func damage(_ url: String, in workspace: Workspace) async throws -> Int {
        let get = try await workspace.run("get", url)
        let file = URL(filePath: get.output.trimmingCharacters(in: .newlines))
        var bytes = try Data(contentsOf: file)
        bytes[bytes.count / 2] ^= 1
        try bytes.write(to: file)
        let folder = file.deletingLastPathComponent().lastPathComponent
        return try #require(Int(folder, radix: 16))
    }

    private func savedPosition(_ workspace: Workspace) async throws -> Int? {
        let rows = try await workspace.query(
            "SELECT value FROM property WHERE name = 'verified_folders'")
        return rows.first.flatMap { $0[0] }.flatMap { Int($0) }
    }

    // MARK: Since

    @Test(arguments: [
        ("1h", 12), ("2000-02-29T00:00:00Z", 12), ("2099-12-31", 0),
    ])
    func sinceReadsOnlyChangedFiles(since: String, read: Int) async throws {
        try await withImages { workspace, urls in
            _ = try await damage(urls[0], in: workspace)
            let summary = try await verify(workspace, "--since", since)
            #expect(summary.files == 12 && summary.read == read, "\(summary.result)")
            #expect(summary.kinds == (read > 0 ? ["damaged"] : []), "\(summary.result)")
            // Sizes are checked for all images.
            let get = try await workspace.run("get", urls[1], "--no-check")
            try Data().write(to: URL(filePath: get.output.trimmingCharacters(in: .newlines)))
            let sizes = try await verify(workspace, "--since", since)
            #expect(sizes.kinds.contains("truncated"), "\(sizes.result)")
            #expect(try await workspace.run("verify", "--repair").status == 1)
        }
    }

    // MARK: Several sessions

    @Test func resumesAfterTimeLimit() async throws {
        try await withImages { workspace, urls in
            for options in [[], ["--repair"]] {
                let limit = try await workspace.command(
                    ["verify", "--time-limit", "1ms"] + options
                ).run()
                #expect(limit.status == 0, "\(limit)")
                #expect(limit.error.contains(": stopped at the time limit after "), "\(limit)")
                #expect(
                    limit.error.hasSuffix(
                        " of 256 folders, no problems so far; --resume continues from there\n"),
                    "\(limit)")
                let place = try #require(await savedPosition(workspace))
                #expect((1..<256).contains(place))

                let again = try await workspace.command(
                    ["verify", "--json", "--resume", "--time-limit", "1ms"] + options
                ).run()
                let summary = try #require(try again.jsonLines().last)
                #expect(summary["complete"] as? Bool == false, "\(again)")
                let further = try #require(await savedPosition(workspace))
                #expect(further > place && summary["folders"] as? Int == further, "\(again)")

                let last = try await workspace.command(
                    ["verify", "--json", "--resume"] + options
                ).run()
                let end = try #require(try last.jsonLines().last)
                #expect(end["complete"] as? Bool == true && last.status == 0, "\(last)")
                #expect(end["folders"] as? Int == 256, "\(last)")
                #expect(try await savedPosition(workspace) == nil)
                let whole = try await verify(workspace, "--resume")
                #expect(whole.files == 12 && whole.isComplete, "\(whole.result)")
            }

            // Verified folders are skipped.
            let folder = try await damage(urls[3], in: workspace)
            let property = "INSERT OR REPLACE INTO property VALUES ('verified_folders', "
            try await workspace.runSQL(property + "\(folder + 1))")
            let after = try await verify(workspace, "--resume")
            #expect(after.kinds.isEmpty && after.isComplete, "\(after.result)")
            #expect(try await savedPosition(workspace) == nil)
            try await workspace.runSQL(property + "\(folder))")
            let at = try await verify(workspace, "--resume")
            #expect(at.kinds == ["damaged"], "\(at.result)")
            // An invalid position, written by another program.
            try await workspace.runSQL(property + "9000)")
            let beyond = try await verify(workspace, "--resume")
            #expect(beyond.kinds.isEmpty && beyond.isComplete, "\(beyond.result)")
            try await workspace.runSQL(property + "256)")
            // Without --resume, verification starts over.
            let whole = try await verify(workspace, "--repair")
            #expect(whole.kinds == ["damaged"], "\(whole.result)")
            #expect(try await savedPosition(workspace) == nil)
        }
    }

    /// The reader is slow and there are many orphaned files, so the signal arrives while it waits
    /// for the reader or after its end.
    @Test func stopsCleanlyOnSignal() async throws {
        try await withImages { workspace, _ in
            let folder = workspace.cache + "/content/ff"
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true,
                attributes: [.posixPermissions: 0o700])
            // Twice the capacity of a pipe.
            let count = 1000
            for number in 0..<count {
                let digits = String(number, radix: 16)
                let name = "ff" + String(repeating: "0", count: 62 - digits.count) + digits
                try Data([1]).write(to: URL(filePath: "\(folder)/\(name).png"))
            }
            var command = workspace.command([])
            command.arguments = [
                "-c",
                """
                mkfifo lines
                "$0" verify > lines &
                verify=$!
                exec 3< lines
                read -r line <&3
                kill -TERM $verify
                cat <&3 | wc -l
                wait $verify
                echo "$?"
                """, command.executable,
            ]
            command.executable = "/bin/sh"
            let result = try await command.run()
            let place = try await savedPosition(workspace)
            switch result.outputLines.last {
            case "143":
                #expect(result.error.contains(": interrupted after "), "\(result)")
                #expect(try #require(place) > 0)
            case "1":
                #expect(result.outputLines.first == "\(count - 1)", "\(result)")
                #expect(place == nil)
            default: Issue.record("\(result)")
            }
            let repair = try await workspace.run("verify", "--repair", "--json")
            let summary = try #require(try repair.jsonLines().last)
            #expect(summary["repaired"] as? Int == count)
            #expect(try await savedPosition(workspace) == nil)
        }
    }

    // MARK: Outside content

    @Test func checksFilesOutsideContent() async throws {
        try await withImages { workspace, _ in
            let digest = String(repeating: "ab", count: 32)
            let note = "\(digest) \(Int(Date().timeIntervalSince1970)) 11"
            let text = "\(note)\nsomething else\n\(digest) 1\n"
            try workspace.write(Array(text.utf8), to: "cache/crashes")
            let found = try await workspace.run("verify")
            #expect(
                found.output == "crashes: crashes: 2 lines of it are not notes of a crash\n",
                "\(found)")
            #expect(found.error.hasSuffix("1 problem found; --repair fixes it\n"), "\(found)")
            let repair = try await verify(workspace, "--repair")
            #expect(repair.kinds == ["crashes"], "\(repair.result)")
            #expect(try await verify(workspace).kinds == [])
            let left = try String(contentsOfFile: workspace.cache + "/crashes", encoding: .utf8)
            #expect(left == note + "\n")
            // The next run that decodes drops records that are merely old.
            try workspace.write(Array("\(digest) 1 11\n".utf8), to: "cache/crashes")
            #expect(try await verify(workspace).kinds == [])
            try FileManager.default.removeItem(atPath: workspace.cache + "/crashes")

            // Left by a killed run.
            try workspace.write([1, 2, 3], to: "cache/tmp/7")
            let orphan = try await workspace.run("verify")
            #expect(
                orphan.output == "tmp/7: orphan: no row refers to this file (3 B)\n", "\(orphan)")
            #expect(try await verify(workspace, "--repair").kinds == ["orphan"])
            #expect(try await verify(workspace).kinds == [])
        }
    }
}

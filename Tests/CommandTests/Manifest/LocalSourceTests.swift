import Foundation
import TestSupport
import Testing

/// `data:` and `file:` lines of lists.
@Suite(.timeLimit(.minutes(15)))
struct LocalSourceTests {
    private static let picture = Fixtures.png(width: 5, height: 4)
    private static var data: String {
        "data:image/png;base64,\(Data(picture).base64EncodedString())"
    }

    @Test func dataIsStoredOnce() async throws {
        try await withWorkspace { workspace in
            let lines = [Self.data, "data:image/gif;base64,AAAA"]
            let run = try await workspace.prefetch(lines)
            #expect(run.report.verdicts == ["downloaded", "failed/not-an-image"], "\(run.result)")
            let again = try await workspace.prefetch([Self.data])
            #expect(again.report.verdicts == ["fresh"], "\(again.result)")
            let excluded = try await workspace.prefetch(lines, "--exclude", "data:*")
            #expect(excluded.summary.outcomes == ["excluded": 2], "\(excluded.result)")
        }
    }

    /// Pages have a picture of one pixel there until a script replaces it.
    @Test func aMirrorPrecedesAPlaceholder() async throws {
        try await withOrigin { origin in
            origin.serve("/a.png", .image(Self.picture))
            origin.serve("/gone.png", .notFound)
            try await withWorkspace { workspace in
                let list = try workspace.write(
                    Array(
                        """
                        {"url":["\(Self.data)","\(origin.url("/a.png"))"]}
                        {"url":["\(Self.data)","\(origin.url("/gone.png"))"]}

                        """.utf8), to: "list.jsonl")
                let run = try await workspace.run(list, "--report", "report.jsonl")
                #expect(run.status == 0, "\(run)")
                #expect(origin.snapshot.count(of: "/a.png") == 1)
                #expect(origin.snapshot.count(of: "/gone.png") == 1)
            }
        }
    }

    @Test func filesAreReadBelowTheFolder() async throws {
        try await withWorkspace { workspace in
            let folder = workspace.folder + "/pictures"
            try FileManager.default.createDirectory(
                atPath: folder, withIntermediateDirectories: true)
            let picture =
                try workspace.folder + "/"
                + workspace.write(Self.picture, to: "pictures/a b.png")
            let secret =
                try workspace.folder + "/" + workspace.write(Self.picture, to: "secret.png")
            let lines = [picture.replacing(" ", with: "%20"), secret].map { "file://\($0)" }
            let without = try await workspace.prefetch([lines[0]])
            #expect(without.report.verdicts == ["failed/unsupported-scheme"], "\(without.result)")
            #expect(without.result.error.contains("--files-below DIR"), "\(without.result)")
            let run = try await workspace.prefetch(lines, "--files-below", folder)
            #expect(
                run.report.verdicts == ["downloaded", "failed/refused-address"], "\(run.result)")
            let again = try await workspace.prefetch([lines[0]], "--files-below", folder)
            #expect(again.report.verdicts == ["fresh"], "\(again.result)")
            let path = try await workspace.run("get", lines[0])
            #expect(path.status == 0, "\(path)")
            _ = try workspace.write(Fixtures.png(width: 9, height: 9), to: "pictures/a b.png")
            let changed = try await workspace.prefetch([lines[0]], "--files-below", folder)
            #expect(changed.report.verdicts == ["downloaded"], "\(changed.result)")
        }
    }

    /// A file that was no image is read again when it has changed, and only then.
    @Test func aRepairedFileIsRead() async throws {
        try await withWorkspace { workspace in
            let folder = workspace.folder
            let name = try folder + "/" + workspace.write(Array("no image".utf8), to: "a.png")
            func run() async throws -> [String] {
                try await workspace.prefetch(["file://\(name)"], "--files-below", folder).report
                    .verdicts
            }
            #expect(try await run() == ["failed/not-an-image"])
            #expect(try await run() == ["blacklisted"])
            _ = try workspace.write(Self.picture, to: "a.png")
            #expect(try await run() == ["downloaded"])
            try FileManager.default.removeItem(atPath: name)
            #expect(try await run() == ["failed/invalid-entry"])
            let plan = try await workspace.run(
                "plan", "file://\(folder)/none.png", "--files-below", folder, "-v")
            #expect(plan.output.contains("invalid file://"), "\(plan)")
            #expect(plan.output.contains(": no such file\n"), "\(plan)")
        }
    }

    /// An argument is a URL, and messages have its beginning only.
    @Test func dataMayBeAnArgument() async throws {
        try await withWorkspace { workspace in
            let run = try await workspace.run("run", Self.data)
            #expect(run.status == 0 && run.error.contains("1 downloaded"), "\(run)")
            let bad = "data:image/png;base64," + String(repeating: "QUJD", count: 10_000)
            let failed = try await workspace.run("run", bad)
            #expect(failed.status == 1 && failed.error.utf8.count < 2_000, "\(failed)")
            #expect(failed.error.contains("… (39.1 KiB)"), "\(failed)")
        }
    }

    /// Only the user's own lists name files.
    @Test func othersNameNoFiles() async throws {
        try await withOrigin { origin in
            try await withWorkspace { workspace in
                let folder = workspace.folder
                let picture = try folder + "/" + workspace.write(Self.picture, to: "a.png")
                origin.serve("/list.txt", .text("file://\(picture)\n\(origin.url("/b.png"))\n"))
                origin.serve("/b.png", .image(Self.picture))
                origin.serve("/c.png", .redirect(to: "file://\(picture)"))
                let list = try await workspace.run(
                    "run", "--list", origin.url("/list.txt"), "--files-below", folder)
                #expect(list.error.contains("unsupported-scheme"), "\(list)")
                #expect(list.error.contains("1 downloaded"), "\(list)")
                let redirect = try await workspace.prefetch(
                    [origin.url("/c.png")], "--files-below", folder)
                #expect(redirect.report.verdicts == ["failed/redirect"], "\(redirect.result)")
                try workspace.writeConfiguration("files-below = \"\(folder)\"\n")
                let project = try await workspace.run("list.txt")
                #expect(project.status == 64, "\(project)")
                #expect(project.error.contains("files-below"), "\(project)")
            }
        }
    }
}

import Foundation
import TestSupport
import Testing

/// Files that `overlay=` names.
@Suite(.timeLimit(.minutes(15)))
struct OverlayTests {
    private static let fresh = ("Cache-Control", "max-age=3600")

    /// The content of the file is part of the recipe, its name is not.
    @Test func changedWatermarkMakesVariantsAgain() async throws {
        try await withOrigin { origin in
            origin.serve("/a", .picture(Fixtures.png(width: 64, height: 48, seed: 1), Self.fresh))
            let lines = [origin.url("/a")]
            try await withWorkspace { workspace in
                let mark = try workspace.write(
                    Fixtures.png(width: 9, height: 5, seed: 2), to: "mark@2x.png")
                let options = [
                    "--store-original", "--transform", "overlay=\(mark)@south-east",
                    "--variant", "thumb=32x32,overlay=\(mark)@center",
                ]
                let first = try await workspace.prefetch(lines, options)
                #expect(first.report.verdicts == ["downloaded"], "\(first.result)")
                let again = try await workspace.prefetch(lines, options)
                #expect(again.report.verdicts == ["fresh"], "\(again.result)")

                _ = try workspace.write(Fixtures.png(width: 9, height: 5, seed: 2), to: "copy.png")
                let copied = try await workspace.prefetch(
                    lines, options.map { $0.replacing("mark@2x.png", with: "copy.png") })
                #expect(copied.report.verdicts == ["fresh"], "\(copied.result)")

                _ = try workspace.write(
                    Fixtures.png(width: 9, height: 5, seed: 3), to: "mark@2x.png")
                let changed = try await workspace.prefetch(lines, options)
                #expect(changed.report.verdicts == ["derived"], "\(changed.result)")
                let pictures = [first, copied, changed].map { $0.report.entries.first?.sha256 }
                #expect(pictures[0] == pictures[1] && pictures[1] != pictures[2])
                #expect(origin.requests.count == 1)

                // A pipe is read once, also beside a mistake.
                let mistake = try await workspace.command([])
                    .inShell(#""$0" run --transform overlay=<(cat copy.png)@north"#).run()
                #expect(mistake.error.contains("Missing expected argument"), "\(mistake)")
            }
        }
    }

    /// A run that does not name the file keeps variants that it cannot make.
    @Test func otherRunsReportTheMissingWatermark() async throws {
        try await withOrigin { origin in
            origin.serve("/a", .picture(Fixtures.png(width: 64, height: 48, seed: 1), Self.fresh))
            let lines = [origin.url("/a")]
            try await withWorkspace { workspace in
                let mark = try workspace.write(
                    Fixtures.png(width: 9, height: 5, seed: 2), to: "mark.png")
                _ = try await workspace.prefetch(
                    lines, ["--variant", "card=overlay=\(mark)@north"])
                origin.serve(
                    "/a", .picture(Fixtures.png(width: 64, height: 48, seed: 7), Self.fresh))
                let forced = try await workspace.prefetch(lines, ["--refresh", "force"])
                #expect(forced.result.status == 0, "\(forced.result)")
                #expect(forced.report.entries.first?.outcome == "downloaded", "\(forced.result)")
                #expect(
                    forced.report.entries.first?.message?.contains(
                        "variant card cannot be made of the new image: no --transform or "
                            + "--variant names the file of its overlay") == true,
                    "\(forced.result)")
            }
        }
    }

    /// The author of a list may be someone else.
    @Test func listsOpenNoFiles() async throws {
        try await withOrigin { origin in
            origin.serve("/a", .picture(Fixtures.png(width: 64, height: 48, seed: 1), Self.fresh))
            try await withWorkspace { workspace in
                _ = try workspace.write(
                    Fixtures.png(width: 9, height: 5, seed: 2), to: "mark.png")
                let url = origin.url("/a")
                let run = try await workspace.prefetch(
                    [
                        url + "?1 transform=overlay=mark.png@north",
                        url + "?2 variant=x=overlay=/dev/zero@north",
                        url + "?3 transform=overlay=none.png@north",
                    ], [])
                #expect(
                    run.report.verdicts
                        == Array(repeating: "failed/invalid-entry", count: 3), "\(run.result)")
                for entry in run.report.entries {
                    #expect(
                        entry.message?.contains("since lists open no files") == true,
                        "\(run.result)")
                }
                #expect(origin.requests.isEmpty)
            }
        }
    }
}

import TestSupport
import Testing

/// Runs that make pictures in other sizes.
@Suite(.timeLimit(.minutes(15)))
struct SizeTests {
    private static let fresh = ("Cache-Control", "max-age=3600")
    private static let thumb = ["--variant", "thumb=16x16^,png", "--variant", "half=50%,rotate=90"]

    private func sizes(_ entry: Report.Entry?) -> [String] {
        (entry?.variants ?? []).map { "\($0.name) \($0.width ?? 0)x\($0.height ?? 0)" }
    }

    @Test func oneDownloadServesAllSizes() async throws {
        try await withOrigin { origin in
            origin.serve("/a", .picture(Fixtures.png(width: 64, height: 48, seed: 1), Self.fresh))
            let url = origin.url("/a")
            try await withWorkspace { workspace in
                let first = try await workspace.prefetch([url], Self.thumb)
                #expect(first.result.status == 0, "\(first.result)")
                #expect(
                    sizes(first.report.entries.first)
                        == ["main 64x48", "thumb 16x16", "half 24x32"], "\(first.result)")
                let second = try await workspace.prefetch([url], Self.thumb)
                #expect(second.report.verdicts == ["fresh"], "\(second.result)")
                let got = try await workspace.command(["get", url, "--variant", "thumb"]).run()
                #expect(got.status == 0 && got.output.hasSuffix(".png\n"), "\(got)")
                #expect(origin.requests.count == 1)

                // Another size of a stored original downloads nothing.
                let stored = ["--store-original", "--cache-dir", "other"]
                _ = try await workspace.prefetch([url], stored)
                let derived = try await workspace.prefetch([url], Self.thumb + stored)
                #expect(derived.report.verdicts == ["derived"], "\(derived.result)")
                #expect(
                    sizes(derived.report.entries.first)
                        == ["main 64x48", "thumb 16x16", "half 24x32", "original 64x48"],
                    "\(derived.result)")
                #expect(origin.requests.count == 2)
            }
        }
    }

    @Test func aLineHasItsSize() async throws {
        try await withOrigin { origin in
            for path in ["/a", "/b", "/c"] {
                origin.serve(
                    path, .picture(Fixtures.png(width: 64, height: 48, seed: 1), Self.fresh))
            }
            let lines = [
                origin.url("/a"), origin.url("/b") + " resize=20x20",
                origin.url("/c") + " resize=1y1",
            ]
            try await withWorkspace { workspace in
                let run = try await workspace.prefetch(lines, ["--resize", "32x32"])
                let widths = run.report.entries.sorted { $0.line < $1.line }.map(\.width)
                #expect(widths == [32, 20, nil], "\(run.result)")
                #expect(
                    run.report.entries.first { $0.line == 3 }?.verdict == "failed/invalid-entry")
                let again = try await workspace.prefetch(lines, ["--resize", "32x32"])
                #expect(again.summary.outcomes["fresh"] == 2, "\(again.result)")

                // A JPEG over the pixel limit may be scaled down, since it is decoded smaller: an
                // eighth of these 48 × 32 pixels.
                origin.serve("/large", .picture(try Fixtures.file("larger.jpg"), Self.fresh))
                let url = origin.url("/large")
                let small = ["--max-pixels", "500"]
                let whole = try await workspace.prefetch([url], small)
                #expect(whole.report.verdicts == ["failed/too-many-pixels"], "\(whole.result)")
                let thumb = try await workspace.prefetch(
                    [url], small + ["--resize", "6", "--retry-failed"])
                #expect(thumb.report.verdicts == ["downloaded"], "\(thumb.result)")
                #expect(thumb.report.entries.first?.width == 6)
            }
        }
    }
}

import TestSupport
import Testing

/// Images with one variant that cannot be made, among others that can.
@Suite(.timeLimit(.minutes(15)))
struct VariantFaultTests {
    private static let fresh = ("Cache-Control", "max-age=3600")
    private static let web = ["--variant", "web=jpeg,q=40"]
    /// A JPEG has at most 65 500 pixels a side, a PNG more.
    private static let wide = Fixtures.png(width: 66_000, height: 1)

    /// The next run knows the failure of the last entry, and every run names the stored variants.
    /// Storing the others each time is not a success of the entry: the time on the blacklist grows.
    @Test func failingVariantIsNotDownloadedByEachRun() async throws {
        try await withOrigin { origin in
            origin.serve("/wide.png", .picture(VariantFaultTests.wide, VariantFaultTests.fresh))
            let url = origin.url("/wide.png")
            try await withWorkspace { workspace in
                for (outcome, options) in [
                    ("failed", []), ("blacklisted", []), ("blacklisted", []),
                    ("excluded", ["--offline"]),
                ] {
                    let run = try await workspace.prefetch([url], VariantFaultTests.web + options)
                    let entry = try #require(run.report.entries.first)
                    #expect(entry.outcome == outcome, "\(run.result)")
                    #expect(entry.path != nil, "\(run.result)")
                    #expect(
                        entry.variants.map { $0.path != nil } == [true, false], "\(run.result)")
                }
                #expect(origin.requests.count == 1)
                for runs in 2...3 {
                    let run = try await workspace.prefetch(
                        [url], VariantFaultTests.web + ["--retry-failed"])
                    #expect(run.report.entries.first?.outcome == "failed", "\(run.result)")
                    let counted = try await workspace.query("SELECT runs_in_a_row FROM failure")
                    #expect(counted == [["\(runs)"]])
                }

                // The others are still kept fresh.
                origin.serve(
                    "/stale.png", .picture(VariantFaultTests.wide, ("Cache-Control", "no-cache")))
                for count in 1...3 {
                    let run = try await workspace.prefetch(
                        [origin.url("/stale.png")], VariantFaultTests.web)
                    let entry = try #require(run.report.entries.first)
                    #expect(entry.outcome == "failed", "\(run.result)")
                    #expect(entry.variants.first?.path != nil, "\(run.result)")
                    #expect(origin.snapshot.count(of: "/stale.png") == count)
                }
            }
        }
    }

    /// Both together exceed the memory, and each alone does not.
    @Test func variantsAreMadeOneByOneWithLittleMemory() async throws {
        try await withOrigin { origin in
            let bytes = Fixtures.png(width: 900, height: 900, isNoise: true)
            origin.serve("/large.png", .picture(bytes, VariantFaultTests.fresh))
            let url = origin.url("/large.png")
            var paths: [[String?]] = []
            for memory in ["16MiB", "256MiB"] {
                try await withWorkspace { workspace in
                    let run = try await workspace.prefetch(
                        [url],
                        VariantFaultTests.web + ["--keep-larger", "--memory", memory])
                    let entry = try #require(run.report.entries.first)
                    #expect(entry.outcome == "downloaded", "\(run.result)")
                    paths.append(entry.variants.map(\.path))
                }
            }
            #expect(paths.count == 2 && paths.first == paths.last)
        }
    }

    /// Whichever variants are requested again.
    @Test func goodCopyIsKeptWhenANewBodyFails() async throws {
        try await withOrigin { origin in
            origin.serve(
                "/a.png", .picture(Fixtures.png(seed: 1), VariantFaultTests.fresh),
                .picture(VariantFaultTests.wide, VariantFaultTests.fresh))
            let url = origin.url("/a.png")
            try await withWorkspace { workspace in
                let first = try await workspace.prefetch([url], VariantFaultTests.web)
                let second = try await workspace.prefetch(
                    [url], VariantFaultTests.web + ["--refresh", "force"])
                let entry = try #require(second.report.entries.first)
                #expect(entry.outcome == "failed" && entry.path != nil, "\(second.result)")
                #expect(entry.path == first.report.entries.first?.path)
                #expect(entry.message?.hasSuffix("stays") == true, "\(second.result)")
                for name in ["main", "web"] {
                    let got = try await workspace.run("get", "--variant", name, url)
                    #expect(got.status == 0, "\(got)")
                }
            }
        }
    }

    /// A line with the run's own settings requests the same.
    @Test func equivalentLinesAreDuplicates() async throws {
        try await withOrigin { origin in
            let url = origin.serveImages(1)[0]
            try await withWorkspace { workspace in
                let lines = [
                    url + " quality=85", url, url + " encode=same", url + " variants=main,web",
                ]
                let same = try await workspace.prefetch(lines, VariantFaultTests.web)
                #expect(same.summary["duplicate"] == 3, "\(same.result)")
                let other = try await workspace.prefetch(
                    [url, url + " quality=20"], VariantFaultTests.web)
                #expect(
                    other.summary.outcomes == ["fresh": 1, "derived": 1], "\(other.result)")
            }
        }
    }

    /// Cron reports it once with `--fail-on new`, also when no run has ever downloaded it for
    /// that variant without success. Nothing is blacklisted for a local failure.
    @Test(arguments: ["max-age=3600", "no-cache"], [true, false])
    func cronReportsItOnce(lifetime: String, isThereFromTheBeginning: Bool) async throws {
        try await withOrigin { origin in
            origin.serve(
                "/wide.png", .picture(VariantFaultTests.wide, ("Cache-Control", lifetime)))
            let url = origin.url("/wide.png")
            let options = ["--store-original", "--fail-on", "new"]
            try await withWorkspace { workspace in
                if !isThereFromTheBeginning {
                    let run = try await workspace.prefetch([url], options)
                    #expect(run.result.status == 0, "\(run.result)")
                }
                for status: Int32 in [1, 0, 0] {
                    let run = try await workspace.prefetch([url], options + VariantFaultTests.web)
                    #expect(run.result.status == status, "\(run.result)")
                    #expect(run.report.entries.first?.outcome == "failed", "\(run.result)")
                }
                let mended = try await workspace.prefetch(
                    [url], options + ["--variant", "web=png,effort=fast"])
                #expect(mended.result.status == 0, "\(mended.result)")
                #expect(try await workspace.query("SELECT key FROM failure").isEmpty)
            }
        }
    }
}

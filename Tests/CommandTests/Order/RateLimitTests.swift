import TestSupport
import Testing

/// `--limit-rate` and `--host-rate`: no faster, by the time of the whole run and by the origin's
/// clock.
@Suite(.timeLimit(.minutes(15)))
struct RateLimitTests {
    /// The median time by the origin's clock from a request to the one that is `count` further,
    /// since a busy machine may delay any of them.
    private static func medianTime(of count: Int, _ origin: Origin) -> Duration {
        let arrivals = origin.snapshot.requests.map(\.arrivedAt)
        let times = zip(arrivals, arrivals.dropFirst(count)).map { $1 - $0 }.sorted()
        return times[times.count / 2]
    }

    /// 40 images of 51 KB: 2 MB, of small bodies that arrive in a few pieces.
    @Test(arguments: ["--http1.1", "--pacing=fixed"])
    func bytesArriveNoFasterThanTheLimit(flag: String) async throws {
        try await withOrigin { origin in
            let picture = Fixtures.png(width: 170, height: 100, isNoise: true)
            let lines = (0..<40).map { origin.url("/\($0).png") }
            for number in 0..<40 { origin.serve("/\(number).png", .image(picture)) }
            let bytes = 40 * picture.count
            try await withWorkspace { workspace in
                let run = try await workspace.prefetch(
                    lines, "--limit-rate", "\(bytes / 2)", "--host-concurrency", "2", flag)
                #expect(run.summary.outcomes == ["downloaded": 40], "\(run.result)")
                // A twentieth of a second is credit.
                #expect(run.result.time > .seconds(1.85), "\(run.result.time)")
                // Ten images take half a second.
                let time = RateLimitTests.medianTime(of: 10, origin)
                #expect(time > .milliseconds(450), "\(time)")
            }
        }
    }

    /// One body that is larger than any buffer.
    @Test func oneBodyArrivesNoFasterThanTheLimit() async throws {
        try await withOrigin { origin in
            let picture = Fixtures.png(width: 1500, height: 700, isNoise: true)
            origin.serve("/a.png", .image(picture))
            try await withWorkspace { workspace in
                let run = try await workspace.prefetch(
                    [origin.url("/a.png")], "--limit-rate", "\(picture.count / 4)",
                    "--stall-timeout", "3s")
                #expect(run.summary.outcomes == ["downloaded": 1], "\(run.result)")
                #expect(run.result.time > .seconds(3.85), "\(run.result.time)")
            }
        }
    }

    /// The sitemaps of an index arrive during the images, through other connections.
    @Test func listsCountTowardsTheLimit() async throws {
        try await withOrigin { origin in
            let picture = Fixtures.png(width: 170, height: 100, isNoise: true)
            for number in 0..<20 { origin.serve("/\(number).png", .image(picture)) }
            // A list is as large as five images.
            let filler = String(
                repeating: "<!--\(String(repeating: "x", count: 993))-->", count: 250)
            var bytes = 20 * picture.count
            for list in 0..<4 {
                let images = (0..<5).map {
                    "<image><loc>\(origin.url("/\(5 * list + $0).png"))</loc></image>"
                }
                let text = "<urlset><url>\(images.joined())</url>\(filler)</urlset>"
                bytes += text.utf8.count
                origin.serve("/\(list).xml", .text(text, type: "application/xml"))
            }
            let sitemaps = (0..<4).map {
                "<sitemap><loc>\(origin.url("/\($0).xml"))</loc></sitemap>"
            }
            origin.serve(
                "/index.xml",
                .text("<sitemapindex>\(sitemaps.joined())</sitemapindex>", type: "text/xml"))
            try await withWorkspace { workspace in
                let run = try await workspace.run(
                    "--list", origin.url("/index.xml"), "--limit-rate", "\(bytes / 2)")
                #expect(run.error.contains("20 downloaded"), "\(run)")
                #expect(run.time > .seconds(1.85), "\(run.time)")
            }
        }
    }

    @Test func requestsOfAHostKeepTheirDistance() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(9)
            try await withWorkspace { workspace in
                let run = try await workspace.prefetch(urls, "--host-rate", "600/m")
                #expect(run.summary.outcomes == ["downloaded": 9], "\(run.result)")
                let time = RateLimitTests.medianTime(of: 1, origin)
                #expect(time > .milliseconds(95), "\(time)")
            }
        }
    }
}

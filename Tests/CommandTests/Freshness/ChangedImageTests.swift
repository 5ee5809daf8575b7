import TestSupport
import Testing

/// Named variants of an image after a change at its origin, in runs that do not request them.
@Suite(.timeLimit(.minutes(15)))
struct ChangedImageTests {
    /// Serves a picture, then another one.
    private func serve(_ origin: Origin, _ first: String, then second: String) throws -> String {
        origin.serve(
            "/a.jpg",
            .picture(
                try Fixtures.file(first), ("Cache-Control", "max-age=0"), ("ETag", "\"v1\"")),
            .picture(
                try Fixtures.file(second), ("Cache-Control", "max-age=3600"), ("ETag", "\"v2\"")))
        return origin.url("/a.jpg")
    }

    /// The second run has the same flags, or flags that make another `main`.
    @Test(arguments: [[], ["--encode", "png"], ["--variant", "other=jpeg,q=30"]])
    func namedVariantsAreMadeAgain(options: [String]) async throws {
        try await withOrigin { origin in
            let url = try serve(origin, "baseline.jpg", then: "progressive.jpg")
            try await withWorkspace { workspace in
                let first = try await workspace.prefetch(
                    [url], "--variant", "web=webp,q=60", "--variant", "thumb=16x16")
                #expect(first.report.verdicts == ["downloaded"], "\(first.result)")
                let old = try await workspace.run("get", url, "--stale", "--variant", "thumb")
                let second = try await workspace.finish(
                    workspace.prefetchCommand([url], options).run())
                #expect(second.report.verdicts == ["downloaded"], "\(second.result)")
                #expect(origin.requests.count == 2)
                try await workspace.judge(
                    sources: [url: try Fixtures.file("progressive.jpg")],
                    variants: ["main", "web", "thumb"])
                for name in ["main", "web", "thumb"] {
                    let get = try await workspace.run("get", url, "--variant", name)
                    #expect(get.status == 0 && get.output != old.output, "\(get)")
                }
            }
        }
    }

    @Test func variantThatCannotBeMadeIsNamed() async throws {
        try await withOrigin { origin in
            let url = try serve(origin, "baseline.jpg", then: "animated.png")
            try await withWorkspace { workspace in
                _ = try await workspace.prefetch([url], "--variant", "still=png,animated=refuse")
                let second = try await workspace.prefetch([url])
                #expect(second.report.verdicts == ["downloaded"], "\(second.result)")
                #expect(
                    second.result.error.contains(
                        "  variant still of 1 changed image cannot be made again"),
                    "\(second.result)")
                let message = second.report.entries[0].message ?? ""
                #expect(message.contains("variant still cannot be made of the new image: "))
                #expect(try await workspace.run("get", url).status == 0)
                let still = try await workspace.run("get", url, "--variant", "still")
                #expect(still.status == 1, "\(still)")
            }
        }
    }

    @Test func anotherMainIsAnnouncedOnce() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(3)
            try await withWorkspace { workspace in
                _ = try await workspace.prefetch(urls, "--store-original")
                let text = "listed images among 3 images will be made again"
                for (options, isAnnounced) in [
                    (["--store-original"], false), (["--encode", "png"], true),
                    (["--encode", "png"], false), ([], true),
                ] {
                    let run = try await workspace.finish(
                        workspace.prefetchCommand(urls, options).run())
                    #expect(run.result.error.contains(text) == isAnnounced, "\(run.result)")
                }
                #expect(origin.requests.count == 3)
            }
        }
    }
}

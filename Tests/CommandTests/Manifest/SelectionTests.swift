import Foundation
import Hashing
import PrefetchModel
import TestSupport
import Testing

/// The choice of entries, and the fields `url` and `sha256`.
@Suite(.timeLimit(.minutes(15)))
struct SelectionTests {
    private func sha256(_ bytes: [UInt8]) -> String {
        bytes.withUnsafeBytes { SHA256Hasher().digest(of: $0).description }
    }

    @Test func excludedEntriesAreReportedAndNotRequested() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(4)
            try await withWorkspace { workspace in
                let run = try await workspace.prefetch(
                    urls, "--exclude", "*/1.*", "--exclude", "nobody.example", "--order",
                    "random=7")
                #expect(run.result.error.contains("--order random=7 repeats"), "\(run.result)")
                let excluded = urls.count { $0.contains("/1.") }
                #expect(run.result.status == 0, "\(run.result)")
                #expect(run.summary["excluded"] == excluded)
                #expect(run.summary.exclusions == (excluded > 0 ? ["not-selected": excluded] : [:]))
                #expect(origin.requests.count == 4 - excluded)
                let none = try await workspace.prefetch(urls, "--include", "nobody.example")
                #expect(none.summary.outcomes == ["excluded": 4])
                #expect(none.report.entries.allSatisfy { $0.message == "no --include matches" })

                // Nor are they requested in place of another URL.
                origin.serve("/gone", .notFound)
                let count = origin.requests.count
                let other = try await workspace.prefetch(
                    ["\(origin.url("/gone")) url=\(urls[0])"], "--exclude", "*/image/*")
                #expect(other.summary.outcomes == ["failed": 1], "\(other.result)")
                #expect(origin.requests.count == count + 1)

                // Targets of redirects, also of a stored image, and URLs that cannot be requested.
                let target = origin.url("/removed.png")
                origin.serve("/removed.png", .image(Fixtures.png(width: 3, height: 3)))
                origin.serve("/moved.png", .redirect(to: "/removed.png"))
                let lines = [
                    origin.url("/moved.png"), "data:image/gif;base64,R0lGODlhAQABAAAAACw=",
                ]
                for (number, isExcluded) in [true, false, true, true].enumerated() {
                    let patterns = isExcluded ? ["--exclude", "*/removed.png"] : []
                    let moved = try await workspace.prefetch(
                        lines, patterns + ["--exclude", "data:*"])
                    #expect(moved.result.status == 0, "\(moved.result)")
                    #expect(
                        moved.summary.outcomes
                            == (isExcluded ? ["excluded": 2] : ["downloaded": 1, "excluded": 1]))
                    let message = moved.report[line: 1]?.message
                    #expect(message?.hasSuffix("redirected to \(target)") ?? false == isExcluded)
                    #expect(origin.snapshot.count(of: "/removed.png") == (number == 0 ? 0 : 1))
                }
                // The plan of an image behind a remembered redirect is the run's.
                origin.serve(
                    "/left.png",
                    Response(
                        301,
                        headers: [("Location", "/removed.png"), ("Cache-Control", "max-age=999")]))
                let left = try workspace.manifest([origin.url("/left.png")])
                _ = try await workspace.run(left, "--refresh", "all")
                let planned = try await workspace.run(
                    "plan", left, "--exclude", "*/removed.png", "--ttl", "0s")
                #expect(planned.output.contains("1 excluded"), "\(planned)")

                // Directives of origins are followed only on request.
                origin.serve(
                    "/a",
                    Response(
                        headers: [("X-Robots-Tag", "noindex, noai")],
                        body: Fixtures.png(width: 3, height: 3), type: "image/png"))
                let line = [origin.url("/a")]
                let refused = try await workspace.prefetch(line, "--robots-directives", "noai")
                #expect(refused.summary.outcomes == ["excluded": 1])
                #expect(refused.summary.exclusions == ["robots": 1])
                // Remembered for these directives only.
                _ = try await workspace.prefetch(line, "--robots-directives", "noai")
                #expect(origin.snapshot.count(of: "/a") == 1)
                let all = try await workspace.prefetch(line)
                #expect(all.summary.outcomes == ["downloaded": 1])
            }
        }
    }

    @Test func ignoredParametersMakeOneImage() async throws {
        try await withOrigin { origin in
            let image = Fixtures.png(width: 3, height: 3)
            origin.serve("/a?token=1", .image(image))
            origin.serve("/a?token=2", .image(image))
            let stale = Response(
                headers: [("ETag", "\"e\""), ("Cache-Control", "max-age=0")], body: image,
                type: "image/png")
            for token in 1...2 {
                origin.serve("/gone?token=\(token)", .notFound)
                origin.serve("/b?token=\(token)", stale)
            }
            try await withWorkspace { workspace in
                let first = try await workspace.prefetch(
                    [origin.url("/a?token=1"), origin.url("/a?token=2")],
                    "--key-ignore-query=token")
                #expect(
                    first.summary.outcomes == ["downloaded": 1, "duplicate": 1],
                    "\(first.result)")
                #expect(first.report.entries.allSatisfy { $0.key == origin.url("/a") })
                // The flag without names, in front of the manifest.
                let manifest = try workspace.manifest([origin.url("/a?token=3")])
                let second = try await workspace.run("--key-ignore-query", manifest, "-v")
                #expect(second.status == 0, "\(second)")
                #expect(origin.requests.count == 1)

                // A signed URL changes with each run; its blacklisting and its validators stay.
                for token in 1...2 {
                    let run = try await workspace.prefetch(
                        ["/gone", "/b"].map { origin.url("\($0)?token=\(token)") },
                        "--key-ignore-query=token")
                    #expect(run.summary["failed"] == (token == 1 ? 1 : 0), "\(run.result)")
                    #expect(run.summary["blacklisted"] == (token == 1 ? 0 : 1), "\(run.result)")
                }
                let last = try #require(origin.requests.last)
                #expect(last.target == "/b?token=2")
                #expect(last.header("If-None-Match") == "\"e\"")
                // An image with a key of its own has the whole URL.
                origin.serve("/c?token=1", .image(image))
                _ = try await workspace.prefetch(
                    [origin.url("/c?token=1") + " key=logo"], "--key-ignore-query=token")
                for (command, flag) in [("get", "--stale"), ("remove", "-n")] {
                    let result = try await workspace.run(
                        command, flag, "--key-ignore-query=token", origin.url("/c?token=1"))
                    #expect(result.status == 0, "\(command): \(result)")
                }
                // The other commands find the image by the same key.
                for (command, flag, status) in [
                    ("get", "--stale", Int32(0)), ("remove", "-q", 0), ("get", "--stale", 1),
                ] {
                    let result = try await workspace.run(
                        command, flag, "--key-ignore-query=token", origin.url("/b?token=9"))
                    #expect(result.status == status, "\(command): \(result)")
                }
                // Every command that takes a URL, with the value behind a space.
                try workspace.write(image, to: "image.png")
                for arguments in [
                    ["put", origin.url("/p?token=1"), "image.png"],
                    ["attr", "set", origin.url("/p?token=2"), "n", "v"],
                    ["attr", "get", origin.url("/p?token=3"), "n"],
                    ["attr", "list", origin.url("/p?token=4")],
                    ["attr", "rm", origin.url("/p?token=5"), "n"],
                    ["get", origin.url("/p?token=6")],
                    ["failed", "rm", origin.url("/gone?token=7")],
                ] {
                    let flag = ["--key-ignore-query", "token"]
                    let result = try await workspace.command(arguments + flag).run()
                    #expect(result.status == 0, "\(result)")
                }
            }
        }
    }

    @Test func otherURLsAreRequestedAfterFailures() async throws {
        try await withOrigin { origin in
            let good = origin.serveImages(1)[0]
            origin.serve("/gone", .notFound)
            origin.serve("/text", Response(200, body: Array("no image at all".utf8)))
            try await withWorkspace { workspace in
                let line = "\(origin.url("/gone")) url=\(origin.url("/text")) url=\(good)"
                let run = try await workspace.prefetch([line])
                #expect(run.summary.outcomes == ["downloaded": 1], "\(run.result)")
                let entry = try #require(run.report.entries.first)
                #expect(entry.key == origin.url("/gone"))
                #expect(entry.attempts == 3)
                #expect(origin.requests.count == 3)
                let again = try await workspace.prefetch([line])
                #expect(again.summary.outcomes == ["fresh": 1])
                // The blacklist holds for a line with the same URLs.
                let bad = "\(origin.url("/gone")) url=\(origin.url("/text")) key=bad"
                #expect(try await workspace.prefetch([bad]).summary["failed"] == 1)
                #expect(try await workspace.prefetch([bad]).summary["blacklisted"] == 1)
                let mended = try await workspace.prefetch([bad + " url=\(good)"])
                #expect(mended.summary.outcomes == ["downloaded": 1])

                // A failure of any URL that may be temporary must not blacklist the others, and
                // belongs to its own host.
                for isFirst in [true, false] {
                    let paths = ["down", "lost"].map { "/\($0)\(isFirst)" }
                    origin.serve(paths[0], Response(500))
                    origin.serve(paths[1], .notFound)
                    let urls = paths.map(origin.url)
                    let line = isFirst ? "\(urls[0]) url=\(urls[1])" : "\(urls[1]) url=\(urls[0])"
                    let count = origin.requests.count
                    for _ in 0..<2 {
                        let run = try await workspace.prefetch([line], "--retry", "0")
                        #expect(run.summary.outcomes == ["failed": 1], "\(run.result)")
                        let entry = try #require(run.report.entries.first)
                        #expect(entry.httpStatus == 500)
                        #expect(entry.url == (isFirst ? urls[0] : urls[1]))
                    }
                    #expect(origin.requests.count == count + 4)
                }
            }
        }
    }

    @Test func digestsDecideWhichFileIsRight() async throws {
        try await withOrigin { origin in
            let (old, new) = (Fixtures.png(width: 3, height: 3), Fixtures.png(width: 4, height: 3))
            origin.serve("/a", .image(old))
            let line = origin.url("/a")
            try await withWorkspace { workspace in
                let wrong = try await workspace.prefetch(["\(line) sha256=\(sha256(new))"])
                #expect(wrong.summary.reasons == ["corrupt-image": 1], "\(wrong.result)")
                #expect(
                    try #require(wrong.report.entries.first?.message).contains(
                        "its SHA-256 is \(sha256(old))"))
                // Blacklisted for this digest only.
                let again = try await workspace.prefetch(["\(line) sha256=\(sha256(new))"])
                #expect(again.summary.outcomes == ["blacklisted": 1])
                let right = try await workspace.prefetch(["\(line) sha256=\(sha256(old))"])
                #expect(right.summary.outcomes == ["downloaded": 1], "\(right.result)")
                let fresh = try await workspace.prefetch(["\(line) sha256=\(sha256(old))"])
                #expect(fresh.summary.outcomes == ["fresh": 1])
                // A fresh copy of another file is requested again, without conditions.
                origin.serve("/a", .image(new))
                let changed = try await workspace.prefetch(["\(line) sha256=\(sha256(new))"])
                #expect(changed.summary.outcomes == ["downloaded": 1], "\(changed.result)")
                #expect(origin.requests.last?.header("If-None-Match") == nil)
            }
        }
    }
}

import Foundation
import TestSupport
import Testing

/// `get`: reasons for missing images, and look-ups of whole lists.
@Suite(.timeLimit(.minutes(15)))
struct GetTests {
    @Test func reportsFailureAndBlacklistExpiry() async throws {
        try await withOrigin { origin in
            origin.serve("/gone", .notFound)
            origin.serve("/busy", .unavailable())
            origin.serve("/old", .picture(Fixtures.png(), ("ETag", "\"v1\"")), .unavailable())
            let urls = ["/gone", "/busy", "/old"].map(origin.url)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                _ = try await workspace.prefetch(urls)
                _ = try await workspace.prefetch([urls[2]])
                let times = try await workspace.query(
                    """
                    SELECT strftime('%Y-%m-%dT%H:%M:%SZ', last_failed_at / 1000, 'unixepoch'),
                        strftime('%Y-%m-%dT%H:%M:%SZ', blacklisted_until / 1000, 'unixepoch')
                    FROM failure ORDER BY url LIKE '%/gone' DESC
                    """)
                let (failed, blacklisted) = (times[0][0] ?? "", times[0][1] ?? "")
                let gone = try await workspace.run("get", urls[0])
                #expect(gone.status == 1 && gone.output.isEmpty, "\(gone)")
                #expect(
                    gone.error == """
                        prefetch: \(urls[0]): not in the cache: failed with HTTP 404 at \(failed); \
                        blacklisted until \(blacklisted)
                        hint: `prefetch run --retry-failed URL` requests it now

                        """, "\(gone)")
                let busy = try await workspace.run("get", urls[1])
                #expect(busy.error.contains("failed with HTTP 503 at "), "\(busy)")
                #expect(busy.error.contains("hint: the next run requests it again"), "\(busy)")
                let old = try await workspace.run("get", urls[2])
                #expect(old.status == 1, "\(old)")
                #expect(old.error.contains("; the last refresh failed with HTTP 503 at"), "\(old)")
                let unknown = try await workspace.run("get", origin.url("/other"))
                #expect(unknown.error.hasSuffix("/other: not in the cache\n"), "\(unknown)")
                let list = try await workspace.run("get", workspace.manifest([urls[0]]))
                #expect(
                    list.status == 1
                        && list.error.contains("hint: to print the paths for a list: "),
                    "\(list)")
            }
        }
    }

    /// Lists with new signatures name the same image by other URLs, with and without a request.
    @Test func findsImageByLastListedURL() async throws {
        try await withOrigin { origin in
            origin.serve("/a", .picture(Fixtures.png(), ("Cache-Control", "max-age=3600")))
            let url = origin.url("/a")
            try await withWorkspace { workspace in
                for (signature, options, outcome, found) in [
                    (1, [], "downloaded", [1]), (2, [], "fresh", [1, 2]),
                    (3, ["--encode", "jpeg"], "downloaded", [3]), (4, [], "fresh", [3, 4]),
                    (3, [], "fresh", [3]), (5, ["--refresh", "none"], "fresh", [3, 5]),
                ] as [(Int, [String], String, [Int])] {
                    let run = try await workspace.finish(
                        workspace.prefetchCommand(["\(url)?\(signature) key=named"], options).run())
                    #expect(run.report.verdicts == [outcome], "\(run.result)")
                    for other in 1...5 {
                        let get = try await workspace.run("get", "\(url)?\(other)")
                        #expect((get.status == 0) == found.contains(other), "\(other): \(get)")
                    }
                }
                var batch = workspace.command(["get", "--batch"])
                batch.input = .bytes(Array("\(url)?5\n".utf8))
                #expect(try await batch.run().status == 0)
                let removal = try await workspace.run("remove", "\(url)?5")
                #expect(removal.error.contains("removed 1 image "), "\(removal)")
            }
        }
    }

    @Test func batchAnswersEachLine() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(3)
            origin.serve("/gone", .notFound)
            origin.serve("/stale", .picture(Fixtures.png(seed: 9)))
            let lines: [String] = [
                urls[0], origin.url("/gone"), "\(urls[1]) key=thumb", origin.url("/stale"), urls[2],
            ]
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.prefetch(lines)
                func path(_ line: Int) throws -> String {
                    "\(workspace.cache)/\(try #require(run.report[line: line]?.path))"
                }
                let list =
                    "# a comment\n\n" + lines.joined(separator: "\n")
                    + "\nthumb\nnothing at all\nimage/0.png priority=high"
                var command = workspace.command(["get", "--batch"])
                command.input = .bytes(Array(list.utf8))
                let plain = try await command.run()
                let first = [try path(1), "-", try path(3), "-", try path(5), try path(3), "-"]
                #expect(plain.outputLines == first + ["-"], "\(plain)")
                #expect(plain.status == 1, "\(plain)")
                #expect(
                    plain.error.contains(
                        "prefetch: 4 of 8 images are missing, stale or damaged"),
                    "\(plain)")

                command.arguments += ["--existing"]
                let existing = try await command.run()
                #expect(existing.outputLines == first.filter { $0 != "-" }, "\(existing)")
                #expect(existing.status == 0, "\(existing)")
                #expect(!existing.error.contains("are missing"), "\(existing)")

                command.arguments = ["get", "--batch"]
                command.arguments += ["--json", "--stale", "--base-url", origin.url("/")]
                let json = try await command.run()
                let objects = try json.jsonLines()
                try #require(objects.count == 8, "\(json)")
                #expect(objects[0]["key"] as? String == urls[0])
                #expect(objects[0]["path"] as? String == first[0])
                #expect(objects[0]["message"] is NSNull)
                #expect(objects[1]["path"] is NSNull && objects[1]["url"] as? String == lines[1])
                let message = try #require(objects[1]["message"] as? String)
                #expect(message.hasPrefix("not in the cache: failed with HTTP 404"), "\(json)")
                #expect(objects[2]["key"] as? String == "thumb")
                #expect(objects[3]["path"] as? String == (try path(4)))
                #expect(objects[6]["message"] is String)
                #expect(objects[7]["path"] as? String == first[0])
                #expect(json.status == 1)

                command.arguments = ["get", "--batch"]
                command.input = .bytes(Array(urls.joined(separator: "\n").utf8))
                // One of them is stored under another key and is found by its URL.
                let there = try await command.run()
                #expect(there.status == 0 && there.error.isEmpty, "\(there)")
                command.input = .bytes(Array("\(urls[0])\n\(urls[2])\n".utf8))
                let both = try await command.run()
                #expect(both.status == 0 && both.error.isEmpty, "\(both)")

                command.input = .bytes(Array("[\"\(urls[0])\"]\n".utf8))
                let table = try await command.run()
                #expect(table.status == 2 && table.output.isEmpty, "\(table)")
                #expect(table.error.contains("looks like JSON, not a list"), "\(table)")
                #expect(table.error.contains("hint: jq -c"), "\(table)")
                command.input = .nothing
                let empty = try await command.run()
                #expect(empty.status == 0 && empty.output.isEmpty, "\(empty)")
            }
        }
    }

    /// A coprocess writes one line and waits for the response.
    @Test func batchFlushesEachAnswer() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(3)
            try await withWorkspace(without: [.stalls]) { workspace in
                _ = try await workspace.prefetch(Array(urls[...1]))
                for options in [[], ["--json"]] {
                    var command = workspace.command(["get", "--batch"] + options)
                    command.input = .open
                    let running = try command.start()
                    for (number, url) in urls.enumerated() {
                        running.send(Array("\(url)\n".utf8))
                        try await eventually("line \(number) is answered") {
                            running.outputSoFar.count { $0 == "\n" } == number + 1
                        }
                    }
                    running.closeInput()
                    let result = await running.wait()
                    #expect(result.status == 1, "\(result)")
                    let lines = result.outputLines
                    #expect(lines[0].contains(".png") && lines[1].contains(".png"), "\(result)")
                    #expect(options.isEmpty == (lines[2] == "-"), "\(result)")
                }
            }
        }
    }
}

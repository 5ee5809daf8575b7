import Foundation
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(15)))
struct StatusTests {
    @Test func showsARunningRunAndNothingElse() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            let urls = origin.serveImages(3)
            origin.serve("/held", .image(Fixtures.png(width: 3, height: 3), gate: gate))
            try await withWorkspace(without: [.stalls]) { workspace in
                let none = try await workspace.run("status")
                #expect(none.status == 1, "\(none)")
                let run = try workspace.prefetchCommand(urls + [origin.url("/held")])
                async let running = run.run()
                var status = try await workspace.run("status", "--json")
                try await eventually("three entries are done") {
                    status = try await workspace.run("status", "--json")
                    return status.output.contains("\"entries_done\":3")
                }
                let object = try #require(
                    try JSONSerialization.jsonObject(with: Data(status.output.utf8))
                        as? [String: Any])
                #expect(object["entries_read"] as? Int == 4)
                #expect(object["entries_done"] as? Int == 3)
                #expect(object["in_flight"] as? Int == 1)
                #expect((object["outcomes"] as? [String: Int])?["downloaded"] == 3)
                let hosts = try #require(object["hosts"] as? [[String: Any]])
                #expect(hosts.first?["host"] as? String == origin.url(""))
                let text = try await workspace.run("status")
                #expect(text.status == 0, "\(text)")
                let lines = text.output.split(separator: "\n")
                #expect(lines.first?.hasPrefix("held by pid ") == true, "\(text)")
                #expect(lines.dropFirst().first?.hasPrefix("3/4 75%") == true, "\(text)")
                let watch = try workspace.command(["status", "--watch"]).start()
                try await eventually("the status is printed") {
                    watch.outputSoFar.contains("held by pid")
                }
                gate.open()
                #expect(try await running.status == 0)
                let watched = await watch.wait()
                #expect(watched.status == 0, "\(watched)")
                let ended = try await workspace.run("status")
                #expect(ended.status == 1, "\(ended)")
                let names = try FileManager.default.contentsOfDirectory(atPath: workspace.cache)
                #expect(!names.contains { $0.hasPrefix("status") })

                // The status of a killed run is not shown, and the next run starts over it.
                _ = try workspace.write(
                    Array("999999999 nohost 1\n{}\ntext\n".utf8), to: "cache/status")
                let gone = try await workspace.run("status")
                #expect(gone.status == 1 && !gone.output.contains("text"), "\(gone)")
                #expect(try await workspace.prefetch(urls).result.status == 0)
            }
        }
    }
}

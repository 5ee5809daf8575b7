import Foundation
import TestSupport
import Testing

/// A format that is decoded and not encoded.
@Suite(.timeLimit(.minutes(15)))
struct BitmapTests {
    private static let folder = SourceTree.tests.appending(path: "BitmapSamples")

    /// The stored form of a bitmap under a recipe, compared with the origin's picture.
    @Test(arguments: [("same", "png"), ("png", "png"), ("jpeg", "jpg"), ("original", "bmp")])
    func becomesWhatIsAskedFor(encoding: String, suffix: String) async throws {
        let names = ["8-bit-runs", "24-bit", "32-bit-version-4-alpha"]
        try await withOrigin { origin in
            var bodies: [String: [UInt8]] = [:]
            for name in names {
                let body = [UInt8](
                    try Data(contentsOf: BitmapTests.folder.appending(path: name + ".bmp")))
                bodies[name] = body
                origin.serve("/\(name)", Response(body: body, type: "image/bmp"))
            }
            origin.serve("/damaged", Response(body: (bodies["24-bit"] ?? []).dropLast(40)))
            let lines = (names + ["damaged"]).map { origin.url("/\($0)") }
            try await withWorkspace { workspace in
                let run = try await workspace.finish(
                    workspace.prefetchCommand(lines, ["--encode", encoding]).run(),
                    entries: lines.count)
                let entries = run.report.entries.sorted { $0.line < $1.line }
                #expect(
                    entries.map(\.verdict) == [
                        "downloaded", "downloaded", "downloaded", "failed/corrupt-image",
                    ], "\(run.result)")
                var sources: [String: [UInt8]] = [:]
                for (entry, name) in zip(entries, names) {
                    let path = try #require(entry.path)
                    #expect(path.hasSuffix("." + suffix))
                    #expect(entry.width == 13 && entry.height == 9)
                    sources[entry.key] = bodies[name]
                    if encoding == "original" {
                        #expect(try workspace.bytes(of: path) == bodies[name])
                    }
                }
                #expect(try await workspace.judge(sources: sources) == 3)
                let again = try await workspace.finish(
                    workspace.prefetchCommand(lines, ["--encode", encoding]).run(),
                    entries: lines.count)
                #expect(again.report.verdicts.count { $0 == "fresh" } == 3, "\(again.result)")
            }
        }
    }
}

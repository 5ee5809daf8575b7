import Foundation
import TestSupport
import Testing

/// The checks that `--check structure` omits, and the remaining ones.
@Suite(.timeLimit(.minutes(15)))
struct SourceCheckTests {
    private static let structure = ["--encode", "original", "--check", "structure"]

    @Test func storesWithoutDecoding() async throws {
        try await withOrigin { origin in
            let files = [
                "a.jpg": try Fixtures.file("baseline.jpg"),
                "b.jpg": try Fixtures.file("progressive.jpg"), "c.png": Fixtures.png(.palette),
            ]
            origin.serveFaults(of: files)
            let names = files.keys.sorted()
            let lines = names.map { origin.url("/f/plain/0/\($0)") }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.finish(
                    workspace.prefetchCommand(lines, SourceCheckTests.structure).run(),
                    entries: lines.count)
                #expect(run.result.status == 0, "\(run.result)")
                for (entry, name) in zip(run.report.entries.sorted { $0.line < $1.line }, names) {
                    #expect(entry.verdict == "downloaded")
                    #expect(entry.decodeMilliseconds == nil)
                    let path = try #require(entry.path)
                    #expect(try workspace.bytes(of: path) == files[name])
                }
                // The same recipe: nothing is requested again, whichever check the next run makes.
                let again = try await workspace.finish(
                    workspace.prefetchCommand(lines, ["--encode", "original"]).run(),
                    entries: lines.count)
                #expect(again.report.verdicts == ["fresh", "fresh", "fresh"])
                #expect(try await workspace.judge() == 3)
            }
        }
    }

    @Test(arguments: [Truncation.Framing.closeDelimited, .shortAtTheOrigin])
    func truncatedPixelsAreNeverStored(framing: Truncation.Framing) async throws {
        try await withOrigin { origin in
            let files = [
                "a.jpg": try Fixtures.file("baseline.jpg"),
                "b.jpg": try Fixtures.file("progressive.jpg"), "c.png": Fixtures.png(.palette),
            ]
            origin.serveFaults(of: files)
            let lines = files.flatMap { name, bytes in
                (0..<bytes.count).map { origin.url("/f/\(framing.rawValue)/\($0)/\(name)") }
            }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.finish(
                    workspace.prefetchCommand(lines, SourceCheckTests.structure).run(),
                    entries: lines.count)
                var stored = 0
                for entry in run.report.entries {
                    let parts = entry.url.split(separator: "/").suffix(2).map(String.init)
                    let truncation = Truncation(
                        name: parts[1], bytes: files[parts[1]] ?? [], framing: framing)
                    let offset = try #require(Int(parts[0]))
                    var allowed = Set(truncation.reasons.map { "failed/\($0)" })
                    if offset == 0 { allowed = ["failed/interrupted"] }
                    if truncation.losesOnlyEnd(at: offset) {
                        allowed = ["downloaded"]
                        stored += 1
                    }
                    #expect(allowed.contains(entry.verdict), "\(entry)")
                }
                // The own bytes of the source: some readers want the checksums.
                let files = try await workspace.query("SELECT count(*) FROM variant")
                #expect(files == [["\(stored)"]])
            }
        }
    }

    /// The price of the flag: a JPEG has no checksums.
    @Test func onlyDecodingDetectsDamageInsideAScan() async throws {
        try await withOrigin { origin in
            let good = try Fixtures.file("baseline.jpg")
            let scan = try #require(
                good.indices.dropLast().first { good[$0] == 0xFF && good[$0 + 1] == 0xDA })
            // Codes for coefficients in place of the end of the image.
            var damaged = good
            for position in scan + 40..<good.count - 2 where good[position] != 0xFF {
                damaged[position] = 0x55
            }
            origin.serve("/a.jpg", .image(damaged))
            let url = origin.url("/a.jpg")
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let decoded = try await workspace.finish(
                    workspace.prefetchCommand([url], ["--encode", "original"]).run(), entries: 1)
                #expect(decoded.report.verdicts == ["failed/corrupt-image"], "\(decoded.result)")
                let checked = try await workspace.finish(
                    workspace.prefetchCommand(
                        [url], SourceCheckTests.structure + ["--retry-failed"]
                    ).run(), entries: 1)
                #expect(checked.report.verdicts == ["downloaded"], "\(checked.result)")
                // Another variant decodes it, finds the damage and stores nothing.
                let derived = try await workspace.finish(
                    workspace.prefetchCommand([url]).run(), entries: 1)
                #expect(derived.report.verdicts == ["failed/corrupt-image"], "\(derived.result)")
                // The judge would refuse it too.
                origin.serve("/a.jpg", .image(good))
                let mended = try await workspace.finish(
                    workspace.prefetchCommand(
                        [url], SourceCheckTests.structure + ["--refresh", "all", "--retry-failed"]
                    ).run(), entries: 1)
                #expect(mended.report.verdicts == ["downloaded"], "\(mended.result)")
                #expect(try await workspace.judge(sources: [url: good]) == 1)
            }
        }
    }
}

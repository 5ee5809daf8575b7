import Foundation
import TestSupport
import Testing

/// `--body-filter`
@Suite(.timeLimit(.minutes(15)))
struct FilteredBodyTests {
    private static let image = Fixtures.png(width: 3, height: 3)

    private func encoded(_ path: String, on origin: Origin) {
        origin.serve(
            path,
            Response(
                headers: [("ETag", "\"e\"")],
                body: Array(Data(Self.image).base64EncodedString().utf8), type: "text/plain"))
    }

    @Test func theImageOfTheBodyIsStored() async throws {
        try await withOrigin { origin in
            encoded("/a", on: origin)
            try await withWorkspace { workspace in
                let lines = [origin.url("/a")]
                let run = try await workspace.prefetch(
                    lines, "--body-filter", "base64", "--encode", "original")
                #expect(run.report.verdicts == ["downloaded"], "\(run.result)")
                let path = try #require(run.report[line: 1]?.path)
                #expect(try workspace.bytes(of: workspace.cache + "/" + path) == Self.image)
                let again = try await workspace.prefetch(
                    lines, "--body-filter", "base64", "--encode", "original")
                #expect(again.report.verdicts == ["fresh"])
                // Other variants are made of the stored image, which was filtered.
                let derived = try await workspace.prefetch(
                    lines, "--body-filter", "base64", "--encode", "jpeg")
                #expect(derived.report.verdicts == ["derived"], "\(derived.result)")
                #expect(origin.requests.count == 1)

                // The filter is part of the recipe.
                encoded("/b", on: origin)
                let other = [origin.url("/b")]
                _ = try await workspace.prefetch(
                    other, "--body-filter", "base64", "--store-original")
                let command = try await workspace.prefetch(other, "--body-filter", "base64 -d")
                #expect(command.report.verdicts == ["downloaded"], "\(command.result)")
                #expect(origin.requests.last?.header("If-None-Match") == nil)
                let none = try await workspace.prefetch(other)
                #expect(none.report.verdicts == ["failed/not-an-image"], "\(none.result)")
            }
        }
    }

    /// `none` takes back the filter of a file, for the run or for a host.
    @Test func aFilterMayBeTakenBack() async throws {
        try await withOrigin { origin in
            encoded("/a", on: origin)
            origin.serve("/b", .image(Self.image))
            let lines = ["/a", "/b"].map(origin.url)
            try await withWorkspace { workspace in
                try workspace.write(Array("body-filter = \"base64\"\n".utf8), to: "run.toml")
                try workspace.write(
                    Array(
                        """
                        body-filter = "base64"
                        [host."localhost"]
                        body-filter = "none"

                        """.utf8), to: "host.toml")
                let filtered = try await workspace.prefetch(lines, "--config", "run.toml")
                #expect(filtered.report.verdicts == ["downloaded", "failed/body-filter"])
                let flag = try await workspace.prefetch(
                    lines, "--config", "run.toml", "--body-filter", "none")
                #expect(
                    flag.report.verdicts == ["failed/not-an-image", "downloaded"],
                    "\(flag.result)")
                let other = lines[1].replacing("127.0.0.1", with: "localhost")
                let host = try await workspace.prefetch([other], "--config", "host.toml")
                #expect(host.report.verdicts == ["downloaded"], "\(host.result)")

                // Failures of a filter never blacklist.
                encoded("/c", on: origin)
                let failing = [origin.url("/c")]
                for _ in 0..<3 {
                    let run = try await workspace.prefetch(failing, "--body-filter", "exit 7")
                    #expect(run.report.verdicts == ["failed/body-filter"], "\(run.result)")
                    #expect(run.report[line: 1]?.message == "exit status 7")
                    #expect(run.report[line: 1]?.attempts == 1)
                }
                let mended = try await workspace.prefetch(failing, "--body-filter", "base64")
                #expect(mended.report.verdicts == ["downloaded"])
                // A project may not name a command.
                for text in ["body-filter = \"id\"", "[host.\"*\"]\nbody-filter = \"id\""] {
                    try workspace.writeConfiguration(text + "\n")
                    let result = try await workspace.run(try workspace.manifest([]))
                    #expect(result.status != 0, "\(result)")
                    #expect(result.error.contains("body-filter"), "\(result)")
                }
            }
        }
    }

    @Test func aProcessOfFramesServesManyBodies() async throws {
        try await withOrigin { origin in
            let count = 40
            let lines = (0..<count).map { number -> String in
                encoded("/\(number)", on: origin)
                return origin.url("/\(number)")
            }
            try await withWorkspace { workspace in
                let script = try workspace.write(
                    Array(
                        """
                        import sys, struct, base64
                        open(sys.argv[1], "a").write("x")
                        i, o = sys.stdin.buffer, sys.stdout.buffer
                        while len(head := i.read(4)) == 4:
                            image = base64.b64decode(i.read(struct.unpack(">I", head)[0]))
                            o.write(struct.pack(">I", len(image)) + image)
                            o.flush()
                        """.utf8), to: "frames.py")
                let starts = workspace.folder + "/starts"
                let run = try await workspace.prefetch(
                    lines, "--body-filter", "frames:python3 \(script) \(starts)")
                #expect(run.summary.outcomes == ["downloaded": count], "\(run.result)")
                let processes = try workspace.bytes(of: starts).count
                #expect((1..<count).contains(processes), "\(processes)")
            }
        }
    }
}

import Foundation
import TestSupport
import Testing

/// `list` and `failed list`: columns on a terminal, tabs elsewhere, and filters.
@Suite(.timeLimit(.minutes(15)))
struct ListingTests {
    /// The columns at which words begin, if at least two spaces separate them.
    private func starts(_ line: Substring) -> [Int] {
        let characters = Array(line)
        return characters.indices.filter { index in
            characters[index] != " "
                && (index == 0
                    || index > 1 && characters[index - 1] == " " && characters[index - 2] == " ")
        }
    }

    private func serve(_ origin: Origin) -> [String] {
        origin.serve("/gone", .notFound)
        origin.serve("/a-rather-longer-name", .text("<html></html>"))
        return origin.serveImages(2)
            + [origin.url("/gone?token=HUSH&a=1"), origin.url("/a-rather-longer-name")]
    }

    @Test func columnsFiltersAndURLs() async throws {
        try await withOrigin { origin in
            let urls = serve(origin)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                _ = try await workspace.prefetch(urls)
                for (arguments, header, textColumns) in [
                    (["list"], "STATE  EXPIRES", 2), (["failed", "list"], "STATE  ", 3),
                    (["history"], "STARTED  ", 1),
                ] {
                    let command = workspace.command(arguments)
                    let shown = try await command.onTerminal().run()
                    #expect(shown.status == 0, "\(shown)")
                    // In one character, a carriage return and a line feed.
                    let lines = shown.output.replacing("\r\n", with: "\n").split(separator: "\n")
                    let plain = try await command.run()
                    let rows = plain.outputLines
                    try #require(lines.count == rows.count + 1, "\(shown)")
                    #expect(lines[0].hasPrefix(header), "\(shown)")
                    #expect(!shown.output.contains("\t"), "\(shown)")
                    let columns = starts(lines[0])
                    for (line, row) in zip(lines[1...], rows) {
                        #expect(
                            starts(line).prefix(textColumns) == columns.prefix(textColumns),
                            "\(shown)")
                        #expect(starts(line).last == columns.last, "\(shown)")
                        #expect(row.split(separator: "\t").count >= columns.count, "\(plain)")
                    }
                }
                try await expectHostsAndReasonsLeftOut(workspace, "127.0.0.1:\(origin.port)")
                try await expectAListOfFailures(workspace, origin, urls)
            }
        }
    }

    private func expectHostsAndReasonsLeftOut(
        _ workspace: Workspace, _ here: String
    ) async throws {
        func count(_ arguments: String...) async throws -> Int {
            let result = try await workspace.command(arguments).run()
            #expect(result.status == 0, "\(result)")
            return result.outputLines.count
        }
        for (host, isHere) in [
            ("127.0.0.1", true), (here, true), ("HTTP://\(here)", true),
            ("127.0.0", false), ("https://\(here)", false), ("example.com", false),
        ] {
            let expected = isHere ? 2 : 0
            #expect(try await count("list", "--host", host) == expected, "\(host)")
            #expect(try await count("list", "--json", "--host", host) == expected)
            #expect(try await count("failed", "list", "--host", host) == expected)
        }
        #expect(try await count("failed", "list", "--reason", "not-an-image") == 1)
        #expect(try await count("failed", "list", "--json", "--reason", "dns", "--host", here) == 0)
    }

    /// `failed list --urls` is the list of a run.
    private func expectAListOfFailures(
        _ workspace: Workspace, _ origin: Origin, _ urls: [String]
    ) async throws {
        let list = try await workspace.run("failed", "list", "--urls")
        #expect(list.status == 0 && list.error.isEmpty, "\(list)")
        #expect(list.outputLines == urls[2...].sorted(), "\(list)")
        // Masked everywhere else.
        let shown = try await workspace.run("failed", "list")
        #expect(!shown.output.contains("HUSH"), "\(shown)")
        origin.serve("/gone", .image(Fixtures.png(seed: 7)))
        var command = workspace.command(["run", "-", "--retry-failed", "--retry", "0"])
        command.input = .bytes(list.outputBytes)
        let again = try await command.run()
        #expect(again.error.contains("2 entries: 1 downloaded, 1 failed"), "\(again)")
        let one = try await workspace.run("failed", "list", "--urls", "--reason", "not-an-image")
        #expect(one.output == urls[3] + "\n", "\(one)")
    }
}

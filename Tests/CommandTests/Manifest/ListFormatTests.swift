import Foundation
import TestSupport
import Testing

/// Lists that are tables, JSON lines and sitemaps.
@Suite(.timeLimit(.minutes(15)))
struct ListFormatTests {
    @Test func formatsAndTheirColumns() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(4)
            try await withWorkspace { workspace in
                try workspace.manifest(
                    ["id,image_url\n7,\(urls[0])\n8,\n7b,\(urls[0])"], name: "a.csv")
                try workspace.manifest(["{\"url\":\"\(urls[1])\",\"n\":1.50}"], name: "b.jsonl")
                try workspace.manifest(
                    [
                        "<urlset><url><loc>http://p/</loc><image><loc>\(urls[2])</loc></image>",
                        "</url></urlset>",
                    ], name: "c.xml")
                try workspace.manifest(["\(urls[3]) attr.a=\"b c\""], name: "d.txt")
                for outcome in ["downloaded", "fresh"] {
                    let result = try await workspace.run(
                        "a.csv", "b.jsonl", "c.xml", "d.txt", "-v", "--report", "r.jsonl")
                    #expect(result.status == 0, "\(result)")
                    #expect(result.error.contains("prefetch: a.csv: format csv\n"), "\(result)")
                    #expect(
                        result.error.contains("  skipped: 1 row without a URL, first a.csv:3\n"))
                    #expect(result.error.contains("prefetch: c.xml: format sitemap\n"))
                    let report = try String(
                        contentsOfFile: workspace.folder + "/r.jsonl", encoding: .utf8)
                    for (line, end) in [
                        (#""manifest":"a.csv","line":2"#, #""columns":{"id":"7"}}"#),
                        (#""manifest":"a.csv","line":4"#, #""columns":{"id":"7b"}}"#),
                        (#""manifest":"b.jsonl","line":1"#, #""columns":{"n":1.50}}"#),
                        (#""manifest":"c.xml","line":1"#, #""columns":{"page":"http://p/"}}"#),
                    ] {
                        let found = report.split(separator: "\n").filter { $0.contains(line + ",") }
                        #expect(found.count == 1 && found[0].hasSuffix(end), "\(report)")
                    }
                    #expect(report.contains("\"outcome\":\"\(outcome)\""))
                    #expect(report.contains("\"skipped\":1,"))
                }
                let plan = try await workspace.run("plan", "a.csv")
                #expect(
                    plan.output.contains("\n1 row without a URL skipped, first a.csv:3\n"),
                    "\(plan)")

                // Flags choose columns.
                try workspace.manifest(["k;\(urls[0]);x"], name: "a.csv")
                let result = try await workspace.run(
                    "a.csv", "--no-header", "--url-column", "2", "--column", "key=1")
                #expect(result.status == 0, "\(result)")
                let path = try await workspace.command(["get", "k"]).run()
                #expect(path.status == 0, "\(path)")
                let missing = try await workspace.run(
                    "a.csv", "--format", "csv", "--url-column", "u")
                #expect(missing.status == 2)
                #expect(missing.error.contains("a.csv: has no column 'u'"), "\(missing)")
                #expect(
                    missing.error.contains("hint: its first row seems to have no names"),
                    "\(missing)")
                // A sitemap that is damaged ends the run.
                try workspace.manifest(
                    ["<urlset><url><image><loc>\(urls[0])</loc></image></url>\n<<"], name: "a.xml")
                let damaged = try await workspace.run("a.xml")
                #expect(damaged.status == 2, "\(damaged)")
                #expect(damaged.error.contains("a.xml: line 3, column 1: "), "\(damaged)")
            }
        }
    }

    /// A list in which nothing names a picture is probably the wrong one.
    @Test(arguments: [
        ("a.jsonl", "{\"id\":1,\"photo_file\":\"x\"}", "no member 'image_url'"),
        ("a.csv", "id,image\n1,\n", "no URL in 1 row"),
    ])
    func aListOfSkippedRowsIsEmpty(name: String, text: String, message: String) async throws {
        try await withWorkspace { workspace in
            try workspace.manifest([text], name: name)
            let result = try await workspace.run(name)
            #expect(result.status == 1, "\(result)")
            #expect(result.error.contains("\(name): no entries: "), "\(result)")
            #expect(result.error.contains(message), "\(result)")
            #expect(result.error.contains("hint: --url-column NAME"), "\(result)")
            let allowed = try await workspace.run(name, "--allow-empty")
            #expect(allowed.status == 0, "\(allowed)")
        }
    }

    @Test func severalURLsOfARow() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(4)
            try await withWorkspace { workspace in
                try workspace.manifest(
                    ["sku,i1,i2", "1,\(urls[0]),\(urls[1])", "2,\"\(urls[2]), \(urls[3])\","],
                    name: "a.csv")
                let columns = ["a.csv", "--url-column", "i1", "--url-column", "i2"]
                let failed = try await workspace.command(columns).run()
                #expect(failed.status == 1, "\(failed)")
                #expect(failed.error.contains("several URLs in one cell; --each"), "\(failed)")
                let all = try await workspace.command(columns + ["--each"]).run()
                #expect(all.status == 0, "\(all)")
                #expect(all.error.contains("4 entries: 2 downloaded, 2 fresh"), "\(all)")

                try workspace.manifest(
                    ["{\"image\":[\"\(urls[0])\",\"\(urls[1])\"]}"], name: "b.jsonl")
                let mirrors = try await workspace.run("b.jsonl")
                #expect(mirrors.error.contains("1 array of several URLs taken as mirrors"))
                #expect(mirrors.error.contains("hint: --each makes each URL an entry"))
                // Answers belong to lines, also to those without a picture.
                var batch = workspace.command(["get", "--batch", "--format", "csv"])
                batch.input = .bytes(Array("image,a\n\(urls[0]),b\n,c\n".utf8))
                let answers = try await batch.run().output.split(separator: "\n")
                #expect(answers.count == 2 && answers.last == "-", "\(answers)")
            }
        }
    }
}

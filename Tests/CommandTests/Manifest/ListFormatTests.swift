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
                    #expect(result.status == 1, "\(result)")
                    #expect(result.error.contains("prefetch: a.csv: format csv\n"), "\(result)")
                    #expect(result.error.contains("prefetch: c.xml: format sitemap\n"))
                    let report = try String(
                        contentsOfFile: workspace.folder + "/r.jsonl", encoding: .utf8)
                    for (line, end) in [
                        (#""manifest":"a.csv","line":2"#, #""columns":{"id":"7"}}"#),
                        (#""manifest":"a.csv","line":3"#, #""columns":{"id":"8"}}"#),
                        (#""manifest":"a.csv","line":4"#, #""columns":{"id":"7b"}}"#),
                        (#""manifest":"b.jsonl","line":1"#, #""columns":{"n":1.50}}"#),
                        (#""manifest":"c.xml","line":1"#, #""columns":{"page":"http://p/"}}"#),
                    ] {
                        let found = report.split(separator: "\n").filter { $0.contains(line + ",") }
                        #expect(found.count == 1 && found[0].hasSuffix(end), "\(report)")
                    }
                    #expect(report.contains("\"outcome\":\"\(outcome)\""))
                }

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
                #expect(damaged.error.contains("a.xml: line 2: "), "\(damaged)")
            }
        }
    }
}

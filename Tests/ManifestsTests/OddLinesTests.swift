import PrefetchModel
import Testing

@testable import Manifests

@Suite(.timeLimit(.minutes(15)))
struct OddLinesTests {
    private static func notes(_ lines: [String]) throws -> [String] {
        let reader = try ManifestReader(lines: lines, name: "list.txt")
        while try reader.nextBatch() != nil {}
        return reader.notes.map(\.text)
    }

    private static let quotes = "have quotation marks around the URL"
    private static let invisible = "contain an invisible character, like a no-break space"
    private static let entity = "contain an HTML entity, like &amp;"

    @Test(arguments: [
        ("\"https://example.org/%.jpg\"", quotes), ("'https://example.org/%.jpg'", quotes),
        ("“https://example.org/%.jpg”", quotes), ("«https://example.org/%.jpg»", quotes),
        ("`https://example.org/%.jpg`", quotes), ("https://example.org/%.jpg\"", quotes),
        ("- https://example.org/%.jpg", "begin with a list's mark"),
        ("* https://example.org/%.jpg", "begin with a list's mark"),
        ("+ https://example.org/%.jpg", "begin with a list's mark"),
        ("– https://example.org/%.jpg", "begin with a list's mark"),
        ("- [x] https://example.org/%.jpg", "begin with a list's mark"),
        ("%. https://example.org/a.jpg", "begin with a list's mark"),
        ("![a](https://example.org/%.jpg)", "are Markdown or HTML"),
        ("img src=\"https://example.org/%.jpg\" alt", "are Markdown or HTML"),
        ("url: https://example.org/%.jpg", "have text before the URL"),
        ("% https://example.org/a.jpg", "have text before the URL"),
        ("https://example.org/%.jpg,", "end with a comma, semicolon or stop"),
        ("https://example.org/%.jpg;", "end with a comma, semicolon or stop"),
        ("https://example.org/%.jpg.", "end with a comma, semicolon or stop"),
        ("https://example.org/?a=%&amp;b=1", entity), ("https://example.org/?a=%&#38;b=1", entity),
        ("https://example.org/%.jpg\u{A0}", invisible), ("\u{200B}https://e.org/%.jpg", invisible),
        ("https://example.org/%.jpg\u{3000}", invisible), ("https://e.org/%\u{AD}.jpg", invisible),
        ("%,https://example.org/a.jpg", "have columns"),
        ("%|https://example.org/a.jpg", "have columns"),
        ("a caption\thttps://example.org/%.jpg", "have columns"),
        ("https://example.org/%.jpg\ta caption", "have columns"),
        ("https://example.org/%.jpg 480w,", "are entries of a srcset"),
        ("https://example.org/%.jpg 1.5x", "are entries of a srcset"),
        ("https://a.org/%.jpg 1x, https://a.org/b.jpg 2x", "are entries of a srcset"),
        ("https://example.org/%.jpg\thttps://b.org/%.jpg", "have several URLs"),
        ("https://example.org/%.jpg https://b.org/%.jpg", "have several URLs"),
        ("https://example.org/%.jpg,cat,640", "have columns"),
        ("https://example.org/%.png|cat", "have columns"),
    ])
    func namesTheFormOfSeveralLines(line: String, found: String) throws {
        let lines =
            ["# list", "https://example.org/first.jpg"]
            + (1...5).map { line.replacing("%", with: "\($0)") }
        #expect(try Self.notes(lines) == ["5 lines \(found), first line 3"])
        // A single entity makes no failure that would tell of it.
        let few = try Self.notes(Array(lines.dropLast(2)))
        #expect(few == (found == Self.entity ? ["3 lines \(found), first line 3"] : []))
    }

    /// The first line does not make the list XML or JSON.
    @Test(arguments: ["<https://example.org/%.jpg>", "[a](https://example.org/%.jpg)"])
    func namesTheFormOfAllLines(line: String) throws {
        let lines = (1...5).map { line.replacing("%", with: "\($0)") }
        #expect(try Self.notes(lines) == ["5 lines are Markdown or HTML, first line 1"])
    }

    @Test(arguments: [
        "https://example.org/w_200,h_300/%.jpg", "https://example.org/%.jpg,w_200/a.jpg",
        "https://example.org/%.jpg?crop=1,2,3", "images/%.jpg priority=low",
        "https://example.org/%/..",
        "https://example.org/%.jpg priority=high",
        "https://example.org/%.jpg\tkey=a\tpriority=low # a comment",
        "https://example.org/%.jpg\t# a comment", "https://example.org/?u=a,https://b.org/%.jpg",
        "https://example.org/ünï/%.jpg", "https://example.org/?a=%&b=1", "# \"a comment\",",
    ])
    func usualLinesAreNotOdd(line: String) throws {
        let lines = (1...9).map { line.replacing("%", with: "\($0)") }
        #expect(try Self.notes(lines) == [])
    }

    /// URLs of other formats have some of these forms, too. Marks around a cell are removed.
    @Test(arguments: [ManifestFormat.csv, .tsv, .jsonl, .sitemap])
    func urlsOfOtherFormatsAreExamined(format: ManifestFormat) throws {
        let folder = try TemporaryFolder()
        for (url, count, found) in [
            ("https://e.org/?a=%&amp;b=1", 1, "1 line contains an HTML entity, like &amp;"),
            ("https://e.org/?a=%&amp;b=1", 30, "30 lines " + Self.entity),
            ("https://e.org/%\u{200B}.jpg", 5, "5 lines " + Self.invisible),
            ("'https://e.org/%.jpg'", 5, "5 lines " + Self.quotes),
        ] where format == .sitemap || !url.hasPrefix("'") {
            let urls = (1...count).map { url.replacing("%", with: "\($0)") }
            let text =
                switch format {
                case .csv: "id,image\n" + urls.map { "1,\($0)\n" }.joined()
                case .tsv: "id\timage\n" + urls.map { "1\t\($0)\n" }.joined()
                case .jsonl: urls.map { "{\"image\":\"\($0)\"}\n" }.joined()
                default:
                    "<urlset>"
                        + urls.map {
                            let loc = $0.replacing("&", with: "&amp;")
                            return "<url><image><loc>\(loc)</loc></image></url>\n"
                        }.joined() + "</urlset>"
                }
            let reader = try ManifestReader(
                path: folder.file("list", text.utf8), options: ManifestOptions(format: format))
            while try reader.nextBatch() != nil {}
            let line = [.csv, .tsv].contains(format) ? 2 : 1
            #expect(reader.notes.map(\.text) == ["\(found), first line \(line)"])
        }
    }

    @Test(arguments: [
        ("https://e.org/480.jpg 480w,", "srcset"), ("https://e.org/2.jpg 2x", "srcset"),
        ("https://e.org/1.jpg\thttps://f.org/1.jpg", "url=URL"),
        ("https://e.org/1.jpg https://f.org/1.jpg", "url=URL"),
        ("//e.org/1.jpg", "write https: in front"), ("e.org/1.jpg", "write https:// in front"),
    ])
    func aBadLineSaysWhatItIs(line: String, message: String) throws {
        let reader = try ManifestReader(lines: [line], name: "list.txt")
        let problems = try #require(try reader.nextBatch()).problems.map(\.failure.message)
        #expect(problems.count == 1 && problems[0].contains(message), "\(problems)")
    }

    @Test func longListsAreExaminedInPart() throws {
        let lines = (0..<1005).map { "https://example.org/\($0).jpg," }
        #expect(
            try Self.notes(lines) == [
                "1000 of the first 1000 lines end with a comma, semicolon or stop, first line 1"
            ])
    }

    @Test func aHeaderIsNamed() throws {
        for header in ["url", "URL", "image_url"] {
            let reader = try ManifestReader(
                lines: [header, "https://example.org/a.jpg"], name: "list.txt")
            let batch = try #require(try reader.nextBatch())
            #expect(
                batch.problems.map(\.failure.message) == [
                    "a column's name, not a URL; remove this line"
                ])
        }
    }
}

import PrefetchModel
import Testing

@testable import Manifests

@Suite(.timeLimit(.minutes(15)))
struct SitemapFormatTests {
    @Test func theURLsOfSitemapsHaveALimitOfMemory() throws {
        let path = String(repeating: "x", count: 60_000)
        let sitemaps = (0..<400).map { "<sitemap><loc>http://a.b/\($0)\(path)</loc></sitemap>\n" }
        let file = try folder.file(
            "index.xml", "<sitemapindex>\(sitemaps.joined())</sitemapindex>".utf8)
        var options = ManifestOptions()
        options.followsIndexes = true
        let reader = try ManifestReader(path: file, options: options)
        var problems: [String] = []
        while let batch = try reader.nextBatch() {
            problems += batch.problems.map { $0.failure.message }
        }
        #expect(reader.sitemaps.count == 279)
        #expect(problems.count == 121)
        #expect(problems.allSatisfy { $0.contains("more than 16.0 MiB of their URLs") })
    }

    @Test func aSourceHasALimitOfSize() throws {
        let file = try folder.file("list.txt", repeatElement(0x0A, count: 3 << 20))
        var options = ManifestOptions()
        options.maximumBytes = 1 << 20
        let reader = try ManifestReader(path: file, options: options)
        let error = #expect(throws: ManifestError.self) { try reader.nextBatch() }
        #expect(error?.message == "is larger than 1.00 MiB unpacked")
    }

    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    static let sitemap = """
        <?xml version="1.0" encoding="UTF-8"?>
        <urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
            xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
          <url><loc>http://a.b/page</loc><lastmod>2026-01-01</lastmod>
            <image:image><image:loc> http://a.b/1.jpg?a=1&amp;b=2
            </image:loc><image:caption>Caf\u{E9} &lt;x&gt; <![CDATA[&]]></image:caption></image:image>
            <image:image><image:loc>http://a.b/2.jpg</image:loc><image:title>T</image:title></image:image>
          </url>
          <url><loc>http://a.b/other</loc></url>
        </urlset>
        """

    @Test(arguments: [1, 10, 1 << 16])
    func readsImages(readBytes: Int) throws {
        let (entries, error) = try folder.read(
            SitemapFormatTests.sitemap.utf8, .sitemap, readBytes: readBytes)
        #expect(error == nil)
        #expect(entries.map(\.url) == ["http://a.b/1.jpg?a=1&b=2", "http://a.b/2.jpg"])
        #expect(entries.map(\.line) == [6, 7])
        #expect(
            entries.map(\.columns) == [
                "{\"page\":\"http://a.b/page\",\"caption\":\"Caf\u{E9} <x> &\"}",
                "{\"page\":\"http://a.b/page\",\"title\":\"T\"}",
            ])
    }

    /// The texts of an image belong to each of its URLs, also where they precede or follow them.
    @Test(arguments: 0...4, 0...4)
    func readsEveryURLOfAnImage(count: Int, place: Int) throws {
        var elements = (0..<count).map { "<image:loc>\n http://a.b/\($0).jpg </image:loc>" }
        elements.insert("<image:caption>c</image:caption>", at: min(place, count))
        let text = SitemapFormatTests.sitemap.replacing(
            "<image:image><image:loc>http://a.b/2.jpg</image:loc><image:title>T</image:title>",
            with: "<image:image>\(elements.joined())")
        let (entries, error) = try folder.read(text.utf8, .sitemap)
        #expect(error == nil)
        let own = entries.dropFirst()
        let urls = (0..<count).map { "http://a.b/\($0).jpg" }
        #expect(own.map(\.url) == urls)
        let columns = "{\"page\":\"http://a.b/page\",\"caption\":\"c\"}"
        #expect(own.allSatisfy { $0.problem != nil || $0.columns == columns }, "\(entries)")
    }

    /// More URLs than a text may be long.
    @Test func readsThousandsOfURLsOfAnImage() throws {
        let locs = (0..<9000).map { "<image:loc>http://a.b/\($0).jpg</image:loc>\n" }.joined()
        let text = "<urlset xmlns:image='i'><url><image:image>\(locs)</image:image></url></urlset>"
        let (entries, error) = try folder.read(text.utf8, .sitemap)
        #expect(error == nil && entries.map(\.url) == (0..<9000).map { "http://a.b/\($0).jpg" })
    }

    @Test func readsPagesOnRequest() throws {
        let (entries, _) = try folder.read(
            SitemapFormatTests.sitemap.utf8, .sitemap, readsPages: true)
        #expect(
            entries.map(\.url) == [
                "http://a.b/page", "http://a.b/1.jpg?a=1&b=2", "http://a.b/2.jpg",
                "http://a.b/other",
            ])
    }

    @Test func readsUTF16() throws {
        var bytes: [UInt8] = [0xFF, 0xFE]
        let text = SitemapFormatTests.sitemap.replacing("UTF-8", with: "UTF-16")
        for unit in text.utf16 { bytes += [UInt8(unit & 0xFF), UInt8(unit >> 8)] }
        let reader = try ManifestReader(path: folder.file("list", bytes))
        #expect(reader.readAll().entries.count == 2)
        #expect(reader.format == .sitemap)
    }

    @Test(arguments: [
        ("<rss/>", "is XML, but not a sitemap: its root element is 'rss'"),
        ("<urlset><url></urlset>", "line 1, column 16: an end tag for another element"),
        ("<urlset>\n<url>", "line 2, column 6: ends before its element does"),
        ("", "line 1, column 1: ends before its element does"),
        (
            "<!DOCTYPE urlset [<!ENTITY a \"b\">]>\n<urlset/>",
            "line 1, column 30: its DOCTYPE declares entities, which sitemaps don't have"
        ),
        (
            "<urlset><url a=1></url></urlset>",
            "line 1, column 16: a character where none is allowed"
        ),
    ])
    func refusesOtherXML(text: String, message: String) throws {
        let (entries, error) = try folder.read(text.utf8, .sitemap)
        #expect(entries.isEmpty)
        #expect(error?.message == message)
    }

    /// Entries before damage are delivered.
    @Test func damageEndsTheList() throws {
        let text = SitemapFormatTests.sitemap.replacing(
            "<url><loc>http://a.b/other", with: "<url><loc <")
        let (entries, error) = try folder.read(text.utf8, .sitemap)
        #expect(entries.count == 2)
        #expect(error?.message == "line 9, column 13: a character where none is allowed")
    }

    @Test func textsAndTagsAreLimited() throws {
        let long = String(repeating: "x", count: 1000)
        let image = { (url: String) in "<url><image><loc>\(url)</loc></image></url>" }
        let (entries, error) = try folder.read(
            "<urlset>\(image("http://a.b/\(long)"))\n\(image("http://a.b/"))</urlset>".utf8,
            .sitemap,
            maximumLineBytes: 500)
        #expect(error == nil)
        #expect(entries.map(\.problem) == ["the URL is longer than 64.0 KiB", nil])
        let tag = String(repeating: "x", count: 5 << 20)
        let (_, memory) = try folder.read("<urlset \(tag)='1'/>".utf8, .sitemap)
        #expect(memory?.message.hasSuffix("takes too much memory for its size") == true)
    }

    @Test func anIndexNamesItsSitemaps() throws {
        let text = "<sitemapindex><sitemap><loc>http://a.b/1.xml</loc></sitemap></sitemapindex>"
        let (entries, error) = try folder.read(text.utf8, .sitemap)
        #expect(error == nil)
        #expect(entries.map(\.url) == ["http://a.b/1.xml"])
        #expect(entries[0].problem?.hasPrefix("another sitemap") == true)
    }

    @Test func theSitemapsOfAnIndexAreCollectedWithTheirLines() throws {
        let locations = ["http://a.b/1.xml", "ftp://a.b/2.xml", "", "HTTP://A.B/3.xml"]
        let text =
            "<sitemapindex>"
            + locations.map { "<sitemap><loc>\($0)</loc></sitemap>\n" }.joined()
            + "</sitemapindex>"
        let reader = try ManifestReader(
            path: folder.file("index.xml", text.utf8),
            options: {
                var options = ManifestOptions()
                options.followsIndexes = true
                return options
            }())
        let (entries, error) = reader.readAll()
        #expect(error == nil)
        #expect(reader.sitemaps.map(\.url.text) == ["http://a.b/1.xml", "http://a.b/3.xml"])
        #expect(reader.sitemaps.map(\.line) == [1, 4])
        #expect(entries.map(\.line) == [2, 3] && entries.allSatisfy { $0.problem != nil })
    }
}

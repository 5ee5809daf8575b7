import Testing

@testable import Manifests

/// Sitemaps with elements in an unusual order, number or depth.
@Suite(.timeLimit(.minutes(15)))
struct SitemapOrderTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func read(_ text: String) throws -> [ReadEntry] {
        let (entries, error) = try folder.read("<urlset>\(text)</urlset>".utf8, .sitemap)
        #expect(error == nil)
        return entries
    }

    private func image(_ url: String) -> String { "<image><loc>\(url)</loc></image>" }

    /// The page's URL may follow its images.
    @Test func thePageMayComeLast() throws {
        let entries = try read(
            """
            <url>\(image("1.jpg"))\(image("/2.jpg"))<loc>http://a.b/p/q</loc>\(image("3.jpg"))</url>
            <url>\(image("http://a.b/4.jpg"))</url>\(image("http://a.b/5.jpg"))
            <url><loc>http://a.b/r</loc>\(image("6.jpg"))</url>
            """)
        #expect(
            entries.map(\.url) == [
                "http://a.b/p/1.jpg", "http://a.b/2.jpg", "http://a.b/p/3.jpg",
                "http://a.b/4.jpg", "http://a.b/5.jpg", "http://a.b/6.jpg",
            ])
        let page = #"{"page":"http://a.b/p/q"}"#
        #expect(
            entries.map(\.columns)
                == [page, page, page, nil, nil, #"{"page":"http://a.b/r"}"#])
    }

    @Test func imagesOfACutFileAreKept() throws {
        let (entries, error) = try folder.read(
            "<urlset><url>\(image("http://a.b/1.jpg"))".utf8, .sitemap)
        #expect(entries.map(\.url) == ["http://a.b/1.jpg"])
        #expect(error != nil)
    }

    /// A URL that is too long fails alone, wherever it stands in its image.
    @Test(arguments: 0..<3, [70_000, 200_000])
    func aLongURLFailsAlone(place: Int, length: Int) throws {
        var urls = ["http://a.b/1.jpg", "http://a.b/2.jpg"]
        urls.insert("http://a.b/" + String(repeating: "x", count: length), at: place)
        let locs = urls.map { "<loc>\($0)</loc>" }.joined()
        let entries = try read("<url><loc>http://a.b/p</loc><image>\(locs)</image></url>")
        #expect(entries.count == 3)
        let good = entries.filter { $0.problem == nil }.map(\.url)
        #expect(good == ["http://a.b/1.jpg", "http://a.b/2.jpg"])
        #expect(entries.compactMap(\.problem) == ["the URL is longer than 64.0 KiB"])
    }

    /// URLs of nearly the limit do not take each other's room.
    @Test func longURLsOfOneImageAreRead() throws {
        let urls = (0..<5).map { "http://a.b/\($0)" + String(repeating: "x", count: 60_000) }
        let entries = try read("<image>\(urls.map { "<loc>\($0)</loc>" }.joined())</image>")
        #expect(entries.map(\.url) == urls)
        #expect(entries.allSatisfy { $0.problem == nil })
    }

    @Test(arguments: [1, 31, 32, 100, 4990])
    func depthDoesNotMatter(depth: Int) throws {
        let front = String(repeating: "<x>", count: depth)
        let back = String(repeating: "</x>", count: depth)
        let entries = try read("<url>\(front)\(image("http://a.b/1.jpg"))\(back)</url>")
        #expect(entries.map(\.url) == ["http://a.b/1.jpg"])
    }

    @Test func anEndlessDepthIsRefused() throws {
        let (entries, error) = try folder.read(
            ("<urlset>" + String(repeating: "<x>", count: 6000)).utf8, .sitemap)
        #expect(entries.isEmpty)
        #expect(error?.message.hasSuffix("its elements are nested too deeply") == true)
    }

    @Test(arguments: [
        "<!DOCTYPE urlset>", "<!DOCTYPE urlset SYSTEM \"file:///etc/passwd\">",
        "<!DOCTYPE urlset PUBLIC \"-//a//b\" 'http://127.0.0.1:1/x.dtd'>",
        "<!DOCTYPE urlset [ <!-- don't > --> <!ELEMENT urlset ANY> <?a it's?> ]>",
    ])
    func aDoctypeIsPassed(doctype: String) throws {
        let (entries, error) = try folder.read(
            "\(doctype)\n<urlset>\(image("http://a.b/1.jpg?a=&x;"))</urlset>".utf8, .sitemap)
        #expect(error == nil)
        #expect(entries.map(\.url) == ["http://a.b/1.jpg?a=&x;"])
    }

    @Test(arguments: [
        "<!ENTITY a \"b\">", "<!ENTITY % a \"b\"> %a;", "<!ENTITY a SYSTEM \"file:///etc/passwd\">",
    ])
    func entitiesAreRefused(entity: String) throws {
        let (entries, error) = try folder.read(
            "<!DOCTYPE urlset [\(entity)]>\n<urlset>\(image("http://a.b/&a;"))</urlset>".utf8,
            .sitemap)
        #expect(entries.isEmpty)
        #expect(error?.message.contains("its DOCTYPE declares entities") == true, "\(error as Any)")
        #expect(error?.hint == nil)
    }

    /// A hint names the cause of its error, not another repair.
    @Test func theHintIsOfTheError() throws {
        let (_, error) = try folder.read(
            "<urlset>\(image("http://a.b/?a&b"))<url></urlset>".utf8, .sitemap)
        #expect(error != nil && error?.hint == nil)
        let (_, other) = try folder.read(
            "<?xml version=\"1.0\" encoding=\"x-none\"?><urlset><url></urlset>".utf8, .sitemap)
        #expect(other?.hint == "convert it to UTF-8 with iconv")
    }
}

import PrefetchModel
import Testing

@testable import Manifests

/// Sitemaps that are not quite XML, as many sites have them.
@Suite(.timeLimit(.minutes(15)))
struct SitemapRepairTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    /// A form of a sitemap with two images, and a part of the warning about it; nil without one.
    struct Form: CustomTestStringConvertible {
        let name: String
        let bytes: [UInt8]
        let warning: String?
        /// The first image's URL and the beginning of its columns after the page.
        var url = "http://a.b/1.jpg"
        var caption: String?

        var testDescription: String { name }
    }

    private static func sitemap(
        declaration: String = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
        url: String = "/1.jpg",
        caption: String = "c"
    ) -> String {
        """
        \(declaration)<urlset><url><loc>http://a.b/p</loc>
        <image:image><image:loc>http://a.b\(url)</image:loc><image:caption>\(caption)</image:caption>
        </image:image></url>
        <url><loc>http://a.b/q</loc><image:image><image:loc>http://a.b/2.jpg</image:loc></image:image>
        </url></urlset>
        """
    }

    private static func form(
        _ name: String, front: [UInt8] = [], declaration: String? = nil, url: String = "/1.jpg",
        caption: String = "c", warning: String?, isURL: String? = nil, isCaption: String? = nil
    ) -> Form {
        let text =
            declaration.map { sitemap(declaration: $0, url: url, caption: caption) }
            ?? sitemap(url: url, caption: caption)
        return Form(
            name: name, bytes: front + Array(text.utf8), warning: warning,
            url: isURL ?? "http://a.b/1.jpg", caption: isCaption)
    }

    static let forms: [Form] = [
        form("valid", warning: nil),
        form("mark", front: [0xEF, 0xBB, 0xBF], warning: nil),
        form("blank lines", front: Array("\n\r\n \t".utf8), warning: "precede the XML declaration"),
        form("mark after a line", front: [0x0A, 0xEF, 0xBB, 0xBF], warning: "precede the XML"),
        form("two marks", front: [0xEF, 0xBB, 0xBF, 0xEF, 0xBB, 0xBF], warning: "a mark precede"),
        form(
            "mark read as Latin-1", front: Array("\u{EF}\u{BB}\u{BF}".utf8),
            warning: "a mark precede"),
        form("no declaration, blank lines", front: [0x0A], declaration: "", warning: nil),
        form("comment first", front: Array("<!-- & -->\n".utf8), warning: nil),
        form("XML 1.1", declaration: "<?xml version='1.1'?>", warning: nil),
        form(
            "style sheet", declaration: "<?xml-stylesheet href='a?b&c' ?>\n", warning: nil),
        form(
            "entity", caption: "caf&eacute;&nbsp;x",
            warning: "2 HTML entities, first line 3: &eacute;",
            isCaption: "café\u{A0}x"),
        form(
            "other entity", caption: "&hellip;&euro;", warning: "2 HTML entities", isCaption: "…€"),
        form(
            "unknown entity", caption: "&nosuch;",
            warning: "1 & or < that is not escaped, first line 3",
            isCaption: "&nosuch;"),
        form(
            "ampersand", url: "/1.jpg?a=1&b=2", warning: "1 & or < that is not escaped",
            isURL: "http://a.b/1.jpg?a=1&b=2"),
        form(
            "escaped ampersand", url: "/1.jpg?a=1&amp;b=&#50;", warning: nil,
            isURL: "http://a.b/1.jpg?a=1&b=2"),
        form(
            "bare", caption: "R&D, a < b & c", warning: "3 & or < that are not escaped",
            isCaption: "R&D, a < b & c"),
        form("section", caption: "<![CDATA[R&D <b>]]>", warning: nil, isCaption: "R&D <b>"),
        form(
            "control", caption: "a\u{2}b\u{B}\u{0}",
            warning: "3 control characters were left out, first line 3",
            isCaption: "ab"),
        form("control in a URL", url: "/1.jpg\u{1F}", warning: "1 control character was left out"),
        form(
            "reference to a control", caption: "a&#0;&#x1F;b&#xFFFE;",
            warning: "3 control characters",
            isCaption: "ab"),
        form(
            "not a character", caption: "a\u{FFFE}b", warning: "1 control character",
            isCaption: "ab"),
        form(
            "attribute",
            declaration: "<?xml version='1.0'?><!-- a -- b=\"<\" -->".replacing(" -- ", with: " "),
            warning: nil),
        form(
            "UTF-16 that is none", declaration: "<?xml version='1.0' encoding='utf-16'?>",
            caption: "é",
            warning: nil, isCaption: "é"),
        form(
            "unknown encoding", declaration: "<?xml version='1.0' encoding='x-none'?>",
            warning: "its encoding 'x-none' is not supported here, it was read as UTF-8"),
    ]

    private func check(_ form: Form, readBytes: Int) throws {
        let path = try folder.file("sitemap", form.bytes)
        let reader = try ManifestReader(
            path: path, options: ManifestOptions(keepsColumns: true, readBytes: readBytes))
        #expect(reader.format == .sitemap)
        let (entries, error) = reader.readAll()
        #expect(error == nil)
        #expect(entries.map(\.url) == [form.url, "http://a.b/2.jpg"])
        #expect(entries.allSatisfy { $0.problem == nil })
        if let caption = form.caption {
            #expect(
                entries.first?.columns == "{\"page\":\"http://a.b/p\",\"caption\":\"\(caption)\"}")
        }
        let texts = reader.notes.map(\.text)
        #expect(texts.count == (form.warning == nil ? 0 : 1), "\(texts)")
        if let warning = form.warning {
            #expect(texts.first?.contains(warning) == true, "\(texts)")
        }
    }

    /// Pieces of any size are read alike.
    @Test(arguments: forms, [1, 7, 128 << 10])
    func isRead(form: Form, readBytes: Int) throws {
        try check(form, readBytes: readBytes)
    }

    /// Names of encodings, and bytes that are `é` or `я` or `中` in them.
    @Test(
        arguments: [
            ("utf8", [0xC3, 0xA9], "é"), ("UTF-8-SIG", [0xC3, 0xA9], "é"), ("latin1", [0xE9], "é"),
            ("ISO_8859-1", [0xE9], "é"), ("us-ascii", [0xE9], "é"), ("ISO-8859-1", [0x80], "€"),
            ("iso8859-15", [0xA4], "€"), ("ISO-8859-2", [0xE6], "ć"), ("iso-8859-5", [0xEF], "я"),
            ("iso-8859-7", [0xE1], "α"), ("iso-8859-9", [0xFD], "ı"), ("latin9", [0xA4], "€"),
            ("latin2", [0xE6], "ć"), ("windows-1250", [0xE6], "ć"), ("windows-1251", [0xFF], "я"),
            ("win-1251", [0xFF], "я"), ("cp1252", [0xE9], "é"), ("Windows-1252", [0x80], "€"),
            ("x-cp1252", [0xE9], "é"), ("windows-1257", [0xE8], "č"), ("koi8-r", [0xD1], "я"),
            ("KOI8-U", [0xD1], "я"), ("gb2312", [0xD6, 0xD0], "中"), ("GBK", [0xD6, 0xD0], "中"),
            ("gb18030", [0xD6, 0xD0], "中"), ("big5", [0xA4, 0xA4], "中"),
            ("Shift_JIS", [0x92, 0x86], "中"), ("euc-jp", [0xC3, 0xE6], "中"),
            ("euc-kr", [0xF1, 0xE9], "中"), ("macintosh", [0x8E], "é"), ("cp866", [0xEF], "я"),
        ] as [(String, [UInt8], String)], [1, 128 << 10])
    func readsEncodings(encoding: (String, [UInt8], String), readBytes: Int) throws {
        let (name, bytes, character) = encoding
        let declaration = "<?xml version=\"1.0\" encoding=\"\(name)\"?>\n"
        let text = Array(
            SitemapRepairTests.sitemap(declaration: declaration, caption: "CAPTION").utf8)
        let place = try #require(text.firstRange(of: Array("CAPTION".utf8)))
        let sitemap = text[..<place.lowerBound] + bytes + text[place.upperBound...]
        let form = Form(name: name, bytes: Array(sitemap), warning: nil, caption: character)
        try check(form, readBytes: readBytes)
    }

    /// UTF-16 by its mark or its first bytes.
    @Test(arguments: [true, false], [true, false])
    func repairsUTF16(isLittle: Bool, hasMark: Bool) throws {
        let declaration = "<?xml version=\"1.0\" encoding=\"UTF-16\"?>\n"
        let text =
            (hasMark ? "\u{FEFF}" : "")
            + SitemapRepairTests.sitemap(declaration: declaration, caption: "я&nbsp;😀")
        let bytes = text.utf16.flatMap { unit in
            let pair = [UInt8(unit & 0xFF), UInt8(unit >> 8)]
            return isLittle ? pair : pair.reversed()
        }
        let path = try folder.file("sitemap", bytes)
        for readBytes in [1, 128 << 10] {
            let options = ManifestOptions(
                format: .sitemap, keepsColumns: true, readBytes: readBytes)
            let reader = try ManifestReader(path: path, options: options)
            let (entries, error) = reader.readAll()
            #expect(error == nil && entries.count == 2)
            #expect(entries.first?.columns?.contains("я\u{A0}😀") == true)
            #expect(reader.notes.map(\.text) == ["1 HTML entity, first line 3: &nbsp;"])
        }
    }

    @Test(arguments: [
        ("/a/1.jpg", "http://a.b/a/1.jpg"), ("1.jpg", "http://a.b/p/1.jpg"),
        ("a/1.jpg", "http://a.b/p/a/1.jpg"), ("../1.jpg", "http://a.b/1.jpg"),
        ("//c.d/1.jpg", "http://c.d/1.jpg"), ("?i=1", "http://a.b/p/x?i=1"),
        ("http://e.f/1.jpg", "http://e.f/1.jpg"),
    ])
    func resolvesRelativeURLs(text: String, url: String) throws {
        let image = "<image:image><image:loc>\(text)</image:loc></image:image>"
        let listed = RequestURL(normalized: "http://list.example/maps/x.xml")
        func first(_ sitemap: String, _ change: (inout ManifestOptions) -> Void) throws
            -> ReadEntry?
        {
            var options = ManifestOptions()
            change(&options)
            let path = try folder.file("sitemap.xml", sitemap.utf8)
            return try ManifestReader(path: path, options: options).readAll().entries.first
        }
        let page = "<urlset><url><loc>http://a.b/p/x</loc>\(image)</url></urlset>"
        #expect(try first(page) { _ in }?.url == url)
        // The page's own location is relative to the list's.
        let relativePage = page.replacing("http://a.b", with: "")
        let own = url.replacing("http://a.b", with: "http://list.example")
        #expect(try first(relativePage) { $0.sourceURL = listed }?.url == own)
        let pageless = "<urlset>\(image)</urlset>"
        let ofList = own.replacing("/p/", with: "/maps/").replacing("/x?", with: "/x.xml?")
        if text != "../1.jpg" {
            #expect(try first(pageless) { $0.sourceURL = listed }?.url == ofList)
        }
        let isRelative = !text.hasPrefix("http")
        #expect((try first(pageless) { _ in }?.problem != nil) == isRelative)
        // The user's base decides.
        let based = try first(page) { $0.baseURL = "http://a.b/p/x" }
        #expect(based?.url == url)
    }

    /// A host without a scheme is a mistake, not a path.
    @Test func hostsWithoutSchemesFail() throws {
        let text =
            "<urlset><url><loc>http://a.b/p</loc><image><loc>www.c.d/1.jpg</loc></image></url></urlset>"
        let (entries, _) = try folder.read(text.utf8, .sitemap)
        #expect(entries.first?.problem?.contains("the scheme is missing") == true)
    }

    /// Elements that hold images, and their columns.
    @Test(
        arguments: [
            (
                "<url><loc>http://a.b/p</loc><video:video><video:thumbnail_loc>http://a.b/1.jpg"
                    + "</video:thumbnail_loc><video:title>T</video:title><video:description>D"
                    + "</video:description><video:content_loc>http://a.b/v.mp4</video:content_loc>"
                    + "</video:video></url>",
                #"{"page":"http://a.b/p","caption":"D","title":"T"}"#
            ),
            (
                "<image:image><image:loc>http://a.b/1.jpg</image:loc><image:title>T</image:title>"
                    + "</image:image>", #"{"title":"T"}"#
            ),
            (
                "<url><loc>http://a.b/p</loc></url><image:image><image:loc>http://a.b/1.jpg</image:loc>"
                    + "</image:image>", nil
            ),
            (
                "<url><loc>http://a.b/p</loc><image:loc>http://a.b/1.jpg</image:loc></url>",
                #"{"page":"http://a.b/p"}"#
            ),
            (
                "<url><loc>http://a.b/p</loc><images><x:image><x:loc>http://a.b/1.jpg</x:loc></x:image>"
                    + "</images></url>", #"{"page":"http://a.b/p"}"#
            ),
            (
                "<URL><Loc>http://a.b/p</Loc><Image:Image><Image:Loc>http://a.b/1.jpg</Image:Loc>"
                    + "</Image:Image></URL>", #"{"page":"http://a.b/p"}"#
            ),
            (
                "<url><loc>http://a.b/p</loc><video:video/><image:image><image:loc>http://a.b/1.jpg"
                    + "</image:loc></image:image></url>", #"{"page":"http://a.b/p"}"#
            ),
        ] as [(String, String?)])
    func findsImages(elements: String, columns: String?) throws {
        let (entries, error) = try folder.read("<urlset>\(elements)</urlset>".utf8, .sitemap)
        #expect(error == nil)
        #expect(entries.map(\.url) == ["http://a.b/1.jpg"])
        #expect(entries.first?.columns == columns)
    }

    /// Entries before a broken tag are delivered, and the error names its place.
    @Test func brokenTagsNameLineAndColumn() throws {
        let text = SitemapRepairTests.sitemap().replacing(
            "<image:caption>", with: "<image:caption x>")
        let (entries, error) = try folder.read(text.utf8, .sitemap)
        #expect(entries.isEmpty)
        #expect(error?.message.hasPrefix("line 3, column ") == true)
    }
}

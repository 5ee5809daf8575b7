import Testing

@testable import Manifests

@Suite(.timeLimit(.minutes(5)))
struct ForeignContentTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    static let foreign: [(text: String, name: String)] = [
        ("\u{89}PNG", "a PNG image"), ("GIF89a", "a GIF image"),
        ("RIFFxxxxWEBPVP8 ", "a WebP image"),
        ("%PDF-1.7\n", "a PDF document"), ("PK\u{3}\u{4}x", "a ZIP archive"),
        ("SQLite format 3\0", "an SQLite database"),
        ("BZh9", "compressed with bzip2 (prefetch reads plain text and gzip)"),
        ("\u{7F}ELF\u{2}\u{1}\u{1}\0\0\0\0", "binary data"),
        ("<?xml version='1.0'?>\n<urlset>\n", "a sitemap (XML)"),
        ("\u{FEFF}<?xml?><sitemapindex/>", "a sitemap (XML)"), ("<rss>", "a feed (XML)"),
        ("\n <!DOCTYPE html>\n<p>", "a web page (HTML)"), ("<svg>", "XML"),
        ("{\"url\":\"http://a.b/\"}\n{}\n", "JSON lines"), ("{\r\n \"url\": 1\n}\n", "JSON"),
        ("[\"http://a.b/\"]", "JSON"), ("url,width,height\nhttp://a.b/,1,2\n", "a table (CSV)"),
        ("id;\"URL\"\r\n1;http://a.b/\r\n", "a table (CSV)"), ("name\tlink\n", "a table (CSV)"),
    ]

    @Test(arguments: foreign, [1, 7, 65536])
    func refusesForeignContentBeforeItsFirstLine(
        content: (text: String, name: String), readBytes: Int
    ) throws {
        // One scalar per byte, except for the UTF-8 mark.
        let bytes =
            content.text.unicodeScalars.first == "\u{FEFF}"
            ? Array(content.text.utf8)
            : content.text.unicodeScalars.map { UInt8($0.value) }
        let options = ManifestOptions(readBytes: readBytes)
        for bytes in [bytes, gzipped(bytes)] {
            let path = try folder.file("list", bytes)
            let error = #expect(throws: ManifestError.self) {
                try ManifestReader(path: path, options: options)
            }
            #expect(error?.operation == .recognise)
            let message = "looks like \(content.name), not a list with one URL per line"
            #expect(error?.description == "\(path): \(message)")
            // `--format text` skips the check.
            let asText = ManifestOptions(format: .text, readBytes: readBytes)
            _ = try ManifestReader(path: path, options: asText)
        }
    }

    /// A pipe's content is checked when it is read.
    @Test func refusesForeignContentFromAPipe() throws {
        let pipe = Pipe()
        pipe.write("{}\nhttp://a.b/\n")
        var reader = try ManifestReader(descriptor: pipe.reading, name: "-")
        for _ in 0..<2 {
            let error = #expect(throws: ManifestError.self) { try reader.nextBatch() }
            #expect(error?.operation == .recognise)
        }
    }

    @Test(arguments: [
        "http://a.b/,c", "url", "url,1.png", "image\tpriority=5", "a,b", "# <html>\nhttp://a.b/",
        "http://a.b/1\n\0\nhttp://a.b/2\n", "# {\n# [\n", "http://a.b/{x}", "\u{FEFF}http://a.b/",
        "//h/<x>", "src;x/y", "",
    ])
    func acceptsEveryList(text: String) throws {
        let options = ManifestOptions(baseURL: "http://h/")
        _ = try ManifestReader(path: folder.file("list", text.utf8), options: options)
    }
}

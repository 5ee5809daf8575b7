import Foundation
import Testing

@testable import Manifests

@Suite(.timeLimit(.minutes(15)))
struct FormatDetectionTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    static let foreign: [(text: String, name: String)] = [
        ("\u{89}PNG", "a PNG image"), ("GIF89a", "a GIF image"),
        ("RIFFxxxxWEBPVP8 ", "a WebP image"),
        ("%PDF-1.7\n", "a PDF document"), ("PK\u{3}\u{4}x", "a ZIP archive"),
        ("SQLite format 3\0", "an SQLite database"),
        ("BZh9", "compressed with bzip2"), ("PAR1\u{15}\u{4}", "a Parquet file"),
        ("\u{D0}\u{CF}\u{11}\u{E0}\u{A1}", "a document of an office program"),
        ("h\0t\0t\0p\0", "UTF-16 without a byte order mark"),
        ("[InternetShortcut]\r\nURL=http://a.b/\r\n", "an Internet shortcut"),
        ("\u{7F}ELF\u{2}\u{1}\u{1}\0\0\0\0", "binary data"),
        ("<rss>", "a feed (XML)"), ("\n <!DOCTYPE html>\n<p>", "a web page (HTML)"),
        ("{\r\n \"url\": 1\n}\n", "JSON"), ("[\"http://a.b/\"]", "JSON"),
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
            let message = "looks like \(content.name), not a list"
            #expect(error?.description == "\(path): \(message)")
            // `--format text` skips the check.
            let asText = ManifestOptions(format: .text, readBytes: readBytes)
            _ = try ManifestReader(path: path, options: asText)
        }
    }

    /// Hints that are commands, each followed: the list that it writes has the pictures.
    @Test(arguments: [
        ("{\n \"items\": [{\"id\": \"http://a.b/1\", \"type\": \"Image\"}]\n}\n", "jq"),
        ("[\"http://a.b/1\"]", "jq"), ("[\n{\"url\": \"http://a.b/1\"}]", "jq"),
        (
            "<?xml version='1.0'?><rss xmlns:g='http://base.google.com/ns/1.0'><item>"
                + "<g:image_link>http://a.b/1</g:image_link></item></rss>", "xmllint"
        ),
        (
            "<rss xmlns:g='http://base.google.com/ns/1.0'><item>"
                + "<g:image_link>http://a.b/1?a=1&amp;b=2</g:image_link></item></rss>", "xmllint"
        ),
        ("[InternetShortcut]\r\nURL=http://a.b/1\r\n", "sed"),
    ])
    func aHintGivesTheList(text: String, tool: String) throws {
        let path = try folder.file("foreign", text.utf8)
        let error = #expect(throws: ManifestError.self) { try ManifestReader(path: path) }
        let hint = try #require(error?.hint)
        #expect(hint.hasPrefix(tool + " "))
        guard access("/usr/bin/\(tool)", X_OK) == 0, let end = hint.range(of: " writes ") else {
            return
        }
        let process = Process()
        process.executableURL = URL(filePath: "/bin/sh")
        process.arguments = ["-c", String(hint[..<end.lowerBound]).replacing("FILE", with: path)]
        let output = Foundation.Pipe()
        process.standardOutput = output
        try process.run()
        let list = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        let entries = try ManifestReader(path: folder.file("written", list)).readAll().entries
        let query = text.contains("&amp;") ? "?a=1&b=2" : ""
        #expect(entries.map(\.url) == ["http://a.b/1\(query)"], "\(hint)")
    }

    /// A pipe's content is checked when it is read.
    @Test func refusesForeignContentFromAPipe() throws {
        let pipe = Pipe()
        pipe.write("[\nhttp://a.b/\n")
        let reader = try ManifestReader(descriptor: pipe.reading, name: "-")
        for _ in 0..<2 {
            let error = #expect(throws: ManifestError.self) { try reader.nextBatch() }
            #expect(error?.operation == .recognise)
        }
    }

    static let lists: [(text: String, name: String, format: ManifestFormat)] = [
        ("<?xml version='1.0'?>\n<urlset/>\n", "list", .sitemap),
        ("\u{FEFF}<sitemapindex/>", "list", .sitemap), ("<svg/>", "list", .sitemap),
        ("{\"url\":\"http://a.b/\"}\n{}\n", "list", .jsonl),
        ("url,width,height\nhttp://a.b/,1,2\n", "list", .csv),
        ("id;\"URL\"\r\n1;http://a.b/\r\n", "list", .csv), ("name\tlink\n", "list", .tsv),
        ("name,photo\n", "list", .csv), ("name,photo\n", "a.csv", .csv),
        ("name,photo\n", "A.CSV.gz", .csv), ("a\tb\n", "a.tsv", .tsv), ("{\n", "a.ndjson", .jsonl),
        // One URL per line, in spite of the name.
        ("http://a.b/\n", "urls.csv", .text), ("", "a.csv", .csv), ("", "list", .text),
        ("http://a.b/,c", "list", .text), ("url", "list", .text), ("url,1.png", "list", .csv),
        ("image\tpriority=5", "list", .text), ("a,b", "list", .text),
        ("# <html>\nhttp://a.b/", "list", .text),
        ("http://a.b/1\n\0\nhttp://a.b/2\n", "list", .text), ("# {\n# [\n", "list", .text),
        ("http://a.b/{x}", "list", .text), ("\u{FEFF}http://a.b/", "list", .text),
        ("//h/<x>", "list", .text), ("src;x/y", "list", .text), ("a/b.jpg,image", "list", .text),
        ("http://a.b/,image", "list", .text), ("a.jpg priority=1,image", "list", .text),
        ("sep=;\nid;image\n", "list", .csv), ("a|image\n", "list", .csv),
        ("{\"a\":\"" + String(repeating: "x", count: 5000) + "\"}\n", "list", .jsonl),
    ]

    @Test(arguments: lists, [1, 65536])
    func findsTheFormat(
        list: (text: String, name: String, format: ManifestFormat), readBytes: Int
    ) throws {
        let path = try folder.file(list.name, list.text.utf8)
        let reader = try ManifestReader(
            path: path, options: ManifestOptions(baseURL: "http://h/", readBytes: readBytes))
        #expect(reader.format == list.format)
    }

    @Test func namedColumnsMakeATable() throws {
        let path = try folder.file("list", "id,photo\n1,http://a.b/\n".utf8)
        let rules = ColumnRules(urlColumns: ["photo"])
        #expect(
            try ManifestReader(path: path, options: ManifestOptions(columns: rules)).format == .csv)
        let numbers = ColumnRules(urlColumns: ["2"], hasHeader: false)
        #expect(
            try ManifestReader(path: path, options: ManifestOptions(columns: numbers)).format
                == .csv)
    }
}

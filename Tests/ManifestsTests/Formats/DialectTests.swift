import PrefetchModel
import Testing

@testable import Manifests

/// Tables as spreadsheets, shops and databases write them.
@Suite(.timeLimit(.minutes(15)))
struct DialectTests {
    private static let urls = ["https://a.example/1.png", "https://a.example/2.png"]

    private func read(
        _ text: String, name: String = "list", _ columns: ColumnRules = ColumnRules()
    ) throws -> (format: ManifestFormat?, entries: [ReadEntry]) {
        let folder = try TemporaryFolder()
        let reader = try ManifestReader(
            path: folder.file(name, text.utf8),
            options: ManifestOptions(columns: columns, keepsColumns: true))
        let (entries, error) = reader.readAll()
        #expect(error == nil)
        return (reader.format, entries)
    }

    private static func table(_ separator: String, _ end: String, after: String = "") -> String {
        let rows = [
            ["id", "image_url", "caption"], ["1", urls[0], "red, blue; green|x"],
            ["2", urls[1], "b"],
        ]
        return rows.map { row in
            row.map { $0.contains(" ") ? "\"\($0)\"" : $0 }.joined(separator: separator) + after
                + end
        }.joined()
    }

    @Test(arguments: [",", ";", "\t", "|"], ["\n", "\r\n", "\r"])
    func isFoundByItsFirstLine(separator: String, end: String) throws {
        for name in ["list", "list.csv", "list.txt"] {
            // In tab-separated text, quotation marks are a part of values.
            let text = DialectTests.table(separator, end)
            let (format, entries) = try read(text, name: name)
            #expect(format == (separator == "\t" ? .tsv : .csv))
            #expect(entries.map(\.url) == DialectTests.urls, "\(name)")
            #expect(entries.map(\.line) == [2, 3])
            let quote = separator == "\t" ? "\\\"" : ""
            #expect(
                entries.first?.columns
                    == "{\"id\":\"1\",\"caption\":\"\(quote)red, blue; green|x\(quote)\"}")
        }
    }

    @Test(arguments: [",", ";", "|", "\t"], ["sep=%", "SEP=%", "\"sep=%\""])
    func aLineMayDeclareTheSeparator(separator: String, declaration: String) throws {
        let first = declaration.replacing("%", with: separator) + "\r\n"
        for name in ["list", "list.csv"] {
            let text = "\u{FEFF}" + first + DialectTests.table(separator, "\r\n")
            let (_, entries) = try read(text, name: name)
            #expect(entries.map(\.url) == DialectTests.urls)
            #expect(
                entries.first?.columns == "{\"id\":\"1\",\"caption\":\"red, blue; green|x\"}")
        }
    }

    /// Separators in quotation marks do not count, nor if they give no column of URLs.
    @Test(arguments: [
        "\"a, b, c\";url\nx;https://a.example/1.png\n", "a,b;url\nx;https://a.example/1.png\n",
        "a|b|c,url\nx,https://a.example/1.png\n",
    ])
    func theColumnOfURLsDecides(text: String) throws {
        #expect(try read(text, name: "list.csv").entries.map(\.url) == [DialectTests.urls[0]])
    }

    @Test(arguments: [",", ";", "\t"], ["", "%", "%%%", "% %"])
    func emptyValuesAtTheEndAreDropped(separator: String, after: String) throws {
        let end = after.replacing("%", with: separator)
        for head in ["", end] {
            let text =
                "image_url\(separator)caption\(head)\n"
                + DialectTests.urls.map { "\($0)\(separator)x\(end)\n" }.joined()
            let entries = try read(text).entries
            #expect(entries.map(\.problem) == [nil, nil], "\(entries)")
            #expect(entries.map(\.url) == DialectTests.urls)
            #expect(entries.first?.columns?.hasPrefix("{\"caption\":\"x\"") == true)
        }
    }

    @Test(arguments: ["\r", "\n", "\r\n"])
    func textMayEndItsLinesInAnyWay(end: String) throws {
        let lines = ["# a list", DialectTests.urls[0] + " priority=5", "", DialectTests.urls[1]]
        for text in [lines.joined(separator: end), lines.joined(separator: end) + end] {
            for readBytes in [1, 7, 1 << 16] {
                let folder = try TemporaryFolder()
                let reader = try ManifestReader(
                    path: folder.file("list", text.utf8),
                    options: ManifestOptions(readBytes: readBytes))
                let (entries, error) = reader.readAll()
                #expect(error == nil && reader.format == .text)
                #expect(entries.map(\.url) == DialectTests.urls)
                #expect(entries.map(\.line) == [2, 4])
                #expect(entries.first?.priority == 5)
            }
        }
        let objects = DialectTests.urls.map { "{\"url\":\"\($0)\"}" }.joined(separator: end)
        #expect(try read(objects).entries.map(\.url) == DialectTests.urls)
    }

    /// Names of columns as shops have them, without an extension.
    @Test(arguments: [
        ("Handle,Title,Google Shopping / MPN,Image Src", 3), ("ID,Size/Colour,Price: EUR,Image", 3),
        ("sku,\"Tax, %\",picture", 2),
    ])
    func namesMayHaveSigns(head: String, before: Int) throws {
        let row = String(repeating: "x,", count: before) + DialectTests.urls[0]
        let (format, entries) = try read("\(head)\n\(row)\n")
        #expect(format == .csv)
        #expect(entries.map(\.url) == [DialectTests.urls[0]])
    }
}

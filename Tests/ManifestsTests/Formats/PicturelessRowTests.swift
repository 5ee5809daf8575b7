import PrefetchModel
import Testing

@testable import Manifests

/// Rows without a picture, which every export of a shop has: they are counted, and no failures.
@Suite(.timeLimit(.minutes(15)))
struct PicturelessRowTests {
    private static let url = "https://a.example/1.png"

    /// Rows of each format that name no picture, one a line.
    private static let rows: [(format: ManifestFormat, row: String)] =
        ["", " ", "null", "NULL", "None", "nan", "NaN", "N/A", "\\N", "-", "[]", "{}"].map {
            (.csv, "a,\($0),b")
        }
        + [("", 0), ("\"\"", 0)].map { (.tsv, "a\t\($0.0)\tb") }
        + [(.csv, "a"), (.csv, "a,about:blank,b"), (.csv, "a,blob:https://a.example/0-1,b")]
        + [
            "null", "\"\"", "\" \"", "[]", "[null]", "[\"\"]", "{}", "false", "NaN", "\"None\"",
            "\"about:blank\"", "\"blob:https://a.example/0-1\"", "[\"about:blank\"]",
            "{\"src\":null}", "{\"src\":\"\"}", "\"javascript:void(0)\"",
        ].map { (.jsonl, "{\"id\":1,\"image\":\($0)}") }
        + [(.jsonl, "{\"id\":1}")]
        + ["about:blank", "blob:https://a.example/0-1", "ABOUT:blank"].map { (.text, $0) }
        + ["", " ", "about:blank"].map {
            (.sitemap, "<url><image><loc>\($0)</loc></image></url>")
        }

    private static func list(_ format: ManifestFormat, _ rows: [String]) -> String {
        let text = rows.map { $0 + "\n" }.joined()
        return switch format {
        case .csv: "id,image,caption\n" + text
        case .tsv: "id\timage\tcaption\n" + text
        case .sitemap: "<urlset>\n\(text)</urlset>"
        default: text
        }
    }

    private static func picture(_ format: ManifestFormat) -> String {
        switch format {
        case .csv: "b,\(url),c"
        case .tsv: "b\t\(url)\tc"
        case .jsonl: "{\"image\":\"\(url)\"}"
        case .sitemap: "<url><image><loc>\(url)</loc></image></url>"
        default: url
        }
    }

    @Test(arguments: rows)
    func isSkippedAndCounted(format: ManifestFormat, row: String) throws {
        let folder = try TemporaryFolder()
        let picture = PicturelessRowTests.picture(format)
        let text = PicturelessRowTests.list(format, [picture, row, row, picture])
        let reader = try ManifestReader(
            path: folder.file("list", text.utf8), options: ManifestOptions(format: format))
        let (entries, error) = reader.readAll()
        #expect(error == nil)
        #expect(entries.map(\.url) == [PicturelessRowTests.url, PicturelessRowTests.url])
        #expect(entries.allSatisfy { $0.problem == nil }, "\(entries)")
        let head = [.csv, .tsv, .sitemap].contains(format) ? 1 : 0
        #expect(reader.skipped.count == 2 && reader.skipped.first == 2 + head, "\(row)")
    }

    /// Misspelt URLs and other schemes may be pictures.
    @Test(arguments: ["no url", "htps://a.example/1", "ftp://a.example/1", "1", "//a.example/1"])
    func otherWordsAreFailures(text: String) throws {
        let folder = try TemporaryFolder()
        for format in [ManifestFormat.csv, .jsonl] {
            let row = format == .csv ? "a,\(text),b" : "{\"image\":\"\(text)\"}"
            let list = PicturelessRowTests.list(format, [row])
            let reader = try ManifestReader(
                path: folder.file("list", list.utf8), options: ManifestOptions(format: format))
            #expect(reader.readAll().entries.map { $0.problem != nil } == [true])
            #expect(reader.skipped.count == 0)
        }
    }

    /// Words are relative URLs if there is a base.
    @Test func aBaseMakesWordsURLs() throws {
        let folder = try TemporaryFolder()
        let list = PicturelessRowTests.list(.csv, ["a,none,b", "a,,b"])
        let reader = try ManifestReader(
            path: folder.file("list", list.utf8),
            options: ManifestOptions(format: .csv, baseURL: "https://a.example/"))
        #expect(reader.readAll().entries.map(\.url) == ["https://a.example/none"])
        #expect(reader.skipped.count == 1)
    }

    @Test func aMemberThatAllLinesLackIsNamed() throws {
        let folder = try TemporaryFolder()
        let reader = try ManifestReader(
            path: folder.file("list", "{\"a\":1}\n{\"b\":2}\n".utf8),
            options: ManifestOptions(format: .jsonl))
        #expect(reader.readAll().entries.isEmpty)
        #expect(reader.skipped.count == 2)
        #expect(reader.missingColumn == "no member 'image_url', 'image_link', 'image_src'")
    }
}

import PrefetchModel
import Testing

@testable import Manifests

/// Rows with descriptions or numbers of any length: the picture is kept, a long column is not.
@Suite(.timeLimit(.minutes(15)))
struct LongRowTests {
    private static let url = "https://a.example/1.png"
    private static let short = "https://a.example/2.png"

    /// A list of a long row and a short one, with texts of `count` bytes around the URL.
    private static func list(_ format: ManifestFormat, _ count: Int) -> String {
        let text = String(repeating: "lorem, ", count: count / 7)
        return switch format {
        case .csv: "body,image,c\n\"<p>\n\(text)</p>\",\(url),x\ns,\(short),y\n"
        case .tsv: "body\timage\tc\n\(text)\t\(url)\tx\ns\t\(short)\ty\n"
        case .jsonl:
            "{\"body\":\"\(text)\",\"image\":\"\(url)\",\"c\":\"x\"}\n{\"image\":\"\(short)\"}\n"
        case .sitemap:
            "<urlset><url><image><loc>\(url)</loc><caption>\(text)</caption></image></url>"
                + "<url><image><loc>\(short)</loc></image></url></urlset>"
        default: "\(url) # \(text)\n\(short)\n"
        }
    }

    private func reader(
        _ format: ManifestFormat, _ count: Int, maximumLineBytes: Int = 16 << 20
    ) throws -> ManifestReader {
        let folder = try TemporaryFolder()
        return try ManifestReader(
            path: folder.file("list", LongRowTests.list(format, count).utf8),
            options: ManifestOptions(
                format: format, keepsColumns: true, maximumLineBytes: maximumLineBytes))
    }

    private static let formats: [ManifestFormat] = [.csv, .tsv, .jsonl, .sitemap, .text]

    @Test(arguments: formats, [60_000, 70_000, 300_000, 1_000_000])
    func keepsItsPicture(format: ManifestFormat, count: Int) throws {
        let reader = try reader(format, count)
        let (entries, error) = reader.readAll()
        #expect(error == nil)
        #expect(entries.map(\.url) == [LongRowTests.url, LongRowTests.short])
        #expect(entries.allSatisfy { $0.problem == nil })
        guard format != .text else { return }
        let isLeftOut = count > 65536
        let columns = try #require(entries.first?.extras?.columns ?? [])
        #expect(columns.count <= 64 << 10)
        if format != .sitemap {
            #expect(String(decoding: columns, as: UTF8.self).hasSuffix("\"c\":\"x\"}"))
            #expect((columns.count > 1000) == !isLeftOut)
        }
        let name = format == .sitemap ? "caption" : "body"
        #expect(reader.notes.map(\.text).contains { $0.contains("'\(name)'") } == isLeftOut)
    }

    /// Columns are left out by the room that those before them leave.
    @Test func columnsTogetherHaveALimit() throws {
        let folder = try TemporaryFolder()
        let names = (0..<10).map { "c\($0)" }
        let values = names.map { _ in String(repeating: "x", count: 10_000) }
        let text =
            (["url"] + names).joined(separator: ",") + "\n"
            + ([LongRowTests.url] + values).joined(separator: ",") + "\n"
        let reader = try ManifestReader(
            path: folder.file("list", text.utf8),
            options: ManifestOptions(
                format: .csv, keepsColumns: true, maximumLineBytes: 1 << 20))
        let columns = try #require(reader.readAll().entries.first?.columns)
        #expect(columns.contains("\"c5\"") && !columns.contains("\"c6\""))
        #expect(
            reader.notes.map(\.text) == [
                "1 row has more than 64.0 KiB of columns; the report lacks 'c6', first line 2"
            ])
    }

    @Test(arguments: formats)
    func aLongerOneNamesTheFlag(format: ManifestFormat) throws {
        let reader = try reader(format, 90_000, maximumLineBytes: 80_000)
        let (entries, error) = reader.readAll()
        #expect(error == nil)
        #expect(entries.last?.url == LongRowTests.short && entries.last?.problem == nil)
        // Captions of sitemaps are limited anyway.
        guard format != .sitemap else { return }
        #expect(
            entries.first?.problem?.hasSuffix("is longer than 78.1 KiB (--max-row-size)") == true,
            "\(entries)")
    }
}

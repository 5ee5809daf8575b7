import Foundation
import PrefetchModel
import Testing

@testable import Manifests

/// Rows with several URLs: in a cell, in an array, in several columns.
@Suite(.timeLimit(.minutes(15)))
struct SeveralURLTests {
    private static let urls = (1...3).map { "https://a.example/\($0).jpg?v=1" }

    private func reader(
        _ text: String, _ format: ManifestFormat, each: Bool, _ columns: [String] = [],
        baseURL: String? = nil
    ) throws -> ManifestReader {
        var options = ManifestOptions(
            format: format, baseURL: baseURL, columns: ColumnRules(urlColumns: columns),
            keepsColumns: true)
        options.readsEachURL = each
        let folder = try TemporaryFolder()
        return try ManifestReader(path: folder.file("list", text.utf8), options: options)
    }

    private static let cells = [
        "%1, %2, %3", "%1,%2,%3", "%1;%2;%3", "%1 | %2 | %3", "%1|%2|%3", "%1 %2 %3", "%1\n%2\n%3",
        "%1,\n%2,\n%3,", "['%1', '%2', '%3']", "[\"%1\",\"%2\",\"%3\"]", "{%1,%2,%3}",
        ", %1,, %2;%3", "%1 1x, %2 1.5x, %3 2x", "%1 300w, %2 600w, %3",
    ].map { cell in
        urls.enumerated().reduce(cell) {
            $0.replacing("%\($1.offset + 1)", with: $1.element)
        }
    }

    @Test(arguments: cells)
    func aCellIsSplitOnRequest(cell: String) throws {
        let quoted = "\"\(cell.replacing("\"", with: "\"\""))\""
        let escaped = cell.replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
        let lists: [(ManifestFormat, String, String)] = [
            (.csv, "id,image\n7,\(quoted)\n", "one cell"),
            (.jsonl, "{\"id\":\"7\",\"image\":\"\(escaped)\"}\n", "one text"),
        ]
        for (format, text, place) in lists {
            let (each, error) = try reader(text, format, each: true).readAll()
            #expect(error == nil)
            #expect(
                each.map(\.url) == SeveralURLTests.urls && each.allSatisfy { $0.problem == nil })
            #expect(each.allSatisfy { $0.columns == "{\"id\":\"7\"}" })
            let together = try reader(text, format, each: false).readAll().entries
            #expect(
                together.map(\.problem) == [
                    "several URLs in \(place); --each makes each of them an entry"
                ])
        }
    }

    /// Quoted twice: the cell itself has quotation marks.
    @Test(arguments: ["\"\"\"%\"\"\"", " \"\"\" %\"\"\" ", "'%'", "\"'%'\""])
    func quotationMarksInACellAreRemoved(cell: String) throws {
        let url = "https://a.example/1.jpg"
        let text = "id,image\n7,\(cell.trimmingCharacters(in: .whitespaces))\n"
            .replacing("%", with: url)
        for each in [false, true] {
            let reader = try reader(text, .csv, each: each)
            let (entries, _) = reader.readAll()
            #expect(entries.map(\.url) == [url] && entries[0].problem == nil, "\(entries)")
        }
    }

    /// One form of sizes for cells and lines; a letter alone is none.
    @Test(arguments: [("300w", true), ("1.5x", true), ("20h", true), ("w", false), (".w", false)])
    func sizesOfASourceSetAreLeftOut(size: String, isSize: Bool) throws {
        let cell = "https://a.example/1.jpg \(size), https://a.example/2.jpg \(size)"
        let urls = try reader("image\n\"\(cell)\"\n", .csv, each: true).readAll().entries.map(\.url)
        #expect((urls == ["https://a.example/1.jpg", "https://a.example/2.jpg"]) == isSize)
        let line = Array("https://a.example/1.jpg \(size)".utf8)
        line.withUnsafeBufferPointer {
            #expect((LineOddity.followingText($0) == .sourceSet) == isSize)
        }
    }

    /// One URL, in spite of its signs.
    @Test(arguments: [
        "https://a.example/w_1,h_2/x.jpg", "https://a.example/fetch/https://b.example/1.jpg",
        "https://a.example/?u=https://b.example/1.jpg,https://b.example/2.jpg",
        "https://a.example/a;b|c.jpg", "https://a.example/x,http.jpg",
    ])
    func oneURLIsNotSplit(url: String) throws {
        for each in [false, true] {
            for (format, text) in [
                (ManifestFormat.csv, "image,a\n\"\(url)\",b\n"), (.jsonl, "{\"image\":\"\(url)\"}"),
            ] {
                let entries = try reader(text, format, each: each).readAll().entries
                #expect(entries.count == 1 && entries[0].problem == nil, "\(entries)")
            }
        }
    }

    @Test(arguments: [urls[0], "https://a.example/w_1,h_2/x.jpg"])
    func aListOfOneURLIsThatURL(url: String) throws {
        for each in [false, true] {
            for list in ["['\(url)']", "[\"\"\(url)\"\"]", "{'\(url)'}"] {
                let text = "image,a\n\"\(list)\",b\n"
                let entries = try reader(text, .csv, each: each).readAll().entries
                #expect(entries.map(\.url) == [url], "\(list)")
            }
        }
    }

    /// A bad cell, or a member of a wrong kind, hides no other column's image.
    @Test(arguments: [
        (ManifestFormat.csv, "a,b,c\n%1,\"%2, %3\",%3\n"),
        (.jsonl, "{\"a\":\"%1\",\"b\":\"%2, %3\",\"c\":\"%3\"}\n"),
        (.jsonl, "{\"a\":\"%1\",\"b\":5,\"c\":\"%3\"}\n"),
    ])
    func oneColumnFailsAlone(format: ManifestFormat, text: String) throws {
        let urls = SeveralURLTests.urls
        let list = (0..<3).reduce(text) { $0.replacing("%\($1 + 1)", with: urls[$1]) }
        let entries = try reader(list, format, each: false, ["a", "b", "c"]).readAll().entries
        #expect(entries.count == 3 && entries.count { $0.problem != nil } == 1, "\(entries)")
        let good = entries.filter { $0.problem == nil }
        #expect(good.map(\.url) == [urls[0], urls[2]])
    }

    @Test func relativeURLsAreSplitOnRequest() throws {
        let text = "image,a\n\"/1.jpg, /2.jpg|3.jpg\",b\n"
        let base = "https://a.example/"
        let entries = try reader(text, .csv, each: true, baseURL: base).readAll().entries
        #expect(entries.map(\.url) == (1...3).map { "https://a.example/\($0).jpg" })
        #expect(try reader(text, .csv, each: false, baseURL: base).readAll().entries.count == 1)
    }

    private static let arrays = [
        "[\"%1\",\"%2\",\"%3\"]", "[null,\"%1\",\"\",\"%2\",\"%3\"]",
        "[{\"src\":\"%1\"},{\"id\":1,\"src\":\"%2\"},{\"src\":\"%3\",\"alt\":\"x\"}]",
    ].map { array in
        urls.enumerated().reduce(array) { $0.replacing("%\($1.offset + 1)", with: $1.element) }
    }

    @Test(arguments: arrays)
    func anArrayHasMirrorsOrEntries(array: String) throws {
        let text = "{\"id\":7,\"image\":\(array)}\n{\"image\":[]}\n"
        let each = try reader(text, .jsonl, each: true)
        #expect(each.readAll().entries.map(\.url) == SeveralURLTests.urls)
        #expect(each.notes.isEmpty && each.skipped.count == 1)

        let mirrors = try reader(text, .jsonl, each: false)
        let entries = mirrors.readAll().entries
        #expect(entries.map(\.url) == [SeveralURLTests.urls[0]])
        #expect(
            entries.first?.extras?.alternatives.map(\.text)
                == Array(SeveralURLTests.urls.dropFirst()))
        #expect(
            mirrors.notes.map(\.text) == [
                "1 array of several URLs taken as mirrors of one image, first line 1"
            ])
        #expect(mirrors.skipped.count == 1)
    }

    @Test func anArrayOfManyURLsNamesTheFlag() throws {
        let urls = (0..<12).map { "\"https://a.example/\($0)\"" }.joined(separator: ",")
        let text = "{\"image\":[\(urls)]}\n"
        let problem = try reader(text, .jsonl, each: false).readAll().entries.first?.problem
        #expect(problem?.contains("12 URLs") == true && problem?.contains("--each") == true)
        #expect(try reader(text, .jsonl, each: true).readAll().entries.count == 12)
    }

    @Test(arguments: [false, true])
    func severalColumnsAreEntries(each: Bool) throws {
        let (a, b, c) = (SeveralURLTests.urls[0], SeveralURLTests.urls[1], SeveralURLTests.urls[2])
        let lists: [(ManifestFormat, String)] = [
            (.csv, "id,i1,i2,i3\n7,\(a),\(b),\n8,,,\n9,\(c)\n"),
            (.tsv, "id\ti1\ti2\ti3\n7\t\(a)\t\(b)\t\n8\t\t\t\n9\t\(c)\t\t\n"),
            (
                .jsonl,
                "{\"id\":\"7\",\"i1\":\"\(a)\",\"i2\":\"\(b)\",\"i3\":null}\n{\"id\":\"8\"}\n"
                    + "{\"id\":\"9\",\"i1\":\"\(c)\"}\n"
            ),
        ]
        for (format, text) in lists {
            let reader = try reader(text, format, each: each, ["i1", "i2", "i3"])
            let entries = reader.readAll().entries
            #expect(entries.map(\.url) == [a, b, c], "\(entries)")
            #expect(
                entries.map(\.columns) == ["{\"id\":\"7\"}", "{\"id\":\"7\"}", "{\"id\":\"9\"}"])
            #expect(reader.skipped.count == 1)
        }
        let missing = try reader(lists[0].1, .csv, each: each, ["i1", "i4"]).readAll()
        #expect(missing.error?.message == "has no column 'i4'")
    }

    /// A bad URL does not take the others of its row with it.
    @Test func aBadURLIsItsOwnFailure() throws {
        let text = "i1,i2\nftp://a.example/,\(SeveralURLTests.urls[0])\n"
        let entries = try reader(text, .csv, each: false, ["i1", "i2"]).readAll().entries
        #expect(entries.map { $0.problem == nil } == [false, true])
        #expect(entries.map(\.line) == [2, 2])
    }
}

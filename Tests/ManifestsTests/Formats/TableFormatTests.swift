import PrefetchModel
import Testing

@testable import Manifests

@Suite(.timeLimit(.minutes(15)))
struct TableFormatTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    func read(
        _ text: String, _ format: ManifestFormat = .csv, _ columns: ColumnRules = ColumnRules()
    ) throws -> [ReadEntry] {
        let (entries, error) = try folder.read(text.utf8, format, columns: columns)
        #expect(error == nil)
        return entries
    }

    @Test func readsURLFieldsAndOtherColumns() throws {
        let entries = try read(
            #"""
            id,URL,priority,caption,attr.album,header
            7, http://a.b/1 ,high,"two
            lines, and ""quotes""",hiking,A: b c
            8,http://a.b/2,,,,
            """#)
        #expect(entries.map(\.url) == ["http://a.b/1", "http://a.b/2"])
        #expect(entries.map(\.line) == [2, 4])
        #expect(entries.map(\.priority) == [10, 0])
        #expect(
            entries.map(\.columns) == [
                #"{"id":"7","caption":"two\nlines, and \"quotes\""}"#, #"{"id":"8","caption":""}"#,
            ])
        #expect(entries[0].extras?.attributes.map(\.name) == ["album"])
        #expect(entries[0].extras?.headers.map(\.value) == ["b c"])
        #expect(entries[1].extras?.headers == [])
    }

    @Test func lineEndsMayBeCRLFOrCR() throws {
        for end in ["\n", "\r\n", "\r"] {
            let entries = try read("url\(end)http://a.b/1\(end)\(end)http://a.b/2")
            #expect(entries.map(\.url) == ["http://a.b/1", "http://a.b/2"], "\(end.utf8.count)")
        }
    }

    @Test func separatorIsThatOfTheFirstRow() throws {
        #expect(try read("a;url\n1,5;http://a.b/\n")[0].columns == #"{"a":"1,5"}"#)
        #expect(try read("a,url\n1;5,http://a.b/\n")[0].columns == #"{"a":"1;5"}"#)
    }

    /// A single quotation mark in a tab-separated text hides no row.
    @Test func tabsNeedNoQuotes() throws {
        let text = "caption\turl\n\"half\thttp://a.b/1\na \"b\"\thttp://a.b/2\n"
        #expect(
            try read(text, .tsv).map(\.columns) == [
                #"{"caption":"\"half"}"#, #"{"caption":"a \"b\""}"#,
            ])
        let quoted = "\"caption\"\t\"url\"\n\"a\tb\"\t\"http://a.b/1\"\n"
        #expect(try read(quoted, .tsv).map(\.columns) == [#"{"caption":"a\tb"}"#])
    }

    /// An unclosed quotation mark hides the rows up to the next one: all of them are one bad row.
    @Test func wrongQuotesMakeOneBadRow() throws {
        for end in ["\n", "\r\n", "\r"] {
            let rows = [
                "url,a", "http://a.b/1,\"unclosed", "http://a.b/2,x", "http://a.b/3,\"fine\"",
                "http://a.b/4,5\" wide", "http://a.b/5,y",
            ]
            for readBytes in [1, 9, 1 << 16] {
                let (entries, error) = try folder.read(
                    rows.joined(separator: end).utf8, .csv, readBytes: readBytes)
                #expect(error == nil)
                #expect(
                    entries.map { $0.problem == nil ? $0.url : "bad" }
                        == ["bad", "http://a.b/4", "http://a.b/5"], "\(entries)")
                #expect(entries.count > 1 && entries[1].columns == #"{"a":"5\" wide"}"#)
            }
        }
    }

    @Test func commentsBeforeATableAreSkipped() throws {
        let path = try folder.file("list", "# comment\n\nid;url\n1;http://a.b/\n".utf8)
        let reader = try ManifestReader(path: path)
        #expect(reader.readAll().entries.map(\.url) == ["http://a.b/"])
        #expect(reader.format == .csv)
    }

    @Test func hintsShowNoSecrets() throws {
        let (_, error) = try folder.read("1,https://user:SECRET@host/a.jpg\n".utf8, .csv)
        #expect(error?.hint?.contains("--no-header") == true)
        #expect(error?.hint?.contains("SECRET") == false)
    }

    @Test func imageColumnsPrecedePages() throws {
        let entries = try read("url,image_url\nhttp://p/,http://i/\n")
        #expect(entries.map(\.url) == ["http://i/"])
        #expect(entries[0].columns == #"{"url":"http://p/"}"#)
    }

    @Test func columnsAreAssigned() throws {
        let rules = ColumnRules(urlColumns: ["photo"], columns: ["key": "id", "quality": ""])
        let entries = try read("id,quality,photo\nk1,good,http://a.b/\n", .csv, rules)
        #expect(entries == [ReadEntry(2, "http://a.b/", key: "k1", extras: entries[0].extras)])
        #expect(entries[0].columns == #"{"quality":"good"}"#)
    }

    @Test func columnsWithoutHeaderAreNumbers() throws {
        let rules = ColumnRules(urlColumns: ["2"], columns: ["key": "1"], hasHeader: false)
        let entries = try read("k,http://a.b/,x\nl,http://a.b/2,y\n", .csv, rules)
        #expect(entries.map(\.key) == ["k", "l"])
        #expect(entries.map(\.columns) == [#"{"3":"x"}"#, #"{"3":"y"}"#])
        #expect(entries.map(\.line) == [1, 2])
        #expect(
            try read("http://a.b/,x\n", .csv, ColumnRules(hasHeader: false))[0].url == "http://a.b/"
        )
    }

    @Test(arguments: [
        ("url\nftp://a.b/\n", "not supported"),
        ("url,a\nhttp://a.b/,1,2\n", "3 values where the first row has 2"),
        ("url\n\"http://a.b/\n1\"\n", "the URL contains a control character"),
        ("url,a\nhttp://a.b/,\"1\n", "a quotation mark is not closed"),
        ("url,a\nhttp://a.b/,\"1\" 2\n", "a quotation mark is not closed"),
    ])
    func badRowsAreEntries(text: String, message: String) throws {
        let entries = try read(text)
        #expect(entries.count == 1)
        #expect(entries[0].problem?.contains(message) == true, "\(entries)")
        #expect(entries[0].line == 2)
    }

    @Test func longRowsAreBadAndTheRestGoesOn() throws {
        let long = String(repeating: "x", count: 300)
        for value in [
            long, "\"\(long)\n\(long)\"", "\"" + String(repeating: "\"\"", count: 200) + "\"",
        ] {
            for readBytes in [1, 7, 1 << 16] {
                let text = "url,a\nhttp://a.b/1,\(value)\nhttp://a.b/2,b\n"
                let (entries, error) = try folder.read(
                    text.utf8, .csv, maximumLineBytes: 100, readBytes: readBytes)
                #expect(error == nil)
                #expect(entries.map { $0.problem == nil } == [false, true], "\(entries)")
                #expect(entries.last?.url == "http://a.b/2")
            }
        }
    }

    @Test(arguments: [
        ("a,b\n1,2\n", ColumnRules(), "has no column of URLs"),
        ("a,b\n1,2\n", ColumnRules(urlColumns: ["c"]), "has no column 'c'"),
        ("url,b\n1,2\n", ColumnRules(columns: ["key": "id"]), "has no column 'id'"),
        ("1,2\n", ColumnRules(urlColumns: ["3"], hasHeader: false), "has no column '3'"),
    ])
    func tablesWithoutTheColumnAreRefused(
        text: String, rules: ColumnRules, message: String
    ) throws {
        let (entries, error) = try folder.read(text.utf8, .csv, columns: rules)
        #expect(entries.isEmpty)
        #expect(error?.message == message)
        #expect(error?.hint != nil)
    }

    @Test func aThousandColumnsAndInvalidUTF8() throws {
        let names = (0..<1000).map { "c\($0)" }.joined(separator: ",")
        var bytes = Array("url,\(names)\nhttp://a.b/,".utf8)
        bytes += [0xFF, 0x1B] + Array(",\n".utf8)
        let (entries, error) = try folder.read(bytes, .csv)
        #expect(error == nil)
        #expect(entries[0].columns == "{\"c0\":\"\u{FFFD}\\u001b\",\"c1\":\"\"}")
    }
}

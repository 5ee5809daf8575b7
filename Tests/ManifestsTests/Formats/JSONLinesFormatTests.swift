import PrefetchModel
import Testing

@testable import Manifests

@Suite(.timeLimit(.minutes(15)))
struct JSONLinesFormatTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    func read(
        _ text: String, _ columns: ColumnRules = ColumnRules()
    ) throws -> [ReadEntry] {
        let (entries, error) = try folder.read(text.utf8, .jsonl, columns: columns)
        #expect(error == nil)
        return entries
    }

    @Test func readsURLFieldsAndOtherMembers() throws {
        let entries = try read(
            #"""
            {"url":"http:\/\/a.b/1","priority":5,"ttl":"5m","id":12345678901234567890123,"x":{"a":[1,2.50,null,"\u00e9"]}}

              { "IMAGE_URL" : "http://a.b/2", "key":null, "header":["A:b","C: d"], "t":"caf\u00e9 \u009b" }
            """#)
        #expect(entries.map(\.url) == ["http://a.b/1", "http://a.b/2"])
        #expect(entries.map(\.line) == [1, 3])
        #expect(entries[0].priority == 5)
        #expect(entries[0].extras?.timeToLive == .seconds(300))
        #expect(entries[1].extras?.headers.map(\.name) == ["A", "C"])
        #expect(
            entries.map(\.columns) == [
                #"{"id":12345678901234567890123,"x":{"a":[1,2.50,null,"\u00e9"]}}"#,
                #"{"key":null,"t":"café \u009b"}"#,
            ])
    }

    @Test func membersAreAssigned() throws {
        let rules = ColumnRules(urlColumns: ["photo"], columns: ["key": "id"])
        let entries = try read(#"{"photo":"http://a.b/","id":17,"url":"x"}"#, rules)
        #expect(entries.map(\.key) == ["17"])
        #expect(entries[0].columns == #"{"url":"x"}"#)
    }

    @Test(arguments: [
        ("{", "invalid JSON at byte"), ("[1]", "not a JSON object"), ("1", "not a JSON object"),
        ("{} {}", "invalid JSON at byte"), ("{\"url\":\"http://a.b/\",}", "invalid JSON"),
        ("{\"url\":1}", "the URL is not a JSON string"),
        ("{\"url\":true}", "the URL is not a JSON string"),
        ("{\"url\":{\"a\":1}}", "the URL is not a JSON string"),
        ("{\"url\":\"http://a.b/\\n\"}", "http://a.b/"),
        ("{\"url\":\"http://a.b/\",\"x\":nan}", "invalid JSON"),
        ("{\"url\":\"http://a.b/\",\"x\":\"\\ud8\"}", "invalid JSON"),
        ("{'url': 'http://a.b/'}", "invalid JSON"),
        ("{\"url\":\"http://a.b/\",\"x\":1e}", "invalid JSON"),
    ])
    func badLinesAreEntries(text: String, message: String) throws {
        let entries = try read(text + "\n{\"url\":\"http://a.b/2\"}")
        #expect(entries.count == 2)
        let problem = entries[0].problem ?? entries[0].url
        #expect(problem.contains(message), "\(entries)")
        #expect(entries[1].problem == nil)
    }

    /// Values that Python writes beyond RFC 8259.
    @Test(arguments: [
        ("NaN", "null"), ("Infinity", "null"), ("-Infinity", "null"), ("1e999", "null"),
        ("-1E999", "null"), ("[NaN,{\"a\":Infinity},-1.5e3]", "[null,{\"a\":null},-1.5e3]"),
        ("\"NaN\"", "\"NaN\""), ("[true,false,NaN]", "[true,false,null]"),
        (#""cut \ud83d""#, "\"cut \u{FFFD}\""), (#""\ude00""#, "\"\u{FFFD}\""),
        (#""\ude00\ud83d""#, "\"\u{FFFD}\u{FFFD}\""), (#""\ud83d\ud83d\ude00""#, "\"\u{FFFD}😀\""),
        (#""\\ud83d""#, #""\\ud83d""#), (#""\uD83D x""#, "\"\u{FFFD} x\""),
        (#""whole \ud83d\ude00""#, "\"whole 😀\""),
    ])
    func readsJSONAsPythonWritesIt(value: String, column: String) throws {
        let reader = try ManifestReader(
            path: folder.file("list", "{\"url\":\"http://a.b/\",\"x\":\(value)}\n".utf8),
            options: ManifestOptions(format: .jsonl, keepsColumns: true))
        let (entries, error) = reader.readAll()
        #expect(error == nil && entries.map(\.problem) == [nil], "\(entries)")
        #expect(entries.map(\.columns) == ["{\"x\":\(column)}"])
        let isCut = column.contains("\u{FFFD}")
        #expect(reader.notes.count == (isCut ? 1 : 0))
        #expect(reader.notes.allSatisfy { $0.text.contains("U+FFFD, first line 1") })
    }

    @Test func bytesOfOtherEncodingsAreReplaced() throws {
        let reader = try ManifestReader(
            path: folder.file(
                "list",
                Array("{\"url\":\"http://a.b/\",\"x\":\"caf".utf8) + [0xE9] + Array("\"}".utf8)),
            options: ManifestOptions(format: .jsonl, keepsColumns: true))
        #expect(reader.readAll().entries.map(\.columns) == ["{\"x\":\"caf\u{FFFD}\"}"])
        #expect(reader.notes.map(\.remedy) == [EncodingCheck.remedy])
    }

    @Test func objectsHaveNamesAndValues() throws {
        let entries = try read(
            #"""
            {"url":"http://a.b/","header":{"X-A":"b","X-B":7,"Cookie":null},"attr":{"album":"hiking","n":1,"ok":true,"no":null},"variant":{"web":"jpeg"}}
            """#)
        let extras = try #require(entries.first?.extras)
        #expect(entries.map(\.problem) == [nil] && entries[0].columns == nil)
        #expect(extras.headers.map(\.name) == ["X-A", "X-B", "Cookie"])
        #expect(extras.headers.map(\.value) == ["b", "7", ""])
        #expect(extras.attributes.map(\.name) == ["album", "n", "ok"])
        #expect(
            extras.attributes.map { String(decoding: $0.value, as: UTF8.self) }
                == ["hiking", "1", "true"])
        #expect(extras.ownVariants.map(\.name.text) == ["web"])
    }

    /// An everyday member of that name is an ordinary one.
    @Test(arguments: [
        "\"attr\":\"x\"", "\"attr\":{\"a\":{\"b\":1}}", "\"header\":{\"a\":[1]}",
        "\"priority\":{\"a\":1}",
    ])
    func otherObjectsAreOrdinaryMembers(member: String) throws {
        let entries = try read("{\"url\":\"http://a.b/\",\(member)}")
        #expect(entries.map(\.columns) == ["{\(member)}"])
        #expect(entries.map(\.problem) == [nil])
    }

    @Test func anObjectHasItsURL() throws {
        let entries = try read(
            #"""
            {"image":{"id":1,"src":"http://a.b/1","width":2}}
            {"image":{"id":1,"alt":"x","url":"http://a.b/2","src":null}}
            """#)
        #expect(entries.map(\.url) == ["http://a.b/1", "http://a.b/2"])
    }

    /// All but the URL may be a secret.
    @Test func badLinesShowTheirURLOnly() throws {
        let rules = ColumnRules(columns: ["header": "auth"])
        for end in ["}", ",}", ",\"key\":true}"] {
            let line = #"{"url":"http://a.b/","auth":"Authorization secret""# + end
            let entries = try read(line, rules)
            #expect(entries[0].problem != nil)
            #expect(!"\(entries)".contains("secret"), "\(entries)")
        }
    }

    @Test func aHeaderTakesOneValue() throws {
        let rules = ColumnRules(columns: ["header": "h"])
        let entries = try read(#"{"url":"http://a.b/","h":{"X-A":["s1","s2"]}}"#, rules)
        #expect(entries.map(\.problem) == ["field 'header': 'X-A' takes one string or number"])
    }

    @Test func bytesAfterNULAreNotIgnored() throws {
        let entries = try read("{\"url\":\"http://a.b/\"}\0{\"url\":\"http://a.b/2\"}")
        #expect(entries.map(\.problem) == ["invalid JSON at byte 22"])
    }

    @Test func manyNamesTakeLimitedTime() throws {
        let lines = (0..<20).map { line in
            let members = (0..<3000).map { "\"n\(line)-\($0)\":1" }.joined(separator: ",")
            return "{\(members),\"url\":\"http://a.b/\(line)\"}"
        }
        #expect(try read(lines.joined(separator: "\n")).count == 20)
    }

    /// The numbers of columns are those of tables.
    @Test func membersHaveNamesWithoutAHeader() throws {
        let entries = try read(#"{"url":"http://a.b/"}"#, ColumnRules(hasHeader: false))
        #expect(entries.map(\.url) == ["http://a.b/"])
    }

    /// Python's parser of the report would fail beyond a thousand levels.
    @Test(arguments: [99, 100, 30_000])
    func nestingHasALimit(depth: Int) throws {
        let deep = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        let entries = try read(
            "{\"url\":\"http://a.b/\",\"x\":\(deep)}\n{\"url\":\"http://a.b/2\"}")
        if depth < 100 {
            #expect(entries[0].columns == "{\"x\":\(deep)}")
        } else {
            #expect(entries[0].problem == "JSON of more than 100 levels; flatten it")
        }
        #expect(entries[1].url == "http://a.b/2")
    }

    @Test func longLinesAreNotParsed() throws {
        let text = String(repeating: "x", count: 200)
        let (long, error) = try folder.read(
            "{\"url\":\"\(text)\"}\n{\"url\":\"http://a.b/\"}".utf8, .jsonl, maximumLineBytes: 100)
        #expect(error == nil)
        #expect(long.map(\.problem) == ["the line is longer than 100 B (--max-row-size)", nil])
    }
}

import PrefetchModel
import Testing

@testable import Manifests

/// The fields `ttl` and `attr.NAME` of text lines.
@Suite(.timeLimit(.minutes(15)))
struct EntryExtrasReadingTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    func batch(
        _ bytes: some Sequence<UInt8>, _ options: ManifestOptions = ManifestOptions()
    ) throws -> EntryBatch {
        let reader = try ManifestReader(path: folder.file("list", bytes), options: options)
        return try #require(try reader.nextBatch())
    }

    func entry(
        fields: some Sequence<UInt8>, _ options: ManifestOptions = ManifestOptions()
    ) throws -> ReadEntry {
        let entries = try batch(Array("http://a.b/ ".utf8) + fields, options).entries
        #expect(entries.count == 1)
        return try #require(entries.first)
    }

    @Test(
        arguments: [
            ("0", .zero), ("0s", .zero), ("90", .seconds(90)), ("1.5", .milliseconds(1500)),
            ("500ms", .milliseconds(500)), ("30s", .seconds(30)), ("5m", .seconds(300)),
            ("2h", .seconds(7200)), ("7d", .seconds(604_800)),
            ("36500d", .seconds(36_500 * 86_400)),
            (String(repeating: "0", count: 31) + "1", .seconds(1)),
        ] as [(String, Duration)])
    func readsTimeToLive(text: String, expected: Duration) throws {
        let entry = try entry(fields: "ttl=\(text)".utf8)
        #expect(entry == ReadEntry(1, "http://a.b/", extras: try EntryExtras(expected)))
    }

    @Test(arguments: [
        ("a=b", "a", "b"), ("a=", "a", ""), ("a==", "a", "="), ("a=b=c==", "a", "b=c=="),
        ("a=#%20\"'\\", "a", "#%20\"'\\"), ("a.b/c:d=1", "a.b/c:d", "1"), ("ä€=ü", "ä€", "ü"),
        ("prefetch=1", "prefetch", "1"), ("Prefetch.a=1", "Prefetch.a", "1"),
        ("attr.a=1", "attr.a", "1"), ("ttl=1", "ttl", "1"),
        (String(repeating: "n", count: 255) + "=v", String(repeating: "n", count: 255), "v"),
        (String(repeating: "é", count: 127) + "=v", String(repeating: "é", count: 127), "v"),
    ])
    func readsAttribute(field: String, name: String, value: String) throws {
        let entry = try entry(fields: "attr.\(field)".utf8)
        let extras = try EntryExtras(nil, [name: value])
        #expect(entry == ReadEntry(1, "http://a.b/", extras: extras))
        // `==` of strings overlooks how a character is composed.
        #expect(entry.extras?.attributes.first.map { Array($0.name.utf8) } == Array(name.utf8))
    }

    @Test func valueMayBeAnyBytes() throws {
        let value = Array(UInt8(0x21)...0x7E) + Array(UInt8(0x80)...0xFF)
        let entry = try entry(fields: Array("attr.a=".utf8) + value)
        #expect(entry.problem == nil)
        #expect(entry.extras?.attributes.map(\.value) == [value])
    }

    @Test func valueEndsAtSpaceOrTab() throws {
        let entry = try entry(fields: "attr.a=1\tattr.b=2  ttl=3\r\n".utf8)
        #expect(entry.extras == (try EntryExtras(.seconds(3), ["a": "1", "b": "2"])))
    }

    static let durationMessage =
        "field 'ttl' takes a duration like 500ms, 90s, 5m, 12h or 30d, at most 36500d"
    static let reservedMessage =
        "an attribute's name begins with 'prefetch.', which is reserved"

    @Test(
        arguments: [
            ("ttl=", durationMessage), ("ttl=-1", durationMessage + ", not '-1'"),
            ("ttl=+1", durationMessage), ("ttl=1w", durationMessage + ", not '1w'"),
            ("ttl=1H", durationMessage + ", not '1H'"), ("ttl=h", durationMessage + ", not 'h'"),
            ("ttl=1e3", durationMessage + ", not '1e3'"),
            ("ttl=inf", durationMessage + ", not 'inf'"),
            ("ttl=1.2.3", durationMessage + ", not '1.2.3'"),
            ("ttl=36500.1d", durationMessage + ", not '36500.1d'"), ("ttl=٣s", durationMessage),
            ("ttl=" + String(repeating: "0", count: 64) + "1", durationMessage),
            ("ttl=1 ttl=1", "duplicate field 'ttl'"),
            ("ttl=1 priority=1 ttl=2", "duplicate field 'ttl'"),
            ("attr.a=1 attr.a=1", "duplicate field 'attr.a'"),
            ("attr.a=1 attr.b=1 ttl=1 attr.a=2", "duplicate field 'attr.a'"),
            ("attr.ä=1 attr.ä=2", "duplicate attribute"),
            ("attr.http://u:p@h/=1 attr.http://u:p@h/=2", "duplicate attribute"),
            ("attr.=b", "an attribute's name is not 1 to 255 bytes long"),
            (
                "attr.\(String(repeating: "n", count: 256))=",
                "an attribute's name is not 1 to 255 bytes long"
            ),
            (
                "attr.\(String(repeating: "é", count: 128))=",
                "an attribute's name is not 1 to 255 bytes long"
            ),
            ("attr.a\u{80}=b", "an attribute's name has a control character"),
            ("attr.a\u{9F}=b", "an attribute's name has a control character"),
            ("attr.prefetch.a=b", reservedMessage), ("attr.prefetch.=b", reservedMessage),
            ("attr.a", "text without '=' after the URL; a space in a URL is written %20"),
            ("attr.a=\u{1}", "the line contains a control character"),
            ("attr.a=\u{7F}", "the line contains a control character"),
        ] as [(String, String)])
    func refusesFields(fields: String, message: String) throws {
        let batch = try batch("http://a.b/ \(fields)\nhttp://a.b/2 ttl=1".utf8)
        #expect(batch.entries.map(\.problem) == [message, nil])
        #expect(batch.entries.map(\.extras) == [nil, try EntryExtras(.seconds(1))])
        #expect(batch.extras.count == 1)
    }

    @Test func refusesNameThatIsNotUTF8() throws {
        let entry = try entry(fields: Array("attr.a".utf8) + [0xFF] + Array("=b".utf8))
        #expect(entry.problem == "an attribute's name is not UTF-8")
    }

    @Test func namesCompareByteByByte() throws {
        let entry = try entry(fields: "attr.\u{E9}=1 attr.e\u{301}=2 attr.A=3 attr.a=4".utf8)
        #expect(
            entry.extras?.attributes.map { Array($0.value) } == [[0x31], [0x32], [0x33], [0x34]])
    }

    @Test(arguments: [(65536, nil), (65537, "an attribute's value is longer than 65536 bytes")])
    func limitsValueBytes(count: Int, problem: String?) throws {
        let value = [UInt8](repeating: UInt8(ascii: "v"), count: count)
        let entry = try entry(
            fields: Array("attr.a=".utf8) + value, ManifestOptions(maximumLineBytes: 70_000))
        #expect(entry.problem == problem)
        #expect(entry.extras?.attributes.first?.value == (problem == nil ? value : nil))
    }

    @Test(arguments: [(64, nil), (65, "more than 64 attributes")])
    func limitsAttributeCount(count: Int, problem: String?) throws {
        let entry = try entry(
            fields: (1...count).map { "attr.\($0)=\($0)" }.joined(separator: " ").utf8)
        #expect(entry.problem == problem)
        #expect(
            entry.extras?.attributes.map(\.name)
                == (problem == nil ? (1...64).map(String.init) : nil))
    }

    @Test(
        arguments: [
            ("header=A:b", ["A": "b"]), ("header=A:", ["A": ""]),
            ("header=A:b:c=d", ["A": "b:c=d"]),
            ("header=A:%20", ["A": "%20"]), ("header=A:ü", ["A": "ü"]),
            ("header=A:1 ttl=3 header=a:2\theader=A:1", ["A": "1", "a": "2", "A": "1"]),
        ] as [(String, KeyValuePairs<String, String>)])
    func readsHeaders(fields: String, expected: KeyValuePairs<String, String>) throws {
        let entry = try entry(fields: fields.utf8)
        #expect(entry.problem == nil)
        #expect(
            entry.extras?.headers == expected.map { HeaderField(name: $0.key, value: $0.value) })
    }

    @Test(
        arguments: [
            ("header=", "a header is written header=Name:value"),
            ("header=SECRET", "a header is written header=Name:value"),
            (
                "header=:SECRET",
                "a header's name is not made of letters, digits and !#$%&'*+-.^_`|~"
            ),
            ("header=A: SECRET", "text without '=' after the URL; a space in a URL is written %20"),
            ("Header=A:SECRET", "unknown field 'Header'; did you mean 'header'?"),
            (
                "my-headers=A:SECRET",
                "unknown field 'my-headers'; \(ManifestReaderTests.knownFields)"
            ),
            ("ttl=x header=A:SECRET", durationMessage + ", not 'x'"),
            (
                "header=Range:SECRET", "the header 'range' is made from what the cache holds"
            ),
        ] as [(String, String)])
    func refusesHeadersAndRepeatsNoValue(fields: String, message: String) throws {
        let batch = try batch("http://a.b/header \(fields)\n".utf8)
        #expect(batch.entries.map(\.problem) == [message])
        #expect(!"\(batch.entries)".contains("SECRET"))
        let url = message.hasPrefix("text") ? "http://a.b/header header=***" : "http://a.b/header"
        #expect(batch.entries.first?.url == url)
        #expect(batch.entries.first?.key.hasPrefix("http://a.b/header ") == true)
    }

    @Test(arguments: [(64, nil), (65, "more than 64 headers")])
    func limitsHeaderCount(count: Int, problem: String?) throws {
        let entry = try entry(
            fields: (1...count).map { "header=h\($0):\($0)" }.joined(separator: " ").utf8)
        #expect(entry.problem == problem)
        #expect(entry.extras?.headers.count == (problem == nil ? 64 : nil))
    }

    @Test(arguments: [(8190, nil), (8191, "more than 8192 bytes of headers")])
    func limitsHeaderBytes(count: Int, problem: String?) throws {
        let value = String(repeating: "v", count: count)
        let entry = try entry(fields: "header=a:\(value)".utf8)
        #expect(entry.problem == problem)
        #expect(entry.extras?.headers.first?.value == (problem == nil ? value : nil))
    }

    @Test func combinesWithOtherFieldsInAnyOrder() throws {
        let extras = try EntryExtras(.seconds(3600), ["b": "2", "a": "1"])
        let fields = "attr.b=2 priority=low ttl=1h key=k attr.a=1"
        let entries = try batch("http://u:p@a.b/ \(fields)\nHTTP://A.b \(fields)".utf8).entries
        #expect(
            entries == [
                ReadEntry(1, "http://u:p@a.b/", key: "k", priority: -10, extras: extras),
                ReadEntry(2, "http://a.b/", key: "k", priority: -10, extras: extras),
            ])
    }

    /// The extras of an entry with an invalid URL are removed.
    @Test func manyEntriesKeepTheirOwnExtras() throws {
        var expected: [ReadEntry] = []
        var text = ""
        for line in 1...3000 {
            let url = "http://a.b/\(line)"
            switch line % 4 {
            case 0:
                text += "\(url) ttl=\(line)s attr.line=\(line)\n"
                let extras = try EntryExtras(.seconds(line), ["line": "\(line)"])
                expected.append(ReadEntry(line, url, extras: extras))
            case 1:
                text += "\(url) priority=1\n"
                expected.append(ReadEntry(line, url, priority: 1))
            case 2:
                text += "http:// attr.line=\(line)\n"
                expected.append(
                    ReadEntry(line, "http:// attr.line=\(line)", problem: "the host is missing"))
            default:
                text += "\(url)\n"
                expected.append(ReadEntry(line, url))
            }
        }
        let batch = try batch(text.utf8)
        #expect(batch.entries.map(\.extras) == expected.map(\.extras))
        #expect(batch.entries.map(\.url) == expected.map(\.url))
        #expect(batch.entries.map { $0.problem == nil } == expected.map { $0.problem == nil })
        #expect(batch.extras.count == 750)
        #expect(batch.problems.count == 750)
    }

    @Test func extrasCountTowardsTheBatchLimit() throws {
        let value = String(repeating: "v", count: 10_000)
        let text = (1...100).map { "http://a.b/\($0) attr.a=\(value)\n" }.joined()
        let options = ManifestOptions(maximumBatchBytes: 100_000)
        let reader = try ManifestReader(path: folder.file("list", text.utf8), options: options)
        var sizes: [Int] = []
        while let batch = try reader.nextBatch() { sizes.append(batch.records.count) }
        #expect(sizes == [Int](repeating: 10, count: 10))
    }
}

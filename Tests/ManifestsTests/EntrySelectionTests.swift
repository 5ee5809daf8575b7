import PrefetchModel
import Testing

@testable import Manifests

/// `--include`, `--exclude` and `--key-ignore-query`, and the fields `url` and `sha256`.
@Suite(.timeLimit(.minutes(15)))
struct EntrySelectionTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func read(_ text: String, _ options: ManifestOptions) throws -> [ReadEntry] {
        let reader = try ManifestReader(
            path: folder.file("list", Array(text.utf8)), options: options)
        let (entries, error) = reader.readAll()
        #expect(error == nil)
        return entries
    }

    @Test(
        arguments: [
            ([], [], true), (["h.example"], [], true), (["H.Example"], [], true),
            (["*.example"], [], true), (["example"], [], false), (["*/a/*"], [], true),
            (["http://h.example/a/b.png"], [], true), (["http://h.example/"], [], false),
            (["*.PNG"], [], false), (["*/*.[pj]?g*"], [], true),
            (["other", "h*"], [], true), ([], ["h.example"], false), ([], ["*/b.*"], false),
            (["h.example"], ["*/b.*"], false), ([], ["other", "*/c"], true),
            // The port and the credentials are no part of the host's name.
            (["h.example:80"], [], false), (["*secret*"], [], false), (["*/secret*"], [], false),
        ] as [([String], [String], Bool)])
    func selectsByURLAndHost(included: [String], excluded: [String], expected: Bool) throws {
        var options = ManifestOptions()
        options.selection.included = try included.map {
            try #require(EntrySelection.URLPattern($0))
        }
        options.selection.excluded = try excluded.map {
            try #require(EntrySelection.URLPattern($0))
        }
        // The canonical line takes a shorter path through the reader.
        let entries = try read(
            "http://h.example/a/b.png\nHTTP://u:secret@h.example:80/a/b.png priority=1\n", options)
        #expect(entries.map { $0.problem == nil } == [expected, expected])
        #expect(entries.map(\.key) == Array(repeating: "http://h.example/a/b.png", count: 2))
    }

    @Test(arguments: ["", "a b", "bücher.example", "a\u{1}"])
    func refusesPatternsThatNoURLMatches(text: String) {
        #expect(EntrySelection.URLPattern(text) == nil)
    }

    @Test func keysLackIgnoredParameters() throws {
        var options = ManifestOptions()
        options.ignoredQuery = try #require(IgnoredQuery("token"))
        let entries = try read(
            """
            http://h/a?token=1
            http://h/a?w=2&token=1 priority=1
            http://h/a?w=2
            http://h/a?token=1 key=own
            http://u:p@h/a?token=3

            """, options)
        #expect(
            entries.map(\.key) == [
                "http://h/a", "http://h/a?w=2", "http://h/a?w=2", "own", "http://h/a",
            ])
        #expect(entries[0].url == "http://h/a?token=1")
    }

    @Test func readsFurtherURLsAndDigests() throws {
        let digest = String(repeating: "0a", count: 32)
        let entries = try read(
            "http://h/a url=http://i/b url=HTTPS://j:443/c?d sha256=\(digest.uppercased())\n",
            ManifestOptions())
        #expect(entries.map(\.key) == ["http://h/a"])
        let extras = try #require(entries.first?.extras)
        #expect(extras.alternatives.map(\.text) == ["http://i/b", "https://j/c?d"])
        #expect(extras.sourceDigest?.description == digest)
    }

    @Test(arguments: [
        ("url=ftp://h/a", "unsupported-scheme"), ("url=", "field 'url' is empty"),
        ("url=/relative", "not an absolute URL"),
        (String(repeating: "url=http://h/b ", count: 9), "more than 8 fields 'url'"),
        ("sha256=12", "field 'sha256' takes 64 hexadecimal digits, not '12'"),
        (
            "sha256=" + String(repeating: "g", count: 64),
            "field 'sha256' takes 64 hexadecimal digits"
        ),
    ])
    func refusesOtherValues(fields: String, message: String) throws {
        let entries = try read("http://h/a \(fields)\n", ManifestOptions())
        let problem = try #require(entries.first?.problem)
        #expect(
            message == "unsupported-scheme" || message == "not an absolute URL"
                || problem.hasPrefix(message), "\(problem)")
    }

    @Test func everyFormatHasTheFields() throws {
        let digest = String(repeating: "ab", count: 32)
        let table = try folder.read(
            "url,sha256\nhttp://h/a,\(digest)\n".utf8, .csv)
        #expect(table.entries.first?.extras?.sourceDigest?.description == digest)
        let lines = try folder.read(
            #"{"url":["http://h/a","http://i/b","http://j/c"],"sha256":"\#(digest)"}"#.utf8,
            .jsonl)
        #expect(lines.entries.first?.url == "http://h/a")
        #expect(
            lines.entries.first?.extras?.alternatives.map(\.text) == ["http://i/b", "http://j/c"])
        #expect(lines.entries.first?.extras?.sourceDigest?.description == digest)
    }
}

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
        ("url=", "field 'url' is empty"),
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
        #expect(problem.hasPrefix(message), "\(problem)")
    }

    /// URLs that cannot be requested, each with a pattern of its host or scheme and one with a
    /// slash.
    static let refused: [(text: String, host: String, whole: String)] = [
        ("data:image/gif;base64,R0lGODlhAQAB", "data:*", "data:image/*"),
        ("DATA:image/gif;base64,R0lGODlhAQAB", "data:*", "data:image/*"),
        ("ftp://u:p@H.example:21/a", "h.example", "ftp://*"),
        ("file:///a.jpg", "file:*", "file:///*.jpg"),
        ("https://h.example:99999/a", "*.example", "https://h.example*/a"),
        ("http://[h/a", "[[]h", "http://*"),
    ]

    enum ListShape: CaseIterable {
        case text, textWithField, csv, tsv, json, jsonArray, sitemap

        func list(_ url: String) -> (text: String, format: ManifestFormat) {
            switch self {
            case .text: (url, .text)
            case .textWithField: ("\(url) priority=1", .text)
            case .csv: ("url,caption\n\"\(url)\",c\n", .csv)
            case .tsv: ("url\tcaption\n\(url)\tc\n", .tsv)
            case .json: (#"{"url":"\#(url)"}"#, .jsonl)
            case .jsonArray: (#"{"url":["\#(url)","\#(url)"]}"#, .jsonl)
            case .sitemap:
                (
                    """
                    <urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" \
                    xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"><url>\
                    <loc>http://p.example/</loc><image:image><image:loc>\(url)</image:loc>\
                    </image:image></url></urlset>
                    """, .sitemap
                )
            }
        }
    }

    @Test(arguments: refused, ListShape.allCases)
    func refusedURLsMatchByTheirText(
        url: (text: String, host: String, whole: String), shape: ListShape
    ) throws {
        let (text, format) = shape.list(url.text)
        func problem(_ included: [String], _ excluded: [String]) throws -> (String, ListGap?) {
            var options = ManifestOptions(format: format)
            options.selection.included = try included.map {
                try #require(EntrySelection.URLPattern($0))
            }
            options.selection.excluded = try excluded.map {
                try #require(EntrySelection.URLPattern($0))
            }
            let reader = try ManifestReader(
                path: folder.file("list", Array(text.utf8)), options: options)
            let entries = try reader.nextBatch()?.entries ?? []
            #expect(entries.count == 1)
            return (try #require(entries.first?.problem), reader.gap)
        }
        let usual = try problem([], [])
        #expect(!usual.0.contains("clude"))
        for pattern in [url.host, url.whole] where pattern != "*/*" {
            let excluded = try problem([], [pattern])
            #expect(excluded.0 == "--exclude \(pattern)")
            #expect(excluded.1 == nil, "the user knows these entries")
            #expect(try problem(["other.example", pattern], []).0 == usual.0)
            #expect(try problem([pattern], [pattern]).0 == "--exclude \(pattern)")
        }
        #expect(try problem([], ["other.example"]).0 == usual.0)
        let omitted = try problem(["other.example"], [])
        #expect(omitted.0 == "no --include matches")
        #expect((omitted.1 == nil) == (usual.1 == nil))
    }

    /// The URLs of a line, the first one used, and the further ones.
    @Test(
        arguments: [
            (["data:x", "http://h/a"], "http://h/a", []),
            (
                ["about:blank", "", "http://h/a", "ftp://h/b", "http://i/c"], "http://h/a",
                ["http://i/c"]
            ),
            (["http://h/a", "data:x", "http://i/c"], "http://h/a", ["http://i/c"]),
            (["http://h/a", "blob:http://h/1"], "http://h/a", []),
            (["data:x", "ftp://h/b"], nil, []), (["http://[h/", "data:x"], nil, []),
        ] as [([String], String?, [String])])
    func passesOverURLsThatCannotBeRequested(
        urls: [String], used: String?, others: [String]
    ) throws {
        let array = "[" + urls.map { "\"\($0)\"" }.joined(separator: ",") + "]"
        let fields = urls.dropFirst().filter { !$0.isEmpty }.map { " url=\($0)" }.joined()
        for (text, format) in [
            ("{\"url\":\(array)}", ManifestFormat.jsonl), (urls[0] + fields, .text),
        ] {
            var options = ManifestOptions(format: format)
            options.selection.excluded = [try #require(EntrySelection.URLPattern("data:*"))]
            let entry = try #require(try read(text, options).first)
            #expect((entry.problem == nil) == (used != nil), "\(entry)")
            // The one that is not excluded is at fault.
            #expect(entry.problem?.contains("--exclude") != true)
            guard let used else { continue }
            #expect(entry.url == used && entry.key == used)
            #expect(entry.extras?.alternatives.map(\.text) ?? [] == others)
        }
    }

    @Test(arguments: ["*/a.*", "h.example", "data:*", "DATA:*", "blob:*", "ftp.example", "*.org"])
    func targetsOfRedirectsAreExcludedToo(pattern: String) throws {
        var selection = EntrySelection()
        // Where a selected image lies is its origin's choice.
        selection.included = [try #require(EntrySelection.URLPattern("*.org"))]
        #expect(selection.ofRedirects == nil)
        selection.excluded = [try #require(EntrySelection.URLPattern(pattern))]
        let objection = try #require(selection.ofRedirects)
        let targets: [Redirect] = [
            .to(RequestURL(normalized: "https://h.example/a.png")),
            .nowhere(location: "data:image/png;base64,AAAA", message: ""),
            .nowhere(location: "blob:https://h.example/1", message: ""),
            .nowhere(location: "ftp://ftp.example/1.png", message: ""),
        ]
        let excluded = targets.filter { objection($0) != nil }
        #expect(excluded.count == (pattern == "*.org" ? 0 : 1))
        #expect(excluded.allSatisfy { objection($0)?.reason == .notSelected })
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

import Foundation
import PrefetchModel
import Testing

@testable import Manifests

@Suite(.timeLimit(.minutes(15)))
struct ManifestReaderTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    func read(
        _ bytes: [UInt8], _ options: ManifestOptions = ManifestOptions()
    ) throws -> (entries: [ReadEntry], error: ManifestError?) {
        let reader = try ManifestReader(path: folder.file("list", bytes), options: options)
        #expect(reader.isRegularFile)
        return reader.readAll()
    }

    func read(_ text: String, _ options: ManifestOptions = ManifestOptions()) throws -> [ReadEntry]
    {
        let result = try read(Array(text.utf8), options)
        #expect(result.error == nil)
        return result.entries
    }

    static let mixedText =
        "\u{FEFF}# comment\r\nhttp://a.b/1\r\n\r\n  \t \n\thttp://a.b/2 \t priority=high\n"
        + "http://A.b/3 priority=-7 key=k/ä\n# \u{1} # http://a.b/no\nhttp://u:p@a.b/4 key=x\n"
        + "bad\nhttp://u:p@a.b/5\r\nhttp://a.b/\(String(repeating: "y", count: 120))\nhttp://a.b/6"
    static let mixedEntries = [
        ReadEntry(2, "http://a.b/1"),
        ReadEntry(5, "http://a.b/2", priority: 10),
        ReadEntry(6, "http://a.b/3", key: "k/ä", priority: -7),
        ReadEntry(8, "http://u:p@a.b/4", key: "x"),
        ReadEntry(
            9, "bad",
            problem: "the scheme is missing (write https:// in front, or give --base-url)"),
        ReadEntry(10, "http://u:p@a.b/5", key: "http://a.b/5"),
        ReadEntry(
            11, "http://a.b/" + String(repeating: "y", count: 89),
            problem: "the line is longer than 100 B (--max-row-size)"),
        ReadEntry(12, "http://a.b/6"),
    ]

    /// Also behind a fragment, which is no comment itself.
    @Test func aCommentMayFollowAnEntry() throws {
        let entries = try read(
            "http://a.b/1 # the first\nhttp://a.b/2#part\tpriority=high\t#not=a field\n")
        #expect(entries.map(\.priority) == [0, 10])
        #expect(entries.allSatisfy { $0.problem == nil && $0.extras == nil }, "\(entries)")
    }

    @Test(arguments: [1, 2, 3, 7, 64, 65536], [1, 3, 4096])
    func readsTheSameWithAnyBufferSize(readBytes: Int, batchEntries: Int) throws {
        let options = ManifestOptions(
            maximumLineBytes: 100, maximumBatchEntries: batchEntries, readBytes: readBytes)
        #expect(try read(Self.mixedText, options) == Self.mixedEntries)
        let halves = Array(Self.mixedText.utf8)
        let packed = gzipped(Array(halves[..<50])) + gzipped([]) + gzipped(Array(halves[50...]))
        let result = try read(packed, options)
        #expect(result.error == nil)
        #expect(result.entries == Self.mixedEntries)
    }

    @Test func limitsBatches() throws {
        let text = (1...1000).map { "http://a.b/\($0)\n" }.joined()
        let path = try folder.file("list", text.utf8)
        var options = ManifestOptions(maximumBatchEntries: 300)
        var reader = try ManifestReader(path: path, options: options)
        var sizes: [Int] = []
        while let batch = try reader.nextBatch() {
            #expect(batch.manifest == path)
            sizes.append(batch.records.count)
        }
        #expect(sizes == [300, 300, 300, 100])
        #expect(try reader.nextBatch() == nil)
        options.maximumBatchEntries = 4096
        options.maximumBatchBytes = 100
        reader = try ManifestReader(path: path, options: options)
        while let batch = try reader.nextBatch() { #expect(batch.text.count < 120) }
    }

    @Test(arguments: ["", "\n\n", "# x", "\u{FEFF}", " \t\r\n#\n", "\u{FEFF}# x\n"])
    func findsNoEntries(text: String) throws {
        #expect(try read(text).isEmpty)
    }

    @Test(arguments: [
        ("priority=high", 10), ("priority=low", -10), ("priority=normal", 0), ("priority=100", 100),
        ("priority=-100", -100), ("priority=0", 0),
    ])
    func readsPriorities(field: String, expected: Int) throws {
        #expect(
            try read("http://a.b/ \(field)") == [ReadEntry(1, "http://a.b/", priority: expected)])
    }

    static let priorityMessage =
        "field 'priority' takes high, normal, low or -100 to 100"

    static let resizeMessage =
        "field 'resize' takes a size like 800x600, 800, x600, 800x600^, 800x600!, 800x600~#fff or 50%"
    static let knownFields =
        "known are priority, key, ttl, header, url, sha256, encode, quality, resize, crop, transform, animated, variant, variants, attr.NAME"

    @Test(
        arguments: [
            ("priority=101", priorityMessage + ", not '101'"),
            ("priority=-101", priorityMessage + ", not '-101'"),
            ("priority=", priorityMessage), ("priority=HIGH", priorityMessage + ", not 'HIGH'"),
            ("priority=1.5", priorityMessage + ", not '1.5'"),
            ("priority=99999999999999999999", priorityMessage + ", not '99999999999999999999'"),
            ("priority=1 priority=1", "duplicate field 'priority'"),
            ("key=a key=b", "duplicate field 'key'"),
            ("key=", "field 'key' takes 1 to 2048 bytes"),
            ("key=" + String(repeating: "k", count: 2049), "field 'key' takes 1 to 2048 bytes"),
            ("key=\u{85}", "field 'key' takes no control characters"),
            ("x=1", "unknown field 'x'; \(knownFields)"),
            ("attr=b", "unknown field 'attr'; did you mean 'attr.NAME'?"),
            ("Attr.a=b", "unknown field 'Attr.a'; did you mean 'attr.NAME'?"),
            ("TTL=5m", "unknown field 'TTL'; did you mean 'ttl'?"),
            ("heaer=A:b", "unknown field 'heaer'; did you mean 'header'?"),
            ("resize=1y1", resizeMessage + ", not '1y1'"),
            ("resize=0x9", resizeMessage + ", not '0x9'"),
            ("word", "text without '=' after the URL; a space in a URL is written %20"),
            ("=1", "an unknown field after the URL; \(knownFields)"),
            (
                "http://u:p@h/=1",
                "another URL behind a tab or space; a mirror is written url=URL, and another image "
                    + "has a line of its own"
            ),
            ("key=\u{1}", "the line contains a control character"),
            ("key=\u{0}", "the line contains a control character"),
            ("key=a\rb", "the line contains a control character"),
        ] as [(String, String)])
    func refusesFields(fields: String, message: String) throws {
        let entries = try read("http://a.b/ \(fields)\nhttp://a.b/2")
        #expect(entries.map(\.problem) == [message, nil])
        #expect(entries.map(\.line) == [1, 2])
    }

    @Test func keyMayHaveItsFullLength() throws {
        let key = String(repeating: "k", count: 2048)
        #expect(try read("http://a.b/ key=\(key)").first?.key == key)
    }

    @Test func refusesKeyThatIsNotUTF8() throws {
        let result = try read(Array("http://a.b/ key=".utf8) + [0xFF])
        #expect(result.entries.first?.problem == "field 'key' takes UTF-8")
    }

    @Test func resolvesAgainstBase() throws {
        let options = ManifestOptions(baseURL: "https://a.b/c/")
        #expect(
            try read("d.jpg\n../e.png priority=1\nhttp://x.y/z\n", options) == [
                ReadEntry(1, "https://a.b/c/d.jpg"), ReadEntry(2, "https://a.b/e.png", priority: 1),
                ReadEntry(3, "http://x.y/z"),
            ])
    }

    @Test func refusesBaseThatIsNotAURL() throws {
        let path = try folder.file("list", [])
        let error = #expect(throws: ManifestError.self) {
            _ = try ManifestReader(path: path, options: ManifestOptions(baseURL: "a.b"))
        }
        #expect(error?.operation == .configure)
        let masked = #expect(throws: ManifestError.self) {
            let options = ManifestOptions(baseURL: "http:/u:secret@a.b:99999/")
            _ = try ManifestReader(path: path, options: options)
        }
        #expect(
            masked?.description
                == "http:/***@a.b:99999/: the port is not a number within 0…65535")
    }

    @Test func excerptIsShortValidAndHasNoUserInformation() throws {
        var lines = [Array("x\u{1}\u{85}ä ".utf8) + [0xFF, 0]]
        lines.append(Array(("ä" + String(repeating: "äx", count: 400)).utf8))
        lines.append(Array("http://user:secret@h:99999/a".utf8))
        lines.append(Array("http:/user:secret@h:99999/a".utf8))
        lines.append(Array("http://user:sec/secret@h/a".utf8))
        lines.append(Array("user:secret@h/a".utf8))
        lines.append(Array(("http://" + String(repeating: "secret", count: 400) + "@h:x/a").utf8))
        lines.append(Array("https://h.i/@name/a.jpg word".utf8))
        let entries = try read(Array(lines.joined(separator: [0x0A]))).entries
        #expect(entries.count == lines.count)
        #expect(entries.allSatisfy { $0.problem != nil && $0.url == $0.key })
        #expect(entries[0].url == "x\u{FFFD}\u{FFFD}ä \u{FFFD}\u{FFFD}")
        #expect(entries[1].url.utf8.count == 512 || entries[1].url.utf8.count == 511)
        #expect(!entries[1].url.contains("\u{FFFD}"))
        #expect(entries[2].url == "http://***@h:99999/a")
        #expect(entries[3].url == "http:/***@h:99999/a")
        #expect(entries[4].url == "http://***@h/a")
        #expect(entries[5].url == "***@h/a")
        #expect(entries[6].url == "http://***@h:x/a")
        #expect(entries[7].url == "https://h.i/@name/a.jpg word")
    }

    @Test func lineMayHaveItsFullLength() throws {
        let options = ManifestOptions(maximumLineBytes: 20)
        let entries = try read(
            "http://a.b/345678901\nhttp://a.b/3456789012\n#\(String(repeating: "x", count: 99))\n"
                + "http://a.b/4\n", options)
        #expect(
            entries.map(\.problem) == [nil, "the line is longer than 20 B (--max-row-size)", nil])
        #expect(entries.map(\.line) == [1, 2, 4])
    }

    @Test(arguments: [[UInt8](arrayLiteral: 0xFF, 0xFE), [0xFE, 0xFF]])
    func refusesUTF16(mark: [UInt8]) throws {
        let result = try read(mark + Array("h\0t\0t\0p\0\n\0".utf8))
        #expect(result.entries.isEmpty)
        #expect(result.error?.operation == .decode)
        #expect(result.error?.message == "UTF-16 is not supported; manifests must be UTF-8")
        #expect(result.error?.hint == "convert it with iconv -f UTF-16 -t UTF-8")
    }

    @Test func refusesFoldersAndMissingFilesByName() throws {
        let directory = #expect(throws: ManifestError.self) {
            _ = try ManifestReader(path: folder.url.path)
        }
        #expect(directory?.code == EISDIR)
        #expect(directory?.description == "\(folder.url.path): is a directory")
        let missing = #expect(throws: ManifestError.self) {
            _ = try ManifestReader(path: folder.url.path + "/none")
        }
        #expect(missing?.code == ENOENT)
        #expect(missing?.operation == .open)
        #expect(missing?.description.hasSuffix("/none: No such file or directory") == true)
    }
}

@Suite(.timeLimit(.minutes(15)))
struct ManifestGzipTests {
    let folder: TemporaryFolder
    static let text = (1...500).map { "http://a.b/\($0)\n" }.joined()

    init() throws {
        folder = try TemporaryFolder()
    }

    func read(_ bytes: [UInt8]) throws -> (entries: [ReadEntry], error: ManifestError?) {
        let reader = try ManifestReader(
            path: folder.file("list", bytes), options: ManifestOptions(readBytes: 64))
        let result = reader.readAll()
        if let error = result.error {
            #expect(throws: error) { _ = try reader.nextBatch() }
        }
        return result
    }

    @Test func returnsLinesBeforeEveryCutAndAnError() throws {
        let packed = gzipped(Array(Self.text.utf8))
        for length in stride(from: 2, to: packed.count, by: 1) {
            let result = try read(Array(packed[..<length]))
            let error = try #require(result.error)
            #expect(error.operation == .inflate)
            #expect(error.message == "the gzip data ends too early")
            #expect(error.line == result.entries.count)
            #expect(result.entries.map(\.line) == Array(1..<(result.entries.count + 1)))
        }
        #expect(try read(Array(packed.dropLast())).entries.count == 500)
    }

    @Test func refusesDamage() throws {
        var packed = gzipped(Array(Self.text.utf8))
        packed[packed.count - 6] ^= 1
        let result = try read(packed)
        #expect(result.entries.count == 500)
        #expect(result.error?.message == "the gzip data is damaged (incorrect data check)")
        #expect(result.error?.description.hasSuffix(", after line 500") == true)
    }

    @Test(arguments: ["x", "xy", "http://a.b/\n", "\u{1F}", "\0\0x"])
    func refusesTextBehindTheGzipData(rest: String) throws {
        let result = try read(gzipped(Array(Self.text.utf8)) + Array(rest.utf8))
        #expect(result.entries.count == 500)
        #expect(result.error?.message == "data that is not gzip follows the gzip data")
    }

    /// As gzip(1) does.
    @Test(arguments: [1, 2, 10_000], [1, 7, 128 << 10])
    func zerosBehindTheGzipDataAreIgnored(count: Int, readBytes: Int) throws {
        let half = gzipped(Array(Self.text.utf8))
        let zeros = [UInt8](repeating: 0, count: count)
        let path = try folder.file("zeros", half + zeros)
        let options = ManifestOptions(readBytes: readBytes)
        let result = try ManifestReader(path: path, options: options).readAll()
        #expect(result.entries.count == 500)
        #expect(result.error == nil)
    }

    /// Text that was converted to CR LF twice.
    @Test(arguments: ["\n", "\r\n", "\r\r\n", "\r\r\r\n"])
    func lineEndsMayHaveSeveralReturns(end: String) throws {
        let result = try read(Array("http://a.b/1\(end)http://a.b/2 key=x\(end)\(end)".utf8))
        #expect(result.entries.map(\.problem) == [nil, nil])
        #expect(result.entries.map(\.key) == ["http://a.b/1", "x"])
    }

    @Test func bombOfOneLineIsOneBadEntry() throws {
        var bomb: [UInt8] = []
        let member = gzipped([UInt8](repeating: UInt8(ascii: "a"), count: 1 << 20))
        for _ in 0..<100 { bomb += member }
        bomb += gzipped(Array("\nhttp://a.b/2".utf8))
        let reader = try ManifestReader(path: folder.file("bomb", bomb))
        let result = reader.readAll()
        #expect(result.error == nil)
        #expect(result.entries.map(\.line) == [1, 2])
        #expect(
            result.entries.map(\.problem) == [
                "the line is longer than 16.0 MiB (--max-row-size)", nil,
            ])
    }
}

@Suite(.timeLimit(.minutes(15)))
struct ManifestPipeTests {
    /// The format of a list does not depend on the pieces in which it arrives.
    @Test(arguments: [
        "\u{FEFF}\n<urlset><image><loc>http://a.b/1</loc></image></urlset>",
        "\u{FEFF}\r\n\n<?xml version=\"1.0\"?>\n<urlset></urlset>",
        "\u{FEFF}\nurl,caption\nhttp://a.b/1,x\n", "\u{FEFF}{\"url\":\"http://a.b/1\"}\n",
        "\0\0\0\0\nhttp://a.b/1\n", "a\0\n" + String(repeating: "http://a.b/1\n", count: 300),
        "<urlset>\0</urlset>\n" + String(repeating: "\0", count: 5000),
    ])
    func piecesDoNotMatter(text: String) throws {
        let folder = try TemporaryFolder()
        func result(_ open: () throws(ManifestError) -> ManifestReader) -> String {
            do throws(ManifestError) {
                let reader = try open()
                let (entries, error) = reader.readAll()
                let format = reader.format.map { "\($0)" } ?? "none"
                return "\(format) \(entries.map(\.url)) \(error?.message ?? "")"
            } catch {
                return "none [] \(error.message)"
            }
        }
        let file = try folder.file("list", text.utf8)
        let whole = result { () throws(ManifestError) in try ManifestReader(path: file) }
        let pipe = Pipe()
        pipe.write(text)
        pipe.closeWriting()
        let pieces = result { () throws(ManifestError) in
            try ManifestReader(
                descriptor: pipe.reading, name: file, options: ManifestOptions(readBytes: 1))
        }
        #expect(pieces == whole)
    }

    /// Each write is answered by a batch before the next: a reader that waited for more would hang.
    @Test(arguments: [1, 3, 65536], [false, true])
    func deliversLinesAsTheyArrive(readBytes: Int, isPacked: Bool) throws {
        let pipe = Pipe()
        let reader = try ManifestReader(
            descriptor: pipe.reading, name: "-", options: ManifestOptions(readBytes: readBytes))
        #expect(!reader.isRegularFile)
        func encoded(_ text: String) -> [UInt8] {
            isPacked ? gzipped(Array(text.utf8)) : Array(text.utf8)
        }
        for line in 1...20 {
            pipe.write(encoded("http://a.b/\(line)\nhttp://a.b/\(line)x\n"))
            var entries: [ReadEntry] = []
            while entries.count < 2 {
                let batch = try #require(try reader.nextBatch())
                #expect(batch.manifest == "-")
                entries += batch.entries
            }
            #expect(
                entries == [
                    ReadEntry(2 * line - 1, "http://a.b/\(line)"),
                    ReadEntry(2 * line, "http://a.b/\(line)x"),
                ])
        }
        pipe.write(encoded("http://a.b/end"))
        pipe.closeWriting()
        #expect(try reader.nextBatch()?.entries == [ReadEntry(41, "http://a.b/end")])
        #expect(try reader.nextBatch() == nil)
    }

    /// The beginning of a line stays unread until its end arrives, and does not delay complete
    /// lines.
    @Test func returnsCompleteLinesBeforeAPartialOne() throws {
        let pipe = Pipe()
        let reader = try ManifestReader(descriptor: pipe.reading, name: "-")
        pipe.write("http://a.b/1\nhttp://a")
        #expect(try reader.nextBatch()?.entries == [ReadEntry(1, "http://a.b/1")])
        pipe.write(".b/2\n")
        #expect(try reader.nextBatch()?.entries == [ReadEntry(2, "http://a.b/2")])
        pipe.closeWriting()
        #expect(try reader.nextBatch() == nil)
    }

    @Test func endlessLineIsOneBadEntry() throws {
        let pipe = Pipe()
        let writer = Thread {
            let block = [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 20)
            for _ in 0..<40 { pipe.write(block) }
            pipe.write("\nhttp://a.b/2\n")
            pipe.closeWriting()
        }
        writer.start()
        let reader = try ManifestReader(descriptor: pipe.reading, name: "-")
        let result = reader.readAll()
        #expect(result.error == nil)
        #expect(result.entries.map(\.line) == [1, 2])
        #expect(result.entries[0].problem == "the line is longer than 16.0 MiB (--max-row-size)")
        #expect(result.entries[0].url.utf8.count == 512)
    }
}

import PrefetchModel
import Testing

@testable import Manifests

/// Lists with other bytes than UTF-8.
@Suite(.timeLimit(.minutes(15)))
struct EncodingTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private static let formats: [ManifestFormat] = [.text, .csv, .tsv, .jsonl]

    /// Latin-1, windows-1252, a character that is cut or too long, a surrogate.
    private static let wrong: [[UInt8]] = [
        [0xE9], [0x92], [0xC3], [0xC0, 0xAF], [0xED, 0xA0, 0x80], [0xFF], [0xF0, 0x9F, 0x98],
    ]

    /// A list with these bytes in its second entry, its line, and the bytes before them there.
    private static func list(
        _ format: ManifestFormat, _ text: [UInt8], padding: Int = 0
    ) -> (bytes: [UInt8], line: Int, position: Int) {
        let parts: (head: String, before: String, end: String) =
            switch format {
            case .text: ("https://a.example/1\n", "https://a.example/2 attr.a=", "x\n")
            case .csv: ("url,a\nhttps://a.example/1,x\n", "https://a.example/2,", "x\n")
            case .tsv: ("url\ta\nhttps://a.example/1\tx\n", "https://a.example/2\t", "x\n")
            default:
                (
                    "{\"url\":\"https://a.example/1\"}\n",
                    "{\"url\":\"https://a.example/2\",\"a\":\"", "x\"}\n"
                )
            }
        let before = parts.before + String(repeating: "ä", count: padding)
        return (
            Array(parts.head.utf8) + Array(before.utf8) + text + Array(parts.end.utf8),
            parts.head.split(separator: "\n").count + 1, before.utf8.count + 1
        )
    }

    private func notes(_ reader: ManifestReader) -> [(text: String, remedy: String)] {
        _ = reader.readAll()
        return reader.notes
    }

    @Test(arguments: formats, wrong)
    func theFirstWrongByteIsNamed(format: ManifestFormat, bytes: [UInt8]) throws {
        let (text, line, position) = EncodingTests.list(format, bytes)
        let expected =
            "1 line is not UTF-8, first line \(line) at byte \(position), "
            + "0x\(String(bytes[0], radix: 16, uppercase: true))"
        for readBytes in [1, 7, 128 << 10] {
            var options = ManifestOptions(format: format, readBytes: readBytes)
            for source in [text, gzipped(text)] {
                let file = try ManifestReader(path: folder.file("list", source), options: options)
                let found = notes(file)
                #expect(found.map(\.text) == [expected])
                #expect(found.first?.remedy.contains("iconv -f WINDOWS-1252 -t UTF-8") == true)
                let pipe = Pipe()
                pipe.write(source)
                pipe.closeWriting()
                let piped = try ManifestReader(
                    descriptor: pipe.reading, name: "-", options: options)
                #expect(notes(piped).map(\.text) == [expected])
            }
            // The same, found by the format's detection.
            options.format = .auto
            let name = "list.\(format == .text ? "txt" : format.rawValue)"
            let detected = try ManifestReader(path: folder.file(name, text), options: options)
            #expect(notes(detected).map(\.text) == [expected], "\(name)")
        }
    }

    @Test(arguments: formats)
    func otherLinesAreCounted(format: ManifestFormat) throws {
        let (text, line, _) = EncodingTests.list(format, [0xE9])
        let last = text.split(separator: 0x0A).last.map { Array($0) + [0x0A] } ?? []
        let reader = try ManifestReader(
            path: folder.file("list", text + last + last), options: ManifestOptions(format: format))
        let found = try #require(notes(reader).first?.text)
        #expect(found.hasPrefix("3 lines are not UTF-8, first line \(line) at byte "))
    }

    @Test(arguments: formats)
    func linesInUTF8AreNotNamed(format: ManifestFormat) throws {
        let characters = "é€😀\u{10FFFF}\u{FFFD}\u{7FF}\u{800}"
        for readBytes in [1, 3, 128 << 10] {
            let (text, _, _) = EncodingTests.list(format, Array(characters.utf8), padding: 300)
            let reader = try ManifestReader(
                path: folder.file("list", text),
                options: ManifestOptions(
                    format: format, maximumLineBytes: 100, readBytes: readBytes))
            #expect(notes(reader).isEmpty, "\(readBytes)")
        }
    }

    /// The pieces of a long row may divide characters.
    @Test(arguments: 0...8)
    func bytesOfLongRowsAreNamed(padding: Int) throws {
        let (text, line, position) = EncodingTests.list(.csv, [0xE9], padding: 90 + padding)
        let reader = try ManifestReader(
            path: folder.file("list", text),
            options: ManifestOptions(format: .csv, maximumLineBytes: 100, readBytes: 1))
        #expect(
            notes(reader).map(\.text) == [
                "1 line is not UTF-8, first line \(line) at byte \(position), 0xE9"
            ])
    }

    /// Sitemaps have their captions; a URL with such bytes fails.
    @Test(arguments: wrong)
    func sitemapsNameTheRemedy(bytes: [UInt8]) throws {
        let head = "<urlset><url><image><loc>https://a.example/1</loc><caption>"
        let text = Array(head.utf8) + bytes + Array("x</caption></image><image><loc>https://a".utf8)
        let file = try folder.file(
            "list.xml", text + bytes + Array("</loc></image></url></urlset>".utf8))
        let reader = try ManifestReader(path: file, options: ManifestOptions(keepsColumns: true))
        let (entries, error) = reader.readAll()
        #expect(error == nil && entries.count == 2)
        #expect(entries.first?.columns?.contains("\u{FFFD}") == true)
        #expect(entries.last?.problem?.contains("not in the sitemap's encoding") == true)
        let note = try #require(reader.notes.first)
        #expect(note.text.hasSuffix(" not in its encoding, first line 1"))
        #expect(note.remedy.contains("iconv"))
    }
}

import PrefetchModel
import Testing

@testable import Pages

@Suite(.timeLimit(.minutes(15)))
struct PictureSnippetTests {
    private func snippet(
        _ files: [(name: String, format: ImageFormat, width: Int)], caption: String = ""
    ) throws -> String {
        let digest = try #require(ContentDigest(hexadecimal: String(repeating: "0a", count: 32)))
        let files = files.map { name, format, width in
            PictureSnippet.SnippetFile(
                url: name,
                image: StoredImage(
                    digest: digest, format: format, widthInPixels: width, heightInPixels: width,
                    size: ByteCount(10)))
        }
        let snippet = PictureSnippet(
            url: "http://h/a", alternativeText: caption, colour: nil, thumbHash: nil, files: files)
        return String(decoding: snippet.bytes, as: UTF8.self)
    }

    /// The values of `srcset`, and `src` of an `<img>` without it.
    private func sources(_ html: String) -> [String] {
        html.split(separator: "<").compactMap { tag in
            let values = ["srcset", "src"].compactMap { name -> Substring? in
                guard let start = tag.firstRange(of: " \(name)=\"") else { return nil }
                return tag[start.upperBound...].prefix { $0 != "\"" }
            }
            return values.first.map(String.init)
        }
    }

    /// A browser that knows all formats takes the first source, and no format hides a wider file.
    @Test(
        arguments: [
            ([("a", .jpeg, 4), ("b", .webp, 4)], ["b", "a"]),
            ([("a", .jpeg, 8), ("b", .webp, 4)], ["b 4w, a 8w"]),
            ([("a", .jpeg, 8), ("b", .avif, 4)], ["a"]),
            ([("a", .jpeg, 4), ("b", .webp, 8)], ["b", "a"]),
            (
                [("a", .jpeg, 8), ("b", .webp, 8), ("c", .avif, 4), ("d", .jpegXL, 9)],
                ["d", "b", "a"]
            ),
            ([("a", .jpeg, 4), ("b", .jpeg, 8), ("c", .jpeg, 4)], ["a 4w, b 8w"]),
            ([("a", .png, 8), ("b", .jpeg, 4)], ["b 4w, a 8w"]),
            ([("a", .avif, 8), ("b", .webp, 4)], ["a", "b"]),
            ([("a", .svg, 0)], ["a"]), ([("a", .svg, 9), ("b", .png, 4)], ["a"]),
            ([("b", .png, 4), ("a", .svg, 0)], ["a"]), ([("a", .svg, 0), ("b", .webp, 4)], ["a"]),
            ([("a", .tiff, 8), ("b", .jpeg, 4)], ["b"]), ([("a", .tiff, 8)], ["a"]),
        ] as [([(String, ImageFormat, Int)], [String])])
    func noFileIsHidden(_ files: [(String, ImageFormat, Int)], _ expected: [String]) throws {
        let html = try snippet(files)
        #expect(sources(html) == expected, "\(html)")
        #expect(!html.contains(" 0w"))
    }

    @Test(arguments: [
        ("two\nlines\r\n and\u{2028}more\u{0}", "two lines  and more "),
        ("a\u{202E}b\u{2066}", "a&#x202E;b&#x2066;"), ("👩\u{200D}👧", "👩\u{200D}👧"),
        ("\"<&>", "&quot;&lt;&amp;&gt;"),
    ])
    func captionsAreOneLineOfVisibleCharacters(_ caption: String, _ written: String) throws {
        let html = try snippet([("a", .png, 4)], caption: caption)
        #expect(html.contains("alt=\"\(written)\""), "\(html)")
        #expect(html.unicodeScalars.count { $0 == "\n" } == 1)
    }
}

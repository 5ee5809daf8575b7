import PrefetchModel
import Testing

@testable import Exporting

@Suite(.timeLimit(.minutes(15))) struct NamePatternTests {
    private func path(_ pattern: String, _ image: ExportedImage) throws -> String? {
        let rules = try ExportRules.fixture(.pattern) { $0.pattern = try NamePattern(pattern) }
        return ExportPlan.path(of: image, rules)
    }

    private func image() throws -> ExportedImage {
        .fixture(
            "https://e.example:81/a/b%2Fc/one.two.JPG?w=2", number: 7, key: "sku/../12",
            variant: "web", stored: .fixture(0xAB, format: .webp),
            attributes: [try EntryAttribute(name: "class", value: Array("cat/dog".utf8))],
            columns: #"{"page":"https://p.example/","rank":3,"none":null}"#)
    }

    @Test(arguments: [
        ("{host}/{stem}-{variant}-{width}w.{ext}", "e.example:81/one.two-web-640w.webp"),
        ("{dir}/{name}", "a/b%2Fc/one.two.JPG"), ("x{dir}y", "xa/b%2Fcy"),
        ("{format}/{height}{query}", "webp/480w=2"), ("{key}", "sku%2F..%2F12"),
        ("{sha256:8}.{ext}", "abababab.webp"), ("{n}_{n:6}", "7_000007"),
        ("{attr.class}", "cat%2Fdog"), ("{column.page}", "https:%2F%2Fp.example%2F"),
        ("{column.rank}", "3"), ("{{{n}}}", "{7}"), (".{n}/.", nil), ("{n}/a", "7/a"),
        ("{attr.other}", nil), ("{column.none}", nil), ("{column.other}", nil),
    ])
    func makesNames(_ pattern: String, _ expected: String?) throws {
        // A pattern with a dot as a name is a mistake.
        guard !pattern.hasSuffix("/.") else {
            #expect(throws: UserError.self) { try NamePattern(pattern) }
            return
        }
        #expect(try path(pattern, image()) == expected)
    }

    @Test(arguments: [
        ("", "it names no file"), ("a/", "it names no file"),
        ("/a", "it must be a relative path without '.' and '..'"),
        ("../{n}", "it must be a relative path without '.' and '..'"), ("{n", "a field has no '}'"),
        ("n}", "a '}' has no field; for a brace write '}}'"),
        ("{sha256:65}", "{sha256:N} takes a number of digits from 1 to 64"),
        ("{n:0}", "{n:N} takes a number of digits from 1 to 18"),
        (
            "{size}",
            "unknown field '{size}'; known are host, dir, name, stem, query, ext, format, variant, "
                + "width, height, key, sha256, n, attr.NAME, column.NAME"
        ),
    ])
    func refusesMistakes(_ pattern: String, _ message: String) throws {
        let mistake = #expect(throws: UserError.self) { try NamePattern(pattern) }
        #expect(mistake?.message == message)
    }

    /// Two values together must not make a dot-dot.
    @Test func checksWholeNames() throws {
        let image = ExportedImage.fixture("https://e.example/.?.", key: ".")
        #expect(try path("{key}{query}/{n}", image) == "%2E%2E/1")
    }

    @Test func unknownWidthHasNoName() throws {
        let stored = StoredImage(
            digest: StoredImage.fixture().digest, format: .svg, widthInPixels: 0, heightInPixels: 0,
            size: ByteCount(1))
        #expect(try path("{width}", .fixture("https://e.example/a.svg", stored: stored)) == nil)
    }
}

import PrefetchModel
import Testing

@testable import Manifests

/// Values in quotation marks, in text lists.
@Suite(.timeLimit(.minutes(15)))
struct QuotedFieldTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    func entry(_ fields: String) throws -> ReadEntry {
        let (entries, error) = try folder.read("http://a.b/ \(fields)".utf8, .text)
        #expect(error == nil)
        return try #require(entries.first)
    }

    @Test(arguments: [
        (#""""#, ""), (#""a b""#, "a b"), (#""a # b""#, "a # b"), (#""a \"b\" c""#, #"a "b" c"#),
        (#""a\\""#, #"a\"#), (#""a\b""#, #"a\b"#), (#"a"b"#, #"a"b"#), ("\"a\tb\"  # c", "a\tb"),
    ])
    func quotedValuesMayHaveSpaces(text: String, value: String) throws {
        let entry = try entry("attr.a=\(text) priority=3")
        #expect(
            entry.extras?.attributes.map { String(decoding: $0.value, as: UTF8.self) } == [value])
        if !text.contains("#  c") { #expect(entry.problem == nil) }
    }

    @Test func headersMayHaveSpaces() throws {
        let entry = try entry(#"header="Authorization: Bearer T" header=A:b"#)
        #expect(entry.extras?.headers.map(\.value) == ["Bearer T", "b"])
    }

    @Test(arguments: [
        (#"key="a"#, "field 'key': its closing quotation mark is missing"),
        (#"key="a\""#, "field 'key': its closing quotation mark is missing"),
        (#"key="a"b"#, "field 'key': text follows the closing quotation mark"),
        (#"="a"#, "a field: its closing quotation mark is missing"),
        (#"key="""#, "field 'key' takes 1 to 2048 bytes"),
    ])
    func badQuotesAreBadLines(fields: String, problem: String) throws {
        #expect(try entry(fields).problem == problem)
    }
}

import PrefetchModel
import Testing

@testable import URLParsing

/// Sources besides HTTP, which only lists may name.
@Suite struct LocalSchemeTests {
    @Test(arguments: [
        ("data:image/gif;base64,R0lG", "data:image/gif;base64,R0lG"),
        ("DATA:,a b|", "data:,a%20b%7C"),
        ("data:image/png;base64,a+/b==", "data:image/png;base64,a+/b=="),
        ("file:///a/b.png", "file:///a/b.png"), ("FILE:/a/b.png", "file:///a/b.png"),
        ("file://localhost/a b.png", "file:///a%20b.png"),
        ("file://LocalHost/a.png", "file:///a.png"),
        ("file:///a/./x/../b.png", "file:///a/b.png"),
        ("file:///%7Ea/%2e%2E/b?c#d", "file:///b"), ("file:///../../b", "file:///b"),
    ])
    func isNormalized(text: String, url: String) throws {
        let parser = try URLParser(baseURL: nil, allowing: [.data, .file])
        let parsed = try parser.parse(text.utf8)
        #expect(parsed.text == url)
        #expect(try parser.parse(parsed.text.utf8) == parsed)
        #expect(parsed.isLocal && !parsed.isEncrypted && parsed.credentials == nil)
        #expect(parsed.withoutCredentials == parsed && parsed.host.isEmpty)
        #expect(parsed.origin == (url.hasPrefix("data:") ? "data://" : "file://"))
        // A base does not matter.
        let based = try URLParser(baseURL: "http://a.b/", allowing: [.data, .file])
        #expect(try based.parse(text.utf8) == parsed)
    }

    @Test(arguments: [
        "data:image/gif;base64", "data:" + String(repeating: "a", count: 70_000) + ",",
        "file://host/a", "file:a", "file:////host/a", "file://", "file:///a\u{0}b", "fil:///a",
        "dat:,a",
    ])
    func isRefused(text: String) throws {
        let parser = try URLParser(baseURL: nil, allowing: [.data, .file])
        #expect(throws: URLParsingError.self) { try parser.parse(text.utf8) }
    }

    /// Neither redirects nor parsers without the permission take them.
    @Test(arguments: ["data:,a", "file:///etc/passwd"])
    func onlyListsNameThem(text: String) throws {
        let listed = RequestURL(normalized: "http://a.b/c")
        for schemes in [[], LocalSchemes.data, .file, [.data, .file]] {
            let parser = try URLParser(baseURL: nil, allowing: schemes)
            #expect(throws: URLParsingError.self) {
                try parser.parse(text.utf8, relativeTo: listed)
            }
            let isAllowed = schemes.contains(text.hasPrefix("data") ? .data : .file)
            #expect(((try? parser.parse(text.utf8)) != nil) == isAllowed)
        }
    }

    /// The flag does not help in lists by URL.
    @Test(arguments: [[], LocalSchemes.data, [.data, .fileByFlag]])
    func aFileNamesTheFlagWhereItHelps(schemes: LocalSchemes) throws {
        let parser = try URLParser(baseURL: nil, allowing: schemes)
        let error = #expect(throws: URLParsingError.self) { try parser.parse("file:///a".utf8) }
        #expect(error?.message.contains("'file'") == true)
        #expect(error?.message.contains("--files-below") == schemes.contains(.fileByFlag))
    }
}

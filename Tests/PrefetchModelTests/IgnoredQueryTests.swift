import PrefetchModel
import Testing

@Suite struct IgnoredQueryTests {
    @Test(
        arguments: [
            ("*", "http://h/a?b=1&c", "http://h/a"), ("*", "http://h/a", nil),
            ("*", "http://h/a?", "http://h/a"),
            ("token", "http://h/a?token=1", "http://h/a"),
            ("token", "http://h/a?w=2&token=1&h=3", "http://h/a?w=2&h=3"),
            ("token", "http://h/a?tokens=1&Token=2", nil),
            ("token", "http://h/a?token&token=", "http://h/a"),
            ("utm_*,sig", "http://h/a?utm_source=x&w=2&utm_=1&sig=%3D", "http://h/a?w=2"),
            ("token", "http://h/a?w=?token=1", nil),
            ("token", "http://h/a?w=1&&token=2", "http://h/a?w=1&"),
        ] as [(String, String, String?)])
    func removesParameters(names: String, url: String, expected: String?) throws {
        let query = try #require(IgnoredQuery(names))
        #expect(
            query.removed(from: url.utf8).map { String(decoding: $0, as: UTF8.self) } == expected)
        #expect(query.areEqual(url, expected ?? url))
        #expect(!query.areEqual(url, "http://h/b"))
    }

    @Test(arguments: ["", ",", "a,", "a*b", "**", "a=1", "a&b"])
    func refusesOtherNames(text: String) {
        #expect(IgnoredQuery(text) == nil)
    }

    @Test func nothingIsRemovedWithoutNames() {
        #expect(IgnoredQuery.none.removed(from: "http://h/a?b".utf8) == nil)
        #expect(!IgnoredQuery.none.areEqual("http://h/a?b", "http://h/a"))
    }
}

import PrefetchModel
import Testing

@Suite(.timeLimit(.minutes(15)))
struct HostTableTests {
    @Test(
        arguments: [
            ("example.com", "example.com", true), ("Example.COM", "example.com", true),
            ("example.com", "a.example.com", false), ("*.example.com", "a.b.example.com", true),
            ("*.example.com", "example.com", false), ("*", "", true), ("*", "a", true),
            ("a*b*c", "abc", true), ("a*b*c", "a-b-b-c", true), ("a*b*c", "acb", false),
            ("a*", "ba", false), ("**a", "bba", true), ("[::1]", "[::1]", true),
        ] as [(String, String, Bool)])
    func matchesNames(pattern: String, host: String, matches: Bool) throws {
        let pattern = try #require(HostPattern(pattern))
        #expect(pattern.matches(Array(host.utf8)[...]) == matches)
    }

    @Test(arguments: ["", "a/b", "http://a", "a b", "a,b", "\u{E9}"])
    func refusesOtherTexts(text: String) {
        #expect(HostPattern(text) == nil)
    }

    @Test(
        arguments: [
            ("http://a.b/c", "a.b"), ("https://u:p@a.b:8080/c?d@e", "a.b"), ("http://a.b", "a.b"),
            ("http://[::1]:80/", "[::1]"), ("http://a.b?c:d", "a.b"), ("", ""),
        ] as [(String, String)])
    func findsTheHost(url: String, host: String) {
        #expect(HostPattern.host(in: Array(url.utf8)[...]) == Array(host.utf8)[...])
    }

    @Test func theMostSpecificPatternCountsThenTheFirst() throws {
        func row(_ pattern: String, _ value: Int) throws -> (HostPattern, Int) {
            (try #require(HostPattern(pattern)), value)
        }
        let table = HostTable([
            try row("*", 1), try row("*.b", 2), try row("x.b", 3), try row("*.b", 4),
        ])
        #expect(table[hostIn: "http://x.b/1"] == 3)
        #expect(table[hostIn: "https://y.b:81"] == 2)
        #expect(table[hostIn: "http://u:p@c/y.b"] == 1)
        #expect(table.map { $0 * 10 }[hostIn: "http://x.b/"] == 30)
        #expect(HostTable<Int>()[hostIn: "http://x.b/"] == nil)
    }
}

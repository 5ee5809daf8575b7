import PrefetchModel
import Testing

@Suite(.timeLimit(.minutes(15)))
struct HostTableTests {
    @Test(
        arguments: [
            ("example.com", "example.com", true), ("Example.COM", "example.com", true),
            ("example.com", "a.example.com", false), ("*.example.com", "a.b.example.com", true),
            ("*.example.com", "example.com", false), ("*", "a", true),
            ("a*b*c", "abc", true), ("a*b*c", "a-b-b-c", true), ("a*b*c", "acb", false),
            ("a*", "ba", false), ("**a", "bba", true), ("[::1]", "[::1]", true),
            ("a:8080", "a:8080", true), ("a:8080", "a", false), ("a:8080", "a:80", false),
            ("a", "a:8080", true), ("a:80", "a", true), ("a:443", "a", false),
            ("*.a:81", "b.a:81", true), ("*:81", "b.a:81", true), ("*:81", "b.a:18", false),
            ("[::1]:81", "[::1]:81", true), ("[::1]:81", "[::1]", false),
            ("[2001:db8:*]", "[2001:db8::1]:9", true),
        ] as [(String, String, Bool)])
    func matchesNames(pattern: String, host: String, matches: Bool) throws {
        let pattern = try #require(HostPattern(pattern))
        let place = HostPattern.place(in: Array("http://\(host)/x".utf8)[...])
        #expect(pattern.matches(place) == matches)
    }

    @Test(arguments: [
        "", "a/b", "http://a", "a b", "a,b", "\u{E9}", "a:", "a:b", "a:0", "a:65536", "a:+8", ":80",
        "::1", "a:*", "[::1", "a]", "[::1]x", "[::1]:", "[a/]",
    ])
    func refusesOtherTexts(text: String) {
        #expect(HostPattern(text) == nil)
    }

    @Test(
        arguments: [
            ("http://a.b/c", "a.b", 80), ("https://u:p@a.b:8080/c?d@e", "a.b", 8080),
            ("https://a.b", "a.b", 443), ("http://[::1]:81/", "[::1]", 81),
            ("https://[::1]", "[::1]", 443), ("http://a.b?c:d", "a.b", 80), ("", "", nil),
        ] as [(String, String, Int?)])
    func findsHostAndPort(url: String, host: String, port: Int?) {
        let place = HostPattern.place(in: Array(url.utf8)[...])
        #expect(place.name == Array(host.utf8)[...])
        #expect(place.port == port)
    }

    @Test func theMostSpecificPatternCountsThenTheFirst() throws {
        func row(_ pattern: String, _ value: Int) throws -> (HostPattern, Int) {
            (try #require(HostPattern(pattern)), value)
        }
        let table = HostTable([
            try row("*", 1), try row("*.b", 2), try row("x.b", 3), try row("*.b", 4),
            try row("*.b:82", 5), try row("x.b:443", 6),
        ])
        #expect(table[hostIn: "http://x.b:82/1"] == 5)
        #expect(table[hostIn: "https://x.b/1"] == 6)
        #expect(table[hostIn: "http://x.b/1"] == 3)
        #expect(table[hostIn: "https://y.b:81"] == 2)
        #expect(table[hostIn: "http://u:p@c/y.b"] == 1)
        #expect(table.map { $0 * 10 }[hostIn: "http://x.b/"] == 30)
        #expect(HostTable<Int>()[hostIn: "http://x.b/"] == nil)
    }
}

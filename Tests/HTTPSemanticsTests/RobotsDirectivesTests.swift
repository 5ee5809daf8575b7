import HTTPSemantics
import PrefetchModel
import Testing

@Suite struct RobotsDirectivesTests {
    @Test(
        arguments: [
            (["noai"], "noai"), (["NoAI, noimageai"], "noai"), (["noindex,noimageai"], "noimageai"),
            (["noindex"], nil), (["noaix"], nil), ([""], nil), ([], nil),
            (["otherbot: noai"], nil), (["otherbot: noindex, noai"], nil),
            (["prefetch: noai"], "noai"), (["*: noai"], "noai"),
            (["otherbot: noindex, prefetch: noai"], "noai"),
            (["max-snippet: 20, noai"], "noai"),
            (["unavailable_after: 25 Jun 2030 15:00:00 PST, noai"], "noai"),
            (["unavailable_after: Sun, 01 Sep 2030 12:34:56 GMT, noai"], "noai"),
            (["otherbot: noindex", "noai"], "noai"),
        ] as [([String], String?)])
    func findsDirectives(values: [String], expected: String?) throws {
        let directives = try #require(RobotsDirectives("noai,noimageai"))
        let fields = values.map { HeaderField(name: "X-Robots-Tag", value: $0) }
        #expect(directives.first(in: fields) == expected)
        #expect(RobotsDirectives.none.first(in: fields) == nil)
    }

    @Test func namesAreSortedAndInLowerCase() {
        #expect(RobotsDirectives("NoImageAI,noai,noai")?.names == ["noai", "noimageai"])
    }

    @Test(arguments: ["", ",", "noai,", "no ai", "noai:x", "nöai"])
    func refusesOtherTexts(text: String) {
        #expect(RobotsDirectives(text) == nil)
    }
}

import Testing

@testable import PrefetchModel

@Suite(.timeLimit(.minutes(15)))
struct ResponseRulesTests {
    @Test(arguments: ["404", "404,500-502", "100-599", "200-200"])
    func statusesRoundTrip(text: String) throws {
        let set = try #require(StatusSet(text))
        #expect(StatusSet(set.description) == set)
    }

    @Test(arguments: [
        "", "99", "600", "404,", "40x", "6xx", "4xx-5xx", "4xxx", "500-400", "4-5-6", "+404",
        " 404", "0404",
    ])
    func refusesOtherStatuses(text: String) {
        #expect(StatusSet(text) == nil)
    }

    @Test func rangesHaveBothEnds() throws {
        let set = try #require(StatusSet("404,500-502"))
        #expect((100...599).filter(set.contains) == [404, 500, 501, 502])
        #expect(StatusSet("4xx,503") == StatusSet("400-499,503"))
        #expect((100...599).allSatisfy { !StatusSet.none.contains($0) })
    }

    @Test(
        arguments: [
            ("image/*", "image/png", true), ("image/*", "IMAGE/PNG; charset=x", true),
            ("image/png,image/webp", "image/webp", true), ("image/png", "image/jpeg", false),
            ("image/*", "text/html", false), ("image/*", nil, false), ("*/*", "a/b", true),
            ("image/*", "imagex/png", false), ("image/svg+xml", "image/svg+xml", true),
        ] as [(String, String?, Bool)])
    func typesMatch(list: String, value: String?, matches: Bool) throws {
        let types = try #require(MediaTypes(list))
        #expect(types.contain(value) == matches)
        var rules = ResponseRules()
        rules.acceptedTypes = types
        #expect((rules.refusal(ofType: value) == nil) == matches)
        #expect(ResponseRules().refusal(ofType: value) == nil)
    }

    @Test(arguments: ["", "image", "image/", "/png", "a/b/c", "image/png,", "image/p\u{F6}g"])
    func refusesOtherTypes(text: String) {
        #expect(MediaTypes(text) == nil)
    }

    @Test func hitsOfCachesAreSeen() {
        #expect(CacheStatus(age: 1, text: nil).isHit)
        #expect(CacheStatus(age: 0, text: "TCP_HIT from edge").isHit)
        #expect(!CacheStatus(age: 0, text: "Miss from cloudfront").isHit)
        #expect(!CacheStatus(age: nil, text: nil).isHit)
    }
}

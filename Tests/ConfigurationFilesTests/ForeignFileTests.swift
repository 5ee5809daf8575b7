import Testing

@testable import ConfigurationFiles

/// Files of a project that may be a stranger's.
@Suite(.timeLimit(.minutes(15)))
struct ForeignFileTests {
    private static let refused = [
        "proxy = 'http://evil.example'", "deny-private = false", "cache-dir = '/home/a/.ssh'",
        "header = '@/home/a/.netrc'", "header = ['A: b', '@secrets']",
        "header = 'Authorization: Bearer x'", "header = 'cookie:a=b'", "header = ' COOKIE : a'",
        "prune = 'unlisted-for=1s'", "[prune]\nunlisted-for = '1s'", "[prune]\ngone = true",
        "[profile.p]\nproxy = 'http://evil.example'", "[profile.p]\nheader = '@x'",
        "[list.a]\nfile = '/etc/passwd'", "[list.a]\nfile = '../x'", "[list.a]\nfile = 'b/../../x'",
        "[list.a]\nfile = ['a', '..']", "'proxy' = 'x'", "\"\\u0070roxy\" = 'x'",
        "prune.gone = true",
        "[host.'*']\nheader = 'Authorization: x'", "profile.p.proxy = 'x'",
        "profile = {p = {proxy = 'x'}}",
    ]

    @Test(arguments: refused)
    func refusesTheKey(text: String) throws {
        let foreign = ConfigurationFile(text, isForeign: true)
        let problem = try #require(foreign.problems.first)
        #expect(foreign.problems.count == 1 && foreign.settings.allSatisfy { $0.key != "proxy" })
        #expect(problem.message.hasPrefix("a project's file may not set '"), "\(problem)")
        #expect(problem.hint == "--trust-project-config allows it")
        #expect(ConfigurationFile(text).problems == [])
    }

    @Test func theMessageNamesKeyAndLine() {
        let file = ConfigurationFile("jobs = 1\nheader = '@/x'", isForeign: true)
        #expect(
            file.problems.map(\.description) == [
                "c.toml:2: a project's file may not set 'header' to credentials"
            ])
    }

    @Test func allowsHarmlessKeys() {
        let file = ConfigurationFile(
            """
            jobs = 4
            header = ["Referer: https://example.com/", "Accept: image/webp"]
            [variant.small]
            resize = "64x64"
            [list.shop]
            file = ["lists/shop.csv", "..a"]
            base-url = "https://example.com/"
            """, isForeign: true)
        #expect(file.problems == [] && file.settings.count == 5)
    }
}

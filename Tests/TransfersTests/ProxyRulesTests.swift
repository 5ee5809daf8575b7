import PrefetchModel
import Testing

@testable import Transfers

@Suite(.timeLimit(.minutes(15)))
struct ProxyRulesTests {
    @Test(arguments: [
        // List, URL, whether the connection is direct.
        ("", "http://a.b/", false), ("*", "http://a.b/", true), ("*,x", "http://a.b/", false),
        ("a.b", "http://a.b/", true), ("A.B", "http://a.b:8080/", true),
        ("a.b", "https://x.a.b/", true), (".a.b", "http://a.b/", true),
        (".a.b", "http://x.a.b/", true), ("a.b.", "http://a.b/", true),
        ("a.b", "http://a.b./", true), ("a.b", "http://xa.b/", false),
        ("b", "http://a.b/", true), ("x, a.b ,y", "http://a.b/", true),
        ("x a.b y", "http://a.b/", true), (",,a.b", "http://a.b/", true),
        ("10.0.0.0/8", "http://10.1.2.3/", true), ("10.0.0.0/8", "http://11.1.2.3/", false),
        ("10.0.0.0/8", "http://0xa010203/", true),
        ("192.168.128.0/17", "http://192.168.127.1/", false),
        ("192.168.128.0/17", "http://192.168.128.1/", true), ("10.0.0.1", "http://10.0.0.1/", true),
        ("10.0.0.1/0", "http://10.0.0.2/", false), ("10.0.0.1/33", "http://10.0.0.1/", false),
        ("0.0.1", "http://10.0.0.1/", false), ("10.0.0.0/8", "http://10.name.test/", false),
        ("::1", "http://[::1]/", true), ("[::1]", "http://[::1]:80/", true),
        ("fd00::/8", "http://[fd12::1]/", true), ("fd00::/8", "http://[fe12::1]/", false),
        ("::1", "http://[::1%25lo]/", true), ("fe80::/10", "http://[fe80::1%25eth0]:81/", true),
        ("fd00::/8", "http://10.0.0.1/", false), ("a.b", "http://a.b@c.d/", false),
        ("a.b", "HTTP://u:p@A.B/", true),
    ])
    func matchesExceptionsLikeLibcurl(list: String, url: String, isDirect: Bool) {
        let rules = ProxyRules(ProxySettings(explicit: "p:1", exceptions: list))
        #expect(rules.proxy(for: RequestURL(parsing: url)) == (isDirect ? nil : "p:1"))
    }

    @Test func eachSchemeHasItsProxy() {
        var settings = ProxySettings()
        settings.http = "plain:1"
        let rules = ProxyRules(settings)
        #expect(rules.proxy(for: RequestURL(parsing: "http://a/")) == "plain:1")
        #expect(rules.proxy(for: RequestURL(parsing: "https://a/")) == nil)
        #expect(rules.proxy(for: RequestURL(parsing: "HTTPS://a/")) == nil)
    }
}

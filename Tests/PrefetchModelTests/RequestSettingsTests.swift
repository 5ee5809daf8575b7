import Testing

@testable import PrefetchModel

@Suite(.timeLimit(.minutes(15)))
struct RequestSettingsTests {
    @Test(arguments: [
        ("X-A: b", "X-A", "b"), ("X-A:b", "X-A", "b"), ("X-A: \t b c \t", "X-A", "b c"),
        ("X-A:", "X-A", ""), ("X-A:  ", "X-A", ""), ("a: b: c", "a", "b: c"),
        ("!#$%&'*+-.^_`|~09: ü", "!#$%&'*+-.^_`|~09", "ü"),
        ("Cookie: a=b; c=d", "Cookie", "a=b; c=d"),
        ("Authorization: Bearer x", "Authorization", "Bearer x"),
        ("Referer: a\tb", "Referer", "a\tb"),
    ])
    func parsesHeaderFields(line: String, name: String, value: String) throws {
        #expect(try HeaderField(requestLine: line) == HeaderField(name: name, value: value))
    }

    @Test(
        arguments: [
            ("", colon), ("X-A", colon), ("X-A;", colon), (": a", name),
            ("X A: b", name),
            (" X: b", name), ("X : b", name), ("ä: b", name), ("X\r: b", name),
            ("X(: b", name),
            ("X: a\r\nY: b", value), ("X: a\nb", value), ("X: \u{0}", value),
            ("X: \u{7F}", value),
            ("Range: bytes=0-1", "the header 'range' "), ("RANGE:", "the header 'range' "),
            ("If-None-Match: *", "the header 'if-none-match' "), ("Host: a", "the header 'host' "),
            ("Connection: close", "the header 'connection' "),
            ("Content-Length: 3", "the header 'content-length' "),
            ("Transfer-Encoding: chunked", "the header 'transfer-encoding' "),
            ("Accept-Encoding: br", "the header 'accept-encoding' "),
            ("Proxy-Authorization: x", "the header 'proxy-authorization' "),
        ])
    func rejectsInvalidHeaderFields(line: String, message: String) {
        let error = #expect(throws: UserError.self) { try HeaderField(requestLine: line) }
        #expect(error?.message.hasPrefix(message) == true)
    }

    private static let colon = "a header is written 'Name: value'"
    private static let name = "a header's name is not made of letters"
    private static let value = "a header's value has a control character"

    @Test func laterFieldsReplaceEarlierOnes() {
        let fields = [HeaderField(name: "A", value: "1"), HeaderField(name: "B", value: "1")]
        let others = [HeaderField(name: "b", value: "2"), HeaderField(name: "b", value: "3")]
        #expect(fields.replaced(by: []) == fields)
        #expect(fields.replaced(by: others) == [fields[0]] + others)
    }

    @Test func parsesCredentials() {
        #expect(Credentials(text: "a:b:c")?.user == "a")
        #expect(Credentials(text: "a:b:c")?.password == "b:c")
        #expect(Credentials(text: "a:")?.password == "")
        #expect(Credentials(text: ":p")?.user == "")
        #expect(Credentials(text: "a") == nil)
        #expect(Credentials(text: "a:b\n") == nil)
    }

    @Test(arguments: [
        "a:80:127.0.0.1", "A-b.c_d:65535:1.2.3.4,5.6.7.8", "*:443:::1", "a:1:[::1]",
        "a:1:[::1],1.2.3.4", "1.2.3.4:80:127.0.0.1",
    ])
    func parsesHostAddresses(text: String) {
        #expect(HostAddresses(text: text)?.text == text)
    }

    @Test(arguments: [
        "", "a", "a:80", "a:80:", ":80:1.2.3.4", "a:0:1.2.3.4", "a:65536:1.2.3.4", "a:x:1.2.3.4",
        "a:+1:1.2.3.4", "a:80:1.2.3", "a:80:name", "a:80:1.2.3.4,", "a:80:[::1", "+a:80:1.2.3.4",
        "-a:80", "a b:80:1.2.3.4", "a:80:0x7f.0.0.1", "a:80:1.2.3.4 ", "ä:80:1.2.3.4",
    ])
    func rejectsInvalidHostAddresses(text: String) {
        #expect(HostAddresses(text: text) == nil)
    }

    @Test(arguments: [
        "proxy", "proxy:8080", "http://proxy", "HTTPS://proxy:1/", "socks5h://u:p@proxy:1080",
        "http://u:p@ss@proxy:1", "[::1]:80", "socks4://[::1]", "http://u:p/w@proxy:1",
    ])
    func acceptsValidProxies(text: String) {
        #expect(ProxySettings.isProxy(text))
    }

    @Test(arguments: [
        "", "http://", "ftp://proxy", "proxy:", "proxy:0", "proxy:65536", "proxy:x", "a b",
        "http://u:p@", "[::1", "[::1]x", "http://proxy/path", "http://proxy?x", "a\nb", "://proxy",
    ])
    func rejectsInvalidProxies(text: String) {
        #expect(!ProxySettings.isProxy(text))
    }

    @Test func readsProxiesFromEnvironment() {
        let all = [
            "http_proxy": "a", "HTTP_PROXY": "b", "https_proxy": "c", "HTTPS_PROXY": "d",
            "all_proxy": "e", "ALL_PROXY": "f", "no_proxy": "g", "NO_PROXY": "h",
        ]
        func settings(_ names: String..., explicit: String? = nil) -> ProxySettings {
            ProxySettings(explicit: explicit) { names.contains($0) ? all[$0] : nil }
        }
        let both = settings("http_proxy", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY")
        #expect(both.http == "a")
        #expect(both.https == "c")
        #expect(both.exceptions == "g")
        #expect(settings("HTTP_PROXY").http == nil)
        #expect(settings("HTTPS_PROXY", "ALL_PROXY").https == "d")
        #expect(settings("ALL_PROXY").http == "f")
        #expect(settings("all_proxy", "ALL_PROXY").https == "e")
        #expect(settings("NO_PROXY").exceptions == "h")
        #expect(settings("http_proxy", "https_proxy", explicit: "x").https == "x")
        #expect(settings("http_proxy", "https_proxy", explicit: "").http == nil)
        #expect(ProxySettings { $0 == "http_proxy" ? "" : all[$0] }.http == "e")
    }
}

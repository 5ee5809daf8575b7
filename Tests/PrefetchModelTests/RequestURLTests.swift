import PrefetchModel
import Testing

@Suite(.timeLimit(.minutes(15)))
struct RequestURLTests {
    @Test(arguments: [
        ("http://h/a", "http://h", "h"), ("https://u:p@h:8443/a@b?c@d", "https://h:8443", "h"),
        ("http://[::1]:81/", "http://[::1]:81", "[::1]"),
        ("http://u@[::1]/", "http://[::1]", "[::1]"),
        ("https://h/?http://x:1/", "https://h", "h"), ("http://h./", "http://h.", "h."),
    ])
    func splitsOriginAndHost(text: String, origin: String, host: String) {
        let url = RequestURL(normalized: text)
        #expect(url.origin == origin)
        #expect(url.host == host)
        #expect(url.isEncrypted == text.hasPrefix("https:"))
    }

    @Test(arguments: [
        ("http://user:pw@h/a", "user:pw", "http://h/a"), ("http://u@h/x@y", "u", "http://h/x@y"),
        ("http://:p@h/", ":p", "http://h/"), ("http://h/x@y", nil, "http://h/x@y"),
        ("http://h/?a@b", nil, "http://h/?a@b"),
    ])
    func separatesCredentials(text: String, credentials: String?, rest: String) {
        let url = RequestURL(normalized: text)
        #expect(url.credentials.map(String.init) == credentials)
        #expect(url.withoutCredentials.text == rest)
        #expect(url.withoutCredentials.withCredentials(of: url).text == text)
    }

    @Test func keepsItsOwnCredentials() {
        let own = RequestURL(normalized: "http://a:b@h/x")
        let other = RequestURL(normalized: "http://c:d@h/y")
        #expect(own.withCredentials(of: other) == own)
        #expect(own.withCredentials(of: RequestURL(normalized: "http://h/")) == own)
    }

    @Test func descriptionMasksSecrets() {
        let url = RequestURL(normalized: "http://u:secret@h/?token=secret")
        #expect("\(url)" == "http://***@h/?token=***")
    }

    /// Values that a damaged file may contain.
    @Test(arguments: [
        "", "h", "http:", "http:/", "http://", "@", "http://@", "http://[/", "é://é@é",
    ])
    func acceptsAnyTextWithoutTrapping(text: String) {
        let url = RequestURL(normalized: text)
        _ = (url.origin, url.host, url.credentials, url.withoutCredentials, url.description)
        _ = url.withCredentials(of: RequestURL(normalized: "http://u@h/"))
    }
}

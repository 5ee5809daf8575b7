import Testing

@testable import PrefetchModel

@Suite struct StoredURLsTests {
    /// The query, and a mirror of the line, may differ; nothing else may.
    @Test(arguments: [
        ("https://a.example/1.png", true), ("https://a.example/1.png?x=1", true),
        ("https://a.example/1.png?sig=1&b", true), ("https://m.example/1.png", true),
        ("https://m.example/1.png?sig=2", true), ("https://a.example/1.pn", false),
        ("https://a.example/1.png/", false), ("https://a.example/2.png?sig=1", false),
        ("http://a.example/1.png", false), ("https://a.example:8443/1.png", false),
        ("https://b.example/1.png", false), ("https://a.example/?1.png", false), ("", false),
    ])
    func imagesOfAnEntryHaveItsPath(stored: String, isOwn: Bool) {
        let mirrors = [RequestURL(normalized: "https://m.example/1.png")]
        for url in ["https://a.example/1.png?sig=1", "https://u:p@a.example/1.png"] {
            let url = RequestURL(normalized: url)
            // The line's URL stays its own, whichever mirror delivered the image.
            for other in [stored, "https://old.example/9.png"] {
                for urls in [
                    StoredURLs(requested: stored, listed: other),
                    StoredURLs(requested: other, listed: stored),
                ] {
                    #expect(urls.areOfImage(at: url, mirrors: mirrors) == isOwn, "\(urls)")
                    let own = StoredURLs(
                        requested: mirrors[0].text, listed: url.withoutCredentials.text)
                    #expect(urls.areOfImage(at: own) == isOwn, "\(urls)")
                    #expect(own.areOfImage(at: urls) == isOwn, "\(urls)")
                }
            }
        }
        let mirrored = StoredURLs(requested: mirrors[0].text, listed: mirrors[0].text)
        #expect(!mirrored.areOfImage(at: RequestURL(normalized: "https://a.example/1.png")))
    }
}

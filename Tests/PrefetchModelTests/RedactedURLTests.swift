import SeededRandom
import Testing

@testable import PrefetchModel

@Suite(.timeLimit(.minutes(15)))
struct RedactedURLTests {
    @Test(arguments: [
        "https://example.org/a/b.jpg?x=1&y=2",
        "https://example.org/@user/photo.jpg",
        "https://[2001:db8::1]:8080/a@2x.png",
        "https://example.org:8080/a@2x.png",
        "images/a@2x.png", "a@2x.png", "/a@2x.png", "", "?", "://", "https://", "@", "=",
        "https://example.org/%C3%A9?design=1&monkey=2", "https://h/a%40b%3Dc%3Ftokens",
        "https://h/?key=photos/2024/0123456789abcdef.jpg", "https://h/?s=640&st=summer-2024-garden",
        "https://h/%25?q=100%", "https://h/a;v=1/b?code=SUMMER2024", "%", "%4", "%%3D",
        "https://example.org/ü/猫.png",
    ])
    func keepsURLsWithoutSecrets(url: String) {
        #expect(RedactedURL(url).description == url)
    }

    @Test(
        arguments: [
            ("https://user:SECRET@example.org/a", "https://***@example.org/a"),
            ("https://SECRET@example.org", "https://***@example.org"),
            ("https://user:p@SECRET@example.org/a@b", "https://***@example.org/a@b"),
            ("http:/user:SECRET@example.org/a", "http:/***@example.org/a"),
            ("http:///user:SECRET@example.org/a", "http:///***@example.org/a"),
            ("//user:SECRET@example.org/a", "//***@example.org/a"),
            ("user:SECRET@example.org/a", "***@example.org/a"),
            ("http:\\\\user:SECRET@example.org/a", "http:\\\\***@example.org/a"),
            ("http://user:SECRET/x@example.org/a", "http://***@example.org/a"),
            ("http://user:SECRET#x@example.org/a", "http://***@example.org/a"),
            ("https://proxy/https://u:SECRET@h/x", "https://proxy/https://***@h/x"),
            ("https://h/?u=https://u:SECRET@h/x", "https://h/?u=https://***@h/x"),
            ("https://u:SECRET@\u{301}example.org/", "https://***@\u{301}example.org/"),
            (
                "https://h/?u=https%3A%2F%2Fu%3aSECRET%40h%2Fx",
                "https://h/?u=https%3A%2F%2F***%40h%2Fx"
            ),
        ] as [(String, String?)])
    func masksUserInformation(url: String, expected: String?) {
        let text = RedactedURL(url).description
        #expect(!text.contains("SECRET"))
        if let expected { #expect(text == expected) }
    }

    @Test(
        arguments: [
            ("https://h/a?X-Amz-Signature=SECRET&x=1", "https://h/a?X-Amz-Signature=***&x=1"),
            ("https://h/a?x=1&token=SECRET", "https://h/a?x=1&token=***"),
            ("https://h/a?x=1;sig=SECRET;SECRET", "https://h/a?x=1;sig=***"),
            ("https://h/a?access%5Ftoken=SECRET", "https://h/a?access%5Ftoken=***"),
            ("https://h/a?%74OKEN=SECRET", "https://h/a?%74OKEN=***"),
            ("https://h/a#access_token=SECRET&x", "https://h/a#access_token=***&x"),
            ("https://h/a?u=https://h/?token=SECRET", "https://h/a?u=https://h/?token=***"),
            ("https://h/a?token=SECRET?SECRET=SECRET", "https://h/a?token=***"),
            ("https://h/a;jsessionid=SECRET/b?x=1", "https://h/a;jsessionid=***/b?x=1"),
            ("https://h/a?token=SECRET%26SECRET&x=1", "https://h/a?token=***&x=1"),
            (
                "https://h/?url=https%3A%2F%2Fb%2Fx%3Fa=1%26X-Amz-Signature%3DSECRET&w=1",
                "https://h/?url=https%3A%2F%2Fb%2Fx%3Fa=1%26X-Amz-Signature%3D***&w=1"
            ),
            (
                "https://h/p/https%253A%252F%252Fb%253Fsig%253DSECRET%2526y",
                "https://h/p/https%253A%252F%252Fb%253Fsig%253D***%2526y"
            ),
            ("https://h/a?\u{301}&token\u{301}=SECRET&sig=\u{301}SECRET", nil),
            (
                "https://h/a?client_secret=SECRET&hdnts=exp=1~hmac=SECRET",
                "https://h/a?client_secret=***&hdnts=***"
            ),
        ] as [(String, String?)])
    func masksSignedParameters(url: String, expected: String?) {
        let text = RedactedURL(url).description
        #expect(!text.contains("SECRET"))
        if let expected { #expect(text == expected) }
    }

    /// Names that have harmless values, too.
    @Test(
        arguments: ["key", "s", "md5", "st", "verify", "hm", "oh", "sign", "code"],
        [
            "0123456789abcdef0123", "AIzaSyD-9tSrke72PouQMnMX", "1700000000-Zm9vYmFyYmF6cXV4%3D",
            "q_Zx81vUaaQ7ffLm3",
        ])
    func masksValuesLikeSignatures(name: String, value: String) {
        #expect(
            RedactedURL("https://h/a?\(name)=\(value)&x=1").description
                == "https://h/a?\(name)=***&x=1")
    }

    @Test(arguments: [
        "products/Summer2024/ShirtBlue", "1024x768-CropCenter", "Blue2024ShirtXL-0123",
    ])
    func keepsNamesInDoubtfulParameters(value: String) {
        let url = "https://h/a?key=\(value)&s=\(value)"
        #expect(RedactedURL(url).description == url)
    }

    /// Texts of columns and captions.
    @Test(arguments: [
        ("see https://h/a?token=SECRET, or b", "see https://h/a?token=*** or b"),
        (
            #"{"h":"<img src=\"https://h/a?token=SECRET\"> b"}"#,
            #"{"h":"<img src=\"https://h/a?token=***\"> b"}"#
        ),
        (#"[{"h":"\\\"https://h/a?sig=SECRET\\\""}]"#, #"[{"h":"\\\"https://h/a?sig=***\\\""}]"#),
        (
            "https://h/a?token=SECRET,https://h/b|https://h/c?sig=SECRET",
            "https://h/a?token=***,https://h/b|https://h/c?sig=***"
        ),
        ("<a href='https://h/a?token=SECRET'>A b</a>", "<a href='https://h/a?token=***'>A b</a>"),
        ("/b.png?X-Amz-Signature=SECRET", "/b.png?X-Amz-Signature=***"),
        ("h.com/b.png?token=SECRET", "h.com/b.png?token=***"),
        ("a@b.c, 5 = 5, 100 %, name@2x", "a@b.c, 5 = 5, 100 %, name@2x"),
    ])
    func masksSecretsInTexts(text: String, expected: String) {
        #expect(RedactedURL.maskingSecrets(in: text) == expected)
    }

    @Test func encodesControlCharacters() {
        #expect(
            RedactedURL("http://h/\u{1B}[2J\n\u{202E}\"\u{7F}\u{85}").description
                == "http://h/%1B[2J%0A%E2%80%AE%22%7F%C2%85")
    }

    @Test func keepsSpacesOfLine() {
        #expect(
            RedactedURL(line: "http://u:SE CRET@h/a b?sig=x \u{1B}[2J").description
                == "http://***@h/a b?sig=***")
        #expect(RedactedURL(line: "a b\tc\n").description == "a b%09c%0A")
    }

    @Test func neverTrapsAndStaysPrintable() {
        let alphabet = Array("hta:/\\@?&;#=%[]2 \"\u{301}\u{202E}é").map(String.init)
        var generator = SplitMix(seed: 23)
        for round in 0..<20_000 {
            let length = Int.random(in: 0...24, using: &generator)
            let url = (0..<length).map { _ in alphabet.randomElement(using: &generator) ?? "" }
                .joined()
            let text = RedactedURL(url).description
            #expect(
                !text.unicodeScalars.contains { $0.value <= 0x20 || $0 == "\u{202E}" }, "\(round)")
        }
    }
}

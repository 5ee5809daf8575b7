import Foundation
import PrefetchModel
import Testing

@testable import URLParsing

@Suite(.timeLimit(.minutes(15)))
struct URLParserTests {
    @Test(arguments: [
        ("HTTP://EXAMPLE.com", "http://example.com/"),
        ("http://a.b:80/x", "http://a.b/x"),
        ("https://a.b:443", "https://a.b/"),
        ("http://a.b:443/", "http://a.b:443/"),
        ("http://a.b:080/", "http://a.b/"),
        ("http://a.b:/", "http://a.b/"),
        ("http:/a.b/x", "http://a.b/x"),
        ("http:///a.b/x", "http://a.b/x"),
        ("http://a.b/../x/./y/..", "http://a.b/x/"),
        ("http://a.b/x/%2e%2E/y", "http://a.b/y"),
        ("http://a.b/%7euser/%41%2f", "http://a.b/~user/A%2F"),
        ("http://a.b/100%.jpg", "http://a.b/100%25.jpg"),
        ("http://a.b/%%34%31", "http://a.b/%2541"),
        ("http://a.b/a b?c d", "http://a.b/a%20b?c%20d"),
        ("http://a.b/ä?ä", "http://a.b/%C3%A4?%C3%A4"),
        ("http://a.b/<x>|\\^`{}\"", "http://a.b/%3Cx%3E%7C%5C%5E%60%7B%7D%22"),
        ("http://a.b/x[1].jpg", "http://a.b/x[1].jpg"),
        ("http://a.b?x", "http://a.b/?x"),
        ("http://a.b/?", "http://a.b/?"),
        ("http://a.b/#f", "http://a.b/"),
        ("http://a.b/x?y#f?g", "http://a.b/x?y"),
        ("http://127.1/", "http://127.0.0.1/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://%31%32%37.1/", "http://127.0.0.1/"),
        ("http://１２７.1/", "http://127.0.0.1/"),
        ("http://a.b./", "http://a.b./"),
        ("http://[::0:1]/", "http://[::1]/"),
        ("http://[0:0:0:0:0:0:0:1]:80/", "http://[::1]/"),
        ("http://[2001:DB8:0:0:1:0:0:1]/", "http://[2001:db8::1:0:0:1]/"),
        ("http://[::ffff:102:304]/", "http://[::ffff:1.2.3.4]/"),
        ("http://[fe80:0::1%25eth0]/", "http://[fe80::1%25eth0]/"),
        ("http://[::FFFF:1.2.3.4]:80/", "http://[::ffff:1.2.3.4]/"),
        ("http://[fe80::1%25eth0]/", "http://[fe80::1%25eth0]/"),
        ("http://bücher.de/", "http://xn--bcher-kva.de/"),
        ("http://bÜCHER.de/", "http://xn--bcher-kva.de/"),
        ("http://b%C3%BCcher.de/", "http://xn--bcher-kva.de/"),
        ("http://ß.de/", "http://xn--zca.de/"),
        ("http://@a.b/", "http://a.b/"),
        ("http://:@a.b/", "http://a.b/"),
    ])
    func normalizes(text: String, expected: String) throws {
        #expect(try URLParser().parse(text.utf8).text == expected)
    }

    @Test(arguments: [
        ("http://u:p@a.b/x", "http://u:p@a.b/x"),
        ("http://U%41:p%2f:w@A.b", "http://UA:p%2F%3Aw@a.b/"),
        ("http://u@a.b/", "http://u@a.b/"),
        ("http://:p@a.b/", "http://:p@a.b/"),
        ("http://u:@a.b/", "http://u:@a.b/"),
    ])
    func keyHasNoUserInformation(text: String, expected: String) throws {
        let result = try URLParser().parse(text.utf8)
        #expect(result.text == expected)
        #expect(
            result.withoutCredentials.text == (text.hasSuffix("x") ? "http://a.b/x" : "http://a.b/")
        )
    }

    @Test(arguments: [
        ("x.jpg", "http://b.c/d/e/x.jpg"), ("../x", "http://b.c/d/x"), ("/x", "http://b.c/x"),
        ("//h/x", "http://h/x"), ("?q r", "http://b.c/d/e/f?q%20r"), ("ä", "http://b.c/d/e/%C3%A4"),
        ("../../../x", "http://b.c/x"), ("https://o/p", "https://o/p"), (".", "http://b.c/d/e/"),
        ("%2e%2e/x", "http://b.c/d/x"),
    ])
    func resolvesAgainstBase(text: String, expected: String) throws {
        let parser = try URLParser(baseURL: "HTTP://B.c:80/d/e/f?g#h")
        // The author of `host:port` forgot the scheme, with a base or without.
        #expect {
            try parser.parse("localhost:8080/a.png".utf8)
        } throws: {
            ($0 as? URLParsingError)?.reason == .invalidEntry
        }
        #expect(try parser.parse(text.utf8).text == expected)
    }

    /// Targets of redirects, from a URL with its own credentials.
    @Test(arguments: [
        ("/x y", "http://u:p@b.c/x%20y"), ("?q", "http://u:p@b.c/d/e?q"),
        ("//B.C:80", "http://b.c/"),
        ("HTTP://B.C:/%7Ef#g", "http://b.c/~f"), ("http://v@b.c/", "http://v@b.c/"),
        ("HTTPS://BÜCHER.de:443/", "https://xn--bcher-kva.de/"), ("http://%62.c/", "http://b.c/"),
    ])
    func resolvesAgainstAURL(text: String, expected: String) throws {
        let parser = URLParser()
        let listed = try parser.parse("http://u:p@B.C/d/e".utf8)
        #expect(try parser.parse(text.utf8, relativeTo: listed).text == expected)
        // The call keeps no state.
        #expect(throws: URLParsingError.self) { _ = try parser.parse("/x".utf8) }
    }

    @Test func bytesOfALocationAreKept() throws {
        let parser = URLParser()
        let listed = try parser.parse("http://b.c/".utf8)
        let location = Array("/caf".utf8) + [0xE9]
        #expect(try parser.parse(location, relativeTo: listed).text == "http://b.c/caf%E9")
    }

    @Test(arguments: [
        ("ftp://a.b/x", FailureReason.unsupportedScheme),
        ("data:image/png;base64,aa", .unsupportedScheme),
        ("mailto:x@y", .unsupportedScheme), ("file:///etc/passwd", .unsupportedScheme),
        ("", .invalidEntry), ("#f", .invalidEntry), ("example.com/a.jpg", .invalidEntry),
        ("//example.com/a", .invalidEntry), ("localhost:8080/x", .invalidEntry),
        ("http:a.b", .invalidEntry), ("http:////a.b/", .invalidEntry), ("http://", .invalidEntry),
        ("http://a b/", .invalidEntry), ("http://a.b:65536/", .invalidEntry),
        ("http://a.b:8a/", .invalidEntry), ("http://a\\b/", .invalidEntry),
        ("http://a|b/", .invalidEntry), ("http://a%00b/", .invalidEntry),
        ("http://a%25b/", .invalidEntry), ("http://a.b/\u{1}", .invalidEntry),
        ("http://a.b/\u{7F}", .invalidEntry), ("http://a.b/\u{0}", .invalidEntry),
        ("http://[::1/", .invalidEntry), ("http://\u{AD}/", .invalidEntry),
        (" http://a/", .invalidEntry),
    ])
    func refuses(text: String, reason: FailureReason) throws {
        let parser = URLParser()
        let problem = #expect(throws: URLParsingError.self) {
            _ = try parser.parse(text.utf8)
        }
        #expect(problem?.reason == reason)
    }

    @Test func messagesHoldNoUserInformation() throws {
        let parser = URLParser()
        for text in [
            "http://secret:secret@a.b:99999/", "ftp://secret:secret@a.b/", "secret:secret@a.b/",
            "http://secret:secret@ä|/", "http://secret secret@h/", "http:secret@x",
            "http://a.b:secret/secret@h",
        ] {
            let problem = #expect(throws: URLParsingError.self) {
                _ = try parser.parse(text.utf8)
            }
            let message = try #require(problem?.message)
            #expect(!message.contains("secret"))
            #expect(message.utf8.allSatisfy { $0 >= 0x20 })
        }
    }

    @Test func escapesTextThatIsNotUTF8InPathsOnly() throws {
        let parser = URLParser()
        let path = Array("http://a.b/".utf8) + [0xFF, 0xC3]
        #expect(try parser.parse(path).text == "http://a.b/%FF%C3")
        #expect(throws: URLParsingError.self) {
            _ = try parser.parse(Array("http://a".utf8) + [0xFF] + Array(".b/".utf8))
        }
    }

    @Test(arguments: ["example.com", "ftp://a.b/", "", "http://"])
    func refusesBase(text: String) {
        #expect(throws: URLParsingError.self) { _ = try URLParser(baseURL: text) }
    }
}

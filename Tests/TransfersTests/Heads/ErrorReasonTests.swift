import PrefetchModel
import Testing

@testable import Transfers

/// The reasons that errors give in their bodies.
struct ErrorReasonTests {
    private func reason(
        _ body: String, type: String, status: Int = 403, hiding secrets: [String] = []
    ) -> String? {
        var reason = ErrorReason()
        Array(body.utf8).withUnsafeBytes { reason.append($0) }
        return reason.text(
            status: status, fields: [HeaderField(name: "Content-Type", value: type)],
            hiding: secrets)
    }

    @Test(
        arguments: [
            (#"{"message":"Token has expired"}"#, "Token has expired"),
            (
                #"{"error":{"code":403,"message":"Rate exceeded","status":"DENIED"}}"#,
                "Rate exceeded, DENIED"
            ),
            (
                #"{"error":"invalid_token","error_description":"It is old"}"#,
                "It is old, invalid_token"
            ),
            (#"{"error":"quota is used up"}"#, "quota is used up"),
            (#"{"errors":[{"code":"E1","detail":"no licence"}]}"#, "no licence, E1"),
            (#"{"errors":["no licence"]}"#, "no licence"),
            (#"[{"message":"of an array"}]"#, "of an array"),
            (
                #"{"__type":"ExpiredTokenException","Message":"Signature expired"}"#,
                "Signature expired, ExpiredTokenException"
            ),
            (#"{"fault":{"faultstring":"x","detail":{"errorcode":"oauth.Expired"}}}"#, nil),
            (
                #"{"type":"https://e.org/p","title":"Out of credit","detail":"Balance is 3","status":403}"#,
                "Balance is 3"
            ),
            (#"{"message":"Forbidden"}"#, nil), (#"{"message":"#, nil), ("{}", nil),
            (#"{"a":1}"#, nil),
        ] as [(String, String?)])
    func isReadFromJSON(body: String, expected: String?) {
        #expect(reason(body, type: "application/json") == expected)
        #expect(reason("\u{FEFF}\n" + body, type: "application/problem+json") == expected)
        #expect(reason(body, type: "application/json", status: 404) == nil)
    }

    @Test(
        arguments: [
            ("<html><title>Hotlinking is off</title>", "Hotlinking is off"),
            ("<!doctype html>\n<HTML><head><TITLE lang=en>A &amp; B\n</TITLE>", "A & B"),
            ("<title>Error 403: no hotlinks</title>", "Error 403: no hotlinks"),
            ("<title>403 Forbidden</title>", nil),
            ("<title>HTTP Error 403 - Forbidden</title>", nil),
            ("<title></title>", nil), ("<title>cut", nil), ("<p>text", nil),
            (
                "<?xml version=\"1.0\"?><!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0//EN\" \"x\">"
                    + "<html><head><title>No access for bots</title></head><body/></html>",
                "No access for bots"
            ),
        ] as [(String, String?)])
    func isTheTitleOfAPage(body: String, expected: String?) {
        for type in ["text/html; charset=utf-8", "application/xhtml+xml"] {
            #expect(reason(body, type: type) == expected, "\(type)")
        }
    }

    @Test func isReadFromXMLAndText() {
        let error = "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>"
        #expect(reason(error, type: "application/xml") == "Request has expired, AccessDenied")
        #expect(reason("out of tea\nat 5", type: "text/plain", status: 500) == "out of tea")
        #expect(reason("403 Forbidden", type: "text/plain") == nil)
        #expect(reason("x", type: "application/octet-stream") == nil)
    }

    /// Servers that repeat a request must not put its secrets into logs.
    @Test func secretsOfTheRequestAreMasked() throws {
        var configuration = TransferConfiguration(userAgent: "tests")
        configuration.requests.fields = [
            HeaderField(name: "Authorization", value: "Bearer abcdefgh12345"),
            HeaderField(name: "Cookie", value: "session=qwertzuiop; a=b"),
        ]
        configuration.requests.credentials = Credentials(user: "me", password: "swordfish")
        let request = TransferRequest(
            url: RequestURL(normalized: "http://a.b/c?sig=SIGNATURE%2F1&w=1"))
        let secrets = configuration.secretWords(of: request)
        for secret in [
            "Bearer abcdefgh12345", "abcdefgh12345", "session=qwertzuiop; a=b", "qwertzuiop",
            "swordfish", "bWU6c3dvcmRmaXNo", "SIGNATURE%2F1", "SIGNATURE/1",
        ] {
            for body in [
                "{\"message\":\"bad \(secret) here\"}", "{\"message\":\"bad (\(secret))\"}",
            ] {
                let shown = try #require(
                    reason(body, type: "application/json", hiding: secrets), "\(secret)")
                #expect(shown.contains("***") && !shown.contains(secret), "\(shown)")
            }
        }
        #expect(reason("a 3 b", type: "text/plain", hiding: ["3"]) == nil)
    }
}

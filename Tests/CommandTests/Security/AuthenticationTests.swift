import Foundation
import Hashing
import PrefetchModel
import TestSupport
import Testing

/// Digest authentication and client certificates.
@Suite(.timeLimit(.minutes(15)))
struct AuthenticationTests {
    /// Responds like a server with Digest (RFC 7616), for the user `u` with the password `s3cret`.
    private func serveDigest(_ origin: Origin) {
        origin.serve { request in
            guard request.header("Authorization").map(Self.isRight) == true else {
                return Response(
                    401,
                    headers: [
                        ("WWW-Authenticate", "Basic realm=\"b\""),
                        (
                            "WWW-Authenticate",
                            "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=SHA-256"
                        ),
                    ])
            }
            return .image(Fixtures.png(width: 3, height: 3))
        }
    }

    /// Whether the response to the challenge proves the right password (RFC 7616 §3.4.1).
    private static func isRight(_ authorization: String) -> Bool {
        guard authorization.hasPrefix("Digest ") else { return false }
        var values: [Substring: String] = [:]
        for part in authorization.dropFirst("Digest ".count).split(separator: ",") {
            let sides = part.split(separator: "=", maxSplits: 1)
            let name = sides[0].drop { $0 == " " }
            values[name] = sides.count > 1 ? sides[1].filter { $0 != "\"" } : ""
        }
        func digest(_ parts: String?...) -> String {
            SHA256Hasher().digest(of: parts.map { $0 ?? "" }.joined(separator: ":")).description
        }
        return values["username"] == "u" && values["nonce"] == "n"
            && values["response"]
                == digest(
                    digest("u", "r", "s3cret"), "n", values["nc"], values["cnonce"], "auth",
                    digest("GET", values["uri"]))
    }

    @Test func digestIsUsedWhereTheOriginAsksForIt() async throws {
        try await withOrigin { origin in
            serveDigest(origin)
            try await withWorkspace { workspace in
                let lines = (0..<3).map { origin.url("/\($0)") }
                let without = try await workspace.prefetch([lines[0]])
                #expect(without.report.verdicts == ["failed/http-status"], "\(without.result)")
                #expect(origin.requests.count == 1, "nothing is repeated without credentials")
                let wrong = try await workspace.prefetch([lines[0]], "--user", "u:guess")
                #expect(wrong.report.verdicts == ["failed/http-status"], "\(wrong.result)")
                #expect(origin.requests.count <= 4)
                let before = origin.requests.count
                let run = try await workspace.prefetch(
                    lines, "--user", "u:s3cret", "--host-concurrency", "1")
                #expect(run.summary.outcomes == ["downloaded": 3], "\(run.result)")
                let requests = origin.requests.dropFirst(before)
                let schemes = requests.map {
                    $0.header("Authorization")?.prefix { $0 != " " } ?? "none"
                }
                // The others use it immediately, on the same handle. Before libcurl 8.1 each
                // request has a handle of its own, and a challenge.
                let version = try await workspace.run("--version").output
                let number = try #require(version.firstMatch(of: /libcurl (\d+)\.(\d+)/))
                let (major, minor) = (Int(number.1) ?? 0, Int(number.2) ?? 0)
                let expected: [Substring] =
                    (major, minor) < (8, 1)
                    ? ["Basic", "none", "Digest", "none", "Digest", "none", "Digest"]
                    : ["Basic", "Digest", "Digest", "Digest"]
                #expect(schemes == expected, "\(schemes)")
                let digest = try #require(
                    requests.compactMap { $0.header("Authorization") }
                        .first { $0.hasPrefix("Digest") })
                #expect(digest.contains("username=\"u\"") && !digest.contains("s3cret"))
                #expect(digest.contains("uri=\"/0\""))
            }
        }
    }

    /// libcurl keeps the challenge of an origin with a handle.
    @Test func digestOriginsDoNotShareChallenges() async throws {
        func serve(_ origin: Origin, _ realm: String) {
            origin.serve { request in
                let sent = request.header("Authorization") ?? ""
                guard sent.hasPrefix("Digest "), sent.contains("realm=\"\(realm)\"") else {
                    return Response(
                        401,
                        headers: [
                            (
                                "WWW-Authenticate",
                                "Digest realm=\"\(realm)\", nonce=\"\(realm)-n\", qop=\"auth\""
                            )
                        ])
                }
                return .image(Fixtures.png(width: 3, height: 3))
            }
        }
        try await withOrigin { first in
            try await withOrigin { second in
                serve(first, "first")
                serve(second, "second")
                try await withWorkspace { workspace in
                    let lines = (0..<6).flatMap { [first.url("/\($0)"), second.url("/\($0)")] }
                    for jobs in ["1", "8"] {
                        let run = try await workspace.prefetch(
                            lines, "--user", "u:p", "--jobs", jobs, "--refresh", "force")
                        #expect(run.summary.outcomes == ["downloaded": 12], "\(run.result)")
                    }
                    #expect(
                        second.requests.allSatisfy {
                            $0.header("Authorization")?.contains("first") != true
                        })
                }
            }
        }
    }

    @Test func aClientCertificateIsSent() async throws {
        let authority = try await TestAuthority.shared()
        var security = authority.security(.good)
        security.clientAuthority = authority.path
        let (certificate, key) = ("\(authority.folder)/good.pem", "\(authority.folder)/good.key")
        try await withOrigin(security: security) { origin in
            origin.serve { _ in .image(Fixtures.png(width: 3, height: 3)) }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let lines = [origin.url("/a", host: "localhost")]
                let without = try await workspace.prefetch(lines, "--cacert", authority.path)
                #expect(without.summary.reasons == ["tls": 1], "\(without.result)")
                #expect(without.result.error.contains("requires a client certificate; see --cert"))
                // Another run may have the certificate, so the URL is not blacklisted; the host is
                // not asked again in this one.
                let retrying = try await workspace.prefetch(
                    lines, "--cacert", authority.path, "--retry", "3")
                #expect(retrying.summary.reasons == ["tls": 1], "\(retrying.result)")
                #expect(retrying.report[line: 1]?.attempts == 1, "\(retrying.result)")
                let run = try await workspace.prefetch(
                    lines, "--cacert", authority.path, "--cert", certificate, "--key", key)
                #expect(run.report.verdicts == ["downloaded"], "\(run.result)")
                try workspace.writeConfiguration(
                    """
                    [host."localhost"]
                    cacert = "\(authority.path)"
                    cert = "\(certificate)"
                    key = "\(key)"
                    """)
                let table = try await workspace.prefetch(
                    lines, "--refresh", "force", "--trust-project-config")
                #expect(table.report.verdicts == ["downloaded"], "\(table.result)")
            }
        }
    }

    @Test func unusableCertificatesAreNamed() async throws {
        let authority = try await TestAuthority.shared()
        try await withWorkspace { workspace in
            let manifest = try workspace.manifest([])
            let encrypted = try workspace.write(
                Array("-----BEGIN ENCRYPTED PRIVATE KEY-----\n".utf8), to: "key.pem")
            let certificate = "\(authority.folder)/good.pem"
            for (flags, message) in [
                (["--cert", "missing.pem"], "missing.pem"),
                (["--cert", "\(authority.folder)/good.key"], "contains no certificate"),
                (["--cert", certificate], "contains no private key"),
                (["--cert", certificate, "--key", encrypted], "is encrypted"),
            ] {
                let result = try await workspace.command([manifest] + flags).run()
                #expect(result.status == 2, "\(result)")
                #expect(result.error.contains(message), "\(result)")
            }
        }
    }
}

import Foundation
import TestSupport
import Testing

/// Redirects that set a cookie and return to the same URL.
@Suite(.timeLimit(.minutes(15)))
struct CookieRedirectTests {
    private static let picture = Fixtures.png(seed: 1)

    /// Requires a cookie, and sends the image with it.
    private static func consent(
        to location: String, accepts: @escaping @Sendable (String) -> Bool
    ) -> Origin.Answering {
        return { request in
            let cookies = request.header("Cookie") ?? ""
            if cookies.contains("consent="), accepts(cookies) { return .image(picture) }
            return Response(
                302,
                headers: [
                    ("Location", location),
                    ("Set-Cookie", "consent=yes; Path=/; Max-Age=900"),
                ])
        }
    }

    @Test func requestWithTheCookieIsNoLoop() async throws {
        try await withOrigin { origin in
            origin.serve(Self.consent(to: "/a.png") { _ in true })
            let url = origin.url("/a.png")
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let without = try await workspace.prefetch([url])
                #expect(without.report.verdicts == ["failed/redirect"], "\(without.result)")
                let message = without.report.entries[0].message ?? ""
                #expect(message.hasPrefix("a redirect loop, back to \(url); "), "\(message)")
                #expect(message.contains("--cookie-jar"), "\(message)")
                #expect(origin.requests.count == 1)
                let with = try await workspace.prefetch([url], "--cookie-jar", "jar")
                #expect(with.report.verdicts == ["downloaded"], "\(with.result)")
                #expect(origin.requests.count == 3)
            }
        }
    }

    /// A login in another program, or another image of the host that brings the cookie.
    @Test func changedCookiesOfTheHostEndTheBlacklisting() async throws {
        try await withOrigin { origin in
            origin.serve(
                Self.consent(to: "/a.png", accepts: { $0.contains("consent=granted") }))
            let url = origin.url("/a.png")
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                func run() async throws -> [String] {
                    try await workspace.prefetch([url], "--cookie-jar", "jar").report.verdicts
                }
                // The first run changes the jar, and the second one does not.
                for verdict in ["failed/redirect", "failed/redirect", "blacklisted"] {
                    #expect(try await run() == [verdict])
                }
                let other = "other.example\tFALSE\t/\tFALSE\t0\ta\tb"
                let jar = try String(contentsOfFile: workspace.folder + "/jar", encoding: .utf8)
                try workspace.write(Array("\(jar)\(other)\n".utf8), to: "jar")
                #expect(try await run() == ["blacklisted"])
                let granted = "127.0.0.1\tFALSE\t/\tFALSE\t0\tconsent\tgranted"
                try workspace.write(Array("\(granted)\n".utf8), to: "jar")
                #expect(try await run() == ["downloaded"])
            }
        }
    }
}

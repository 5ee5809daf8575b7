import Foundation
import TestSupport
import Testing

/// Messages name the deciding flag, and summaries name each cause once.
@Suite(.timeLimit(.minutes(15)))
struct FailureMessageTests {
    private struct Case: Sendable, CustomTestStringConvertible {
        let answer: Response
        let options: [String]
        let message: String

        init(_ answer: Response, _ options: [String], _ message: String) {
            self.answer = answer
            self.options = options
            self.message = message
        }

        var testDescription: String { message }
    }

    private static let picture = Fixtures.png(seed: 1)

    private static let cases = [
        Case(
            Response(401), [],
            "HTTP 401: credentials required, see --user, --netrc and --header"),
        Case(
            Response(403), [],
            "HTTP 403: access is denied; see --user, --netrc, --header and --user-agent"),
        Case(
            Response(
                403,
                body: Array(
                    "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>"
                        .utf8), type: "application/xml"), [],
            "HTTP 403 (Request has expired, AccessDenied): list the image by a new URL"),
        Case(
            Response(
                403, headers: [("cf-mitigated", "challenge")], body: Array("<html>".utf8),
                type: "text/html"), [],
            "HTTP 403 (a challenge for browsers): access is denied; see --user"),
        Case(
            Response(500, body: Array("out of tea\n".utf8), type: "text/plain"),
            ["--retry", "0"],
            "HTTP 500 (out of tea)"),
        Case(
            .image(picture), ["--max-filesize", "100"],
            "the announced body is larger than --max-filesize (100 B)"),
        Case(
            .image(picture), ["--max-pixels", "10"],
            "pixels, more than --max-pixels (10)"),
        Case(
            .image(picture, ending: .stalledAfter(bodyBytes: 10)), ["--stall-timeout", "300ms"],
            "no byte within --stall-timeout (300ms)"),
        Case(
            .image(picture, ending: .stalledAfter(bodyBytes: 10)), ["--timeout", "300ms"],
            "not complete within --timeout (300ms)"),
        Case(.redirect(to: "/a.png?"), ["--max-redirects", "0"], "--max-redirects (0)"),
    ]

    @Test(arguments: cases)
    private func messageNamesTheDecidingFlag(_ test: Case) async throws {
        try await withOrigin { origin in
            origin.serve("/a.png", test.answer)
            try await withWorkspace { workspace in
                var command = try workspace.prefetchCommand([origin.url("/a.png")])
                command.arguments += test.options
                let run = try workspace.finish(await command.run(), entries: 1)
                let message = try #require(run.report.entries.first?.message, "\(run.result)")
                #expect(message.contains(test.message), "\(message)")
                #expect(run.result.error.contains(test.message), "\(run.result)")
            }
        }
    }

    /// A page to sign in, with status 200, often stands in place of an image.
    @Test(arguments: [true, false])
    func aPageIsNamedWithItsRedirect(isRedirected: Bool) async throws {
        try await withOrigin { origin in
            let page = Response(
                body: Array("\n<!DOCTYPE html><title>Sign in</title>".utf8), type: "text/html")
            origin.serve("/in", page)
            origin.serve("/a.png", isRedirected ? .redirect(to: "/in?token=secret") : page)
            try await withWorkspace { workspace in
                let run = try await workspace.prefetch([origin.url("/a.png")])
                let message = try #require(run.report.entries.first?.message, "\(run.result)")
                let place = isRedirected ? ", after a redirect to \(origin.url("/in"))?token=" : ""
                #expect(message.hasPrefix("an HTML page\(place)"), "\(message)")
                #expect(!message.contains("secret"), "\(message)")
            }
        }
    }

    @Test(arguments: [Origin.Accepting.nothing, .silence])
    func connectTimeoutIsNamed(accepting: Origin.Accepting) async throws {
        try await withOrigin(accepting: accepting) { origin in
            let url = origin.url("/a.png").replacing("http:", with: "https:")
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.prefetch([url], "--connect-timeout", "300ms")
                #expect(run.report.verdicts == ["failed/connect"], "\(run.result)")
                let message = run.report.entries.first?.message ?? ""
                #expect(message.contains("; --connect-timeout is 300ms (libcurl 28)"), "\(message)")
            }
        }
    }

    @Test func refusingHostIsSummarisedInOneLine() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(3)
            let refused = (0..<15).map { origin.url("/private/\($0).png") }
            origin.serve { request in
                request.path.hasPrefix("/private/") ? Response(403) : nil
            }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.prefetch(urls + refused)
                #expect(run.summary.outcomes == ["downloaded": 3, "failed": 15], "\(run.result)")
                let lines = run.result.errorLines
                #expect(lines.filter { $0.contains("HTTP 403") }.count == 1, "\(run.result)")
                #expect(
                    run.result.error.contains(
                        "\n  15 at \(origin.url("/").dropLast()): http-status, "
                            + "first manifest-1.txt:4: \(refused[0]): HTTP 403: access is denied"),
                    "\(run.result)")
                #expect(!run.result.error.contains("more\n"))
            }
        }
    }
}

import Foundation
import TestSupport
import Testing

/// The progress line on SIGUSR1 and on terminals without control characters.
@Suite(.timeLimit(.minutes(15)))
struct ProgressLineTests {
    @Test func printsProgressOnSIGUSR1() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            let urls = origin.serveImages(3, gate: gate)
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let running = try workspace.prefetchCommand(urls, ["-q"]).start()
                try await origin.wait(for: "three held") { $0.inFlight == 3 }
                running.signal(SIGUSR1)
                try await eventually("the line") {
                    running.errorSoFar.hasPrefix("prefetch: 0/3 0%")
                        && running.errorSoFar.contains(", 3 in flight")
                        && running.errorSoFar.hasSuffix("\n")
                }
                gate.open()
                let result = await running.wait()
                #expect(result.status == 0, "\(result)")
                #expect(result.errorLines.count == 1, "\(result)")
            }
        }
    }

    /// Two of the six concurrent transfers per host.
    @Test func progressNamesSlowestHost() async throws {
        try await withOrigin { quick in
            try await withOrigin { slow in
                let gate = Gate()
                let urls = quick.serveImages(3) + slow.serveImages(6, gate: gate)
                let host = String(slow.url("/").dropLast())
                try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                    let running = try workspace.prefetchCommand(
                        urls, ["-q", "--host-concurrency", "2"]
                    ).start()
                    try await slow.wait(for: "two held") { $0.inFlight == 2 }
                    let wanted = ", held up by \(host) (2 at once, 4 waiting)\n"
                    try await eventually("the line") {
                        running.signal(SIGUSR1)
                        return running.errorSoFar.contains(wanted)
                    }
                    gate.open()
                    let result = await running.wait()
                    #expect(result.status == 0, "\(result)")
                }
            }
        }
    }

    @Test func progressShowsPauseOfHost() async throws {
        try await withOrigin { origin in
            origin.serve { _ in .unavailable(retryAfter: "100") }
            let host = String(origin.url("/").dropLast())
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let running = try workspace.prefetchCommand(
                    [origin.url("/a.png"), origin.url("/b.png")], ["-q", "--retry", "1", "-j", "1"]
                ).start()
                try await origin.wait(for: "the first answer") { $0.answered == 1 }
                try await eventually("the line") {
                    running.signal(SIGUSR1)
                    return running.errorSoFar.contains(
                        "held up by \(host) (2 waiting, next request in 1 min ")
                }
                running.signal(SIGTERM)
                #expect(await running.wait().signal == SIGTERM)
            }
        }
    }

    @Test func dumbTerminalGetsNoControlCharacters() async throws {
        try await withOrigin { origin in
            let gate = Gate()
            let urls = origin.serveImages(2, gate: gate)
            try await withWorkspace(without: [.stalls]) { workspace in
                var command = try workspace.prefetchCommand(urls, ["--progress", "always"])
                command.hasTerminal = true
                command.environment["TERM"] = "dumb"
                let running = try command.start()
                try await eventually("a line of progress") {
                    running.errorSoFar.contains("prefetch: 0")
                }
                gate.open()
                let result = await running.wait()
                #expect(result.status == 0)
                #expect(!result.error.contains("\u{1B}"), "\(result)")
            }
        }
    }
}

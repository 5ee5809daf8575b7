import Foundation
import TestSupport
import Testing

/// The flags about TLS and versions of HTTP, on the wire.
@Suite(.timeLimit(.minutes(15)))
struct SecureFlagTests {
    private typealias Certificate = TestAuthority.Certificate

    private func withOrigins(
        _ certificates: ArraySlice<Certificate>, _ open: [Origin] = [],
        _ body: ([Origin]) async throws -> Void
    ) async throws {
        guard let first = certificates.first else { return try await body(open) }
        let authority = try await TestAuthority.shared()
        try await withOrigin(security: authority.security(first)) { origin in
            origin.serve { .image(Fixtures.png(seed: $0.path.count)) }
            try await withOrigins(certificates.dropFirst(), open + [origin], body)
        }
    }

    /// Certificates of an untrusted authority, for another name, or expired.
    @Test func insecureAcceptsEveryCertificateAndWarns() async throws {
        let certificates = Certificate.allCases
        try await withOrigins(certificates[...]) { origins in
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let lines = origins.map { $0.url("/a.png", host: "localhost") }
                let refused = try await workspace.prefetch(lines)
                #expect(refused.summary.reasons == ["tls": certificates.count])
                #expect(!refused.result.error.contains("--insecure"), "\(refused.result)")
                #expect(origins.allSatisfy { $0.requests.isEmpty })

                let run = try await workspace.prefetch(lines, "--insecure", "-q")
                #expect(
                    run.summary.outcomes == ["downloaded": certificates.count], "\(run.result)")
                let warnings = run.result.errorLines.filter {
                    $0.hasPrefix("prefetch: --insecure: certificates are not verified")
                }
                #expect(warnings.count == 1, "\(run.result)")
                #expect(run.result.error.contains("hint: --cacert "), "\(run.result)")
                #expect(run.result.output.isEmpty)
            }
        }
    }

    @Test func certificateIsJudgedOncePerHost() async throws {
        try await withOrigins([.good]) { origins in
            try await withWorkspace(without: [.probes]) { workspace in
                let lines = (0..<20).map { origins[0].url("/\($0).png", host: "localhost") }
                let run = try await workspace.prefetch(lines, "--host-concurrency", "1")
                #expect(run.summary.reasons == ["tls": 20], "\(run.result)")
                #expect(run.report.entries.map(\.attempts).reduce(0, +) == 1, "\(run.result)")
            }
        }
    }

    /// As for curl; the flag has precedence.
    @Test(arguments: ["CURL_CA_BUNDLE", "SSL_CERT_FILE"])
    func trustsAuthoritiesOfTheEnvironment(variable: String) async throws {
        let authority = try await TestAuthority.shared()
        try await withOrigins([.good]) { origins in
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let lines = [origins[0].url("/a.png", host: "localhost")]
                func run(_ options: [String], _ path: String) async throws -> Workspace.Run {
                    var command = try workspace.prefetchCommand(lines, options)
                    command.environment[variable] = path
                    return try workspace.finish(try await command.run())
                }
                let other = "\(authority.folder)/own.pem"
                let flag = try await run(["--cacert", other], authority.path)
                #expect(flag.report.verdicts == ["failed/tls"], "\(flag.result)")
                let trusted = try await run([], authority.path)
                #expect(trusted.report.verdicts == ["downloaded"], "\(trusted.result)")
                var command = try workspace.prefetchCommand(lines)
                command.environment[variable] = "missing.pem"
                let missing = try await command.run()
                #expect(missing.status == 2, "\(missing)")
                #expect(missing.error.contains("hint: \(variable) names this file"), "\(missing)")
            }
        }
    }

    /// It is a rule for origins: a bucket needs the authorities.
    @Test func insecureLeavesTheAuthoritiesOfBuckets() async throws {
        let authority = try await TestAuthority.shared()
        try await withOrigins([.good]) { bucket in
            try await withWorkspace { workspace in
                var command = try workspace.prefetchCommand(
                    [bucket[0].url("/a.png", host: "localhost")],
                    ["--insecure", "--sink", "s3://b/p", "--sink-credentials", "none"])
                command.environment["AWS_ENDPOINT_URL_S3"] = bucket[0].url("", host: "localhost")
                command.environment["SSL_CERT_FILE"] = authority.path
                let result = try await command.run()
                #expect(result.status == 2, "\(result)")
                #expect(bucket[0].requests.contains { $0.path.hasPrefix("/b") }, "\(result)")
            }
        }
    }

    /// As for curl, which then trusts the authorities of both.
    @Test func trustsFileAndFolderOfTheEnvironment() async throws {
        let authority = try await TestAuthority.shared()
        try await withOrigins([.good]) { origins in
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let lines = [origins[0].url("/a.png", host: "localhost")]
                let folder = workspace.folder + "/certificates"
                try FileManager.default.createDirectory(
                    atPath: folder, withIntermediateDirectories: false)
                try FileManager.default.copyItem(
                    atPath: authority.path, toPath: folder + "/ca.pem")
                let other = "\(authority.folder)/own.pem"
                var link = workspace.command(["rehash", folder])
                link.executable = "/usr/bin/openssl"
                #expect(try await link.run().status == 0)
                func run(_ options: [String], _ file: String) async throws -> Workspace.Run {
                    var command = try workspace.prefetchCommand(lines, options)
                    command.environment["SSL_CERT_FILE"] = file
                    command.environment["SSL_CERT_DIR"] = folder
                    return try workspace.finish(try await command.run())
                }
                // Any other file replaces the folder.
                let flag = try await run(["--cacert", other], other)
                #expect(flag.report.verdicts == ["failed/tls"], "\(flag.result)")
                let both = try await run([], other)
                #expect(both.report.verdicts == ["downloaded"], "\(both.result)")
            }
        }
    }

    /// The file names the trusted authorities. It may hold a certificate itself, and other
    /// authorities do not count then.
    @Test(arguments: [TestAuthority.Certificate.good, .own])
    func trustsOnlyNamedAuthorities(
        trusted: TestAuthority.Certificate
    ) async throws {
        let authority = try await TestAuthority.shared()
        let certificates = Certificate.allCases
        try await withOrigins(certificates[...]) { origins in
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let file = trusted == .own ? "\(authority.folder)/own.pem" : authority.path
                let run = try await workspace.prefetch(
                    origins.map { $0.url("/a.png", host: "localhost") }, "--cacert", file)
                for (certificate, verdict) in zip(certificates, run.report.verdicts) {
                    #expect(
                        verdict == (certificate == trusted ? "downloaded" : "failed/tls"),
                        "\(certificate): \(run.result)")
                }
                for (certificate, origin) in zip(certificates, origins) {
                    #expect(origin.requests.count == (certificate == trusted ? 1 : 0))
                }
            }
        }
    }

    /// A redirect that an earlier run's flag allowed is not used without the flag.
    @Test func forgetsDowngradingRedirectsWithoutTheFlag() async throws {
        let authority = try await TestAuthority.shared()
        try await withOrigin { plain in
            try await withOrigin(security: authority.security(.good)) { secure in
                var image = Response.image(Fixtures.png(seed: 1))
                image.headers = [("Cache-Control", "no-cache"), ("ETag", "\"1\"")]
                plain.serve("/b.png", image)
                secure.serve("/a.png", .redirect(301, to: plain.url("/b.png")))
                try await withWorkspace(without: [.retries, .probes]) { workspace in
                    let lines = [secure.url("/a.png", host: "localhost")]
                    let first = try await workspace.prefetch(
                        lines, "--cacert", authority.path, "--allow-downgrade")
                    #expect(first.report.verdicts == ["downloaded"], "\(first.result)")
                    let second = try await workspace.prefetch(lines, "--cacert", authority.path)
                    #expect(second.report.verdicts == ["failed/redirect"], "\(second.result)")
                    #expect(plain.requests.count == 1)
                    #expect(secure.requests.count == 2)
                }
            }
        }
    }

    /// An origin with both versions gets HTTP/2 requests by default.
    @Test(arguments: [false, true])
    func usesHTTP11OnlyOnRequest(isRequested: Bool) async throws {
        let authority = try await TestAuthority.shared()
        let security = authority.security(http2: .init(alsoSpeaksHTTP1: true))
        try await withOrigin(security: security) { origin in
            let count = 20
            for index in 0..<count {
                origin.serve("/\(index)", .image(Fixtures.png(seed: index)))
            }
            try await withWorkspace { workspace in
                let command = try workspace.prefetchCommand(
                    (0..<count).map { origin.url("/\($0)", host: "localhost") },
                    ["--cacert", authority.path] + (isRequested ? ["--http1.1"] : []))
                let run = try workspace.finish(await command.run(), entries: count)
                #expect(run.summary.outcomes == ["downloaded": count], "\(run.result)")
                #expect(origin.requests.count == count)
                #expect(origin.requests.allSatisfy { $0.isHTTP2 != isRequested })
                if !isRequested { #expect(origin.snapshot.connections == 1) }
            }
        }
    }
}

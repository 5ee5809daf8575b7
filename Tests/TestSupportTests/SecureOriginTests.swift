import Foundation
import TestSupport
import Testing

/// Origins with TLS and HTTP/2, tested with a client outside this package.
@Suite(.timeLimit(.minutes(15)))
struct SecureOriginTests {
    /// The output and exit status of `curl`.
    private func curl(_ arguments: String...) async throws -> CommandResult {
        try await Command(
            executable: "/usr/bin/curl", arguments: ["-sS", "--max-time", "20"] + arguments,
            environment: ["PATH": "/usr/bin:/bin", "HOME": "/nowhere"], folder: "/tmp"
        ).run()
    }

    private static let version = "%{http_version} %{response_code} "

    @Test(arguments: [false, true])
    func speaksConfiguredProtocol(isHTTP2: Bool) async throws {
        let authority = try await TestAuthority.shared()
        let security = authority.security(http2: isHTTP2 ? OriginSecurity.HTTP2() : nil)
        try await withOrigin(security: security) { origin in
            origin.serve("/a", Response(body: Array("hello".utf8), type: "text/plain"))
            let result = try await curl(
                "--cacert", authority.path, "-w", SecureOriginTests.version,
                origin.url("/a", host: "a.localhost"))
            #expect(result.output == "hello\(isHTTP2 ? "2" : "1.1") 200 ", "\(result)")
            #expect(origin.requests.map(\.path) == ["/a"])
            #expect(origin.snapshot["a.localhost"].requests == 1)
            try await origin.wait(for: "the end of the answer") { $0.answered == 1 }
        }
    }

    /// 60 is curl's exit status for a certificate that it does not trust.
    @Test(arguments: [TestAuthority.Certificate.expired, .early, .other, .own])
    func clientRejectsInvalidCertificates(certificate: TestAuthority.Certificate) async throws {
        let authority = try await TestAuthority.shared()
        try await withOrigin(security: authority.security(certificate)) { origin in
            let result = try await curl("--cacert", authority.path, origin.url("/"))
            #expect(result.status == 60, "\(result)")
            let word = [
                .expired: "expired", .early: "not yet valid", .other: "127.0.0.1",
                .own: "self-signed",
            ][certificate]
            #expect(result.error.contains(word ?? ""), "\(result)")
            #expect(origin.requests.isEmpty)
        }
    }

    /// curl's statuses: 92 for a reset stream, 55 and 56 for a reset connection (while sending or
    /// receiving), 18 for a short body.
    @Test func endsStreamsAndConnectionsAsScripted() async throws {
        let authority = try await TestAuthority.shared()
        try await withOrigin(security: authority.security(http2: .init())) { origin in
            let body = [UInt8](repeating: 65, count: 200_000)
            var reset = Response(body: body)
            reset.stream = .reset(bodyBytes: 1000)
            origin.serve("/reset", reset)
            origin.serve("/cut", Response(body: body, ending: .resetAfter(bodyBytes: 1000)))
            origin.serve("/long", Response(body: body, framing: .chunked))
            for (path, statuses) in [("/reset", [92]), ("/cut", [18, 55, 56, 92]), ("/long", [0])] {
                let result = try await curl(
                    "--cacert", authority.path, "-o", "/dev/null", "-w", "%{size_download}",
                    origin.url(path))
                #expect(statuses.contains(Int(result.status ?? -1)), "\(path): \(result)")
                if path == "/long" { #expect(result.output == "200000") }
            }
        }
    }

    @Test func goAwayAndRefusedStreamsSpareOtherStreams() async throws {
        let authority = try await TestAuthority.shared()
        let security = authority.security(http2: .init(requestsBeforeGoAway: 2))
        try await withOrigin(security: security) { origin in
            origin.serve { _ in Response(body: [65]) }
            var refused = Response()
            refused.stream = .refused
            origin.serve("/refused", refused)
            let urls = (0..<6).flatMap { ["-o", "/dev/null", origin.url("/\($0)")] }
            let result = try await Command(
                executable: "/usr/bin/curl",
                arguments: ["-sS", "--cacert", authority.path, "-w", "%{http_version} "] + urls,
                environment: [:], folder: "/tmp"
            ).run()
            #expect(result.output == String(repeating: "2 ", count: 6), "\(result)")
            #expect(origin.snapshot.connections == 3)
            let alone = try await curl("--cacert", authority.path, origin.url("/refused"))
            #expect(alone.status != 0, "\(alone)")
        }
    }

    /// Uses Python's client: OpenSSL reports an end without close_notify as an error, while curl
    /// ignores it.
    @Test(arguments: [false, true])
    func closesWithAndWithoutCloseNotify(hasNotice: Bool) async throws {
        let authority = try await TestAuthority.shared()
        try await withOrigin(security: authority.security()) { origin in
            var response = Response(body: [65, 66], framing: .closeDelimited)
            response.closesWithoutNotice = !hasNotice
            origin.serve("/", response)
            let script = """
                import socket, ssl, sys
                context = ssl.create_default_context(cafile=sys.argv[1])
                context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
                raw = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
                client = context.wrap_socket(
                    raw, server_hostname="localhost", suppress_ragged_eofs=False)
                client.sendall(b"GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n")
                data = b""
                try:
                    while piece := client.recv(9999):
                        data += piece
                    print(data[-2:].decode(), "notice")
                except ssl.SSLError:
                    print(data[-2:].decode(), "none")
                """
            let result = try await Command(
                executable: "/usr/bin/python3",
                arguments: ["-I", "-c", script, authority.path, "\(origin.port)"],
                environment: [:], folder: "/tmp"
            ).run()
            #expect(result.output == "AB \(hasNotice ? "notice" : "none")\n", "\(result)")
        }
    }

    @Test(arguments: [false, true])
    func sendsEndlessBodyUntilClientCloses(isHTTP2: Bool) async throws {
        let authority = try await TestAuthority.shared()
        let security = authority.security(http2: isHTTP2 ? OriginSecurity.HTTP2() : nil)
        try await withOrigin(security: security) { origin in
            origin.serve(
                "/",
                Response(
                    body: [UInt8](repeating: 66, count: 5000), framing: .chunked,
                    ending: .endless))
            let client = try Command(
                executable: "/bin/sh",
                // The client exits when its output is no longer read.
                arguments: [
                    "-c", #"curl -s --cacert "$0" "$1" | head -c 200000 | wc -c"#, authority.path,
                    origin.url("/"),
                ],
                environment: ["PATH": "/usr/bin:/bin"], folder: "/tmp"
            ).start()
            let result = await client.wait()
            #expect(result.output == "200000\n", "\(result)")
            try await origin.wait(for: "the end of the answer") { $0.inFlight == 0 }
            #expect(origin.snapshot.answered == 0)
        }
    }
}

import Foundation
import TestSupport
import Testing

/// The flags about requests, and the fields that the origin receives.
@Suite(.timeLimit(.minutes(15)))
struct RequestFlagTests {
    @Test func secretsOfFilesStayPrivate() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(2)
            try await withWorkspace { workspace in
                try workspace.write(
                    Array("X-Key: SECRET-1\r\n\r\nCookie: c=SECRET-2\n".utf8), to: "headers")
                try workspace.write(Array("me:SECRET-3\nmore\n".utf8), to: "user")
                let run = try await workspace.prefetch(
                    urls, "--header", "@headers", "--header", "User-Agent: mine", "--user", "@user",
                    "-v")
                #expect(run.summary.outcomes == ["downloaded": 2], "\(run.result)")
                let basic = "Basic " + Data("me:SECRET-3".utf8).base64EncodedString()
                for request in origin.requests {
                    #expect(request.header("X-Key") == "SECRET-1")
                    #expect(request.header("Cookie") == "c=SECRET-2")
                    #expect(request.header("Authorization") == basic)
                    #expect(request.header("User-Agent") == "mine")
                }
                try expectNoSecret(in: workspace, except: ["headers", "user"], run.result)
                // The home folder lacks that file.
                let missing = try await workspace.run(try workspace.manifest(urls), "--netrc")
                #expect(missing.status == 2 && missing.error.contains(".netrc"), "\(missing)")
                #expect(missing.error.contains("hint: "), "\(missing)")
                #expect(origin.requests.count == 2)
            }
        }
    }

    /// The database holds a digest of a secret field that `Vary` names, also of an entry's own.
    @Test func varyOnASecretStoresADigest() async throws {
        try await withOrigin { origin in
            for (path, fields) in [("/a.png", "X-Key, Authorization"), ("/b.png", "X-Own")] {
                var response = Response.image(Fixtures.png(seed: path.count))
                response.headers.append(("Vary", fields))
                origin.serve(path, response)
            }
            try await withWorkspace { workspace in
                for (key, outcome) in [("1", "downloaded"), ("1", "fresh"), ("2", "downloaded")] {
                    let run = try await workspace.prefetch(
                        [origin.url("/a.png"), origin.url("/b.png") + " header=X-Own:own-\(key)"],
                        "--header", "X-Key: SECRET-\(key)", "--user", "me:SECRET-3")
                    #expect(run.summary.outcomes == [outcome: 2], "\(run.result)")
                    try expectNoSecret(in: workspace, except: [], run.result)
                }
                let without = try await workspace.prefetch([origin.url("/b.png")])
                #expect(without.summary.outcomes == ["downloaded": 1], "\(without.result)")
            }
        }
    }

    @Test(arguments: ["/b.png", "absolute"])
    func aRedirectInsideAnOriginKeepsTheURLsCredentials(location: String) async throws {
        try await withOrigin { origin in
            origin.serve(
                "/a.png",
                .redirect(to: location == "absolute" ? origin.url("/b.png") : location))
            origin.serve("/b.png", .image(Fixtures.png(seed: 1)))
            try await withWorkspace { workspace in
                let url = origin.url("/a.png").replacing(
                    "//", with: "//me:secret@", maxReplacements: 1)
                let run = try await workspace.prefetch([url])
                #expect(run.report.verdicts == ["downloaded"], "\(run.result)")
                #expect(
                    origin.requests.map { $0.header("authorization") }
                        == [String](repeating: "Basic bWU6c2VjcmV0", count: 2))
            }
        }
    }

    /// As UTF-8 in `Location`, which libcurl converts by the locale.
    @Test(arguments: ["C", "C.UTF-8"])
    func followsRedirectsToInternationalHosts(locale: String) async throws {
        try await withOrigin { origin in
            origin.serve(
                "/a.png", .redirect(to: origin.url("/b.png", host: "b\u{fc}cher.example")))
            origin.serve("/b.png", .image(Fixtures.png(seed: 1)))
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                var command = try workspace.prefetchCommand(
                    [origin.url("/a.png")],
                    ["--resolve", "xn--bcher-kva.example:\(origin.port):127.0.0.1"])
                command.environment["LANG"] = locale
                let run = try workspace.finish(await command.run(), entries: 1)
                #expect(run.report.verdicts == ["downloaded"], "\(run.result)")
                #expect(
                    origin.requests.last?.header("host")
                        == "xn--bcher-kva.example:\(origin.port)")
            }
        }
    }

    @Test func flagsOverrideProxiesOfTheEnvironment() async throws {
        try await withOrigin { proxy in
            let bytes = Fixtures.png(seed: 1)
            proxy.serve { _ in .image(bytes) }
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                func run(_ options: [String], _ environment: [String: String]) async throws {
                    var command = try workspace.prefetchCommand(
                        ["http://example.test/\(proxy.requests.count).png"],
                        options + ["--retry-failed"])
                    command.environment.merge(environment) { $1 }
                    _ = try workspace.finish(try await command.run())
                }
                let address = "http://me:SECRET@127.0.0.1:\(proxy.port)"
                try await run([], ["http_proxy": address])
                #expect(proxy.requests.count == 1)
                try await run([], ["HTTP_PROXY": address])
                try await run(["--proxy", ""], ["http_proxy": address])
                try await run(["--noproxy", ".test"], ["http_proxy": address])
                try await run([], ["http_proxy": address, "no_proxy": "example.test"])
                #expect(proxy.requests.count == 1)
                try workspace.write(Array((address + "\n").utf8), to: "proxy")
                try await run(["--proxy", "@proxy"], [:])
                try await run(["--noproxy", ""], ["ALL_PROXY": address, "NO_PROXY": "*"])
                #expect(proxy.requests.count == 3)
            }
        }
    }

    @Test func denyPrivateRefusesPrivateAddresses() async throws {
        try await withOrigin { origin in
            let urls = origin.serveImages(1)
            try await withWorkspace(without: [.retries, .probes]) { workspace in
                let run = try await workspace.prefetch(urls, "--deny-private")
                #expect(run.summary.exitStatus == 1)
                #expect(run.report.entries.map(\.reason) == ["refused-address"])
                #expect(origin.snapshot.connections == 0)
            }
        }
    }

    /// No file in the workspace holds a planted secret, nor do the streams.
    private func expectNoSecret(
        in workspace: Workspace, except: Set<String>, _ result: CommandResult
    ) throws {
        #expect(!result.output.contains("SECRET") && !result.error.contains("SECRET"))
        let secret = Data("SECRET".utf8)
        let files = try #require(FileManager.default.enumerator(atPath: workspace.folder))
        for case let name as String in files where !except.contains(name) {
            let path = workspace.folder + "/" + name
            var isFolder: ObjCBool = false
            guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder),
                !isFolder.boolValue
            else { continue }
            let data = try Data(contentsOf: URL(fileURLWithPath: path))
            #expect(data.range(of: secret) == nil, "\(name)")
        }
    }
}

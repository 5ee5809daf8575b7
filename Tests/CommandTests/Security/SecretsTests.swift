import Foundation
import TestSupport
import Testing

/// A marked secret in every place where a user or an origin can put one. It reaches its
/// recipients, and is found nowhere else.
@Suite(.timeLimit(.minutes(15)))
struct SecretsTests {
    /// The place of a secret, and its allowed recipients.
    private struct Plant: Sendable, CustomStringConvertible {
        let place: String
        /// The user's name, for a password.
        let user: String?
        /// The hosts that must receive it, or `proxy`.
        let hosts: Set<String>
        /// The only paths that it is sent with; nil for any.
        let paths: Set<String>?
        /// Whether the key of an image contains it, which is stored unchanged.
        let isKept: Bool
        let secret = "mark" + UUID().uuidString.replacing("-", with: "").lowercased()

        var description: String { place }

        /// As text, and in HTTP's Basic scheme.
        var forms: [String] {
            var forms = [secret]
            if let user {
                let pair = user.isEmpty ? "\(secret):" : "\(user):\(secret)"
                forms.append(Data(pair.utf8).base64EncodedString())
            }
            return forms
        }

        func isIn(_ text: String) -> Bool { forms.contains { text.contains($0) } }
        func isIn(_ data: Data) -> Bool { forms.contains { data.range(of: Data($0.utf8)) != nil } }
    }

    /// All secrets of one test.
    private final class Garden {
        private(set) var plants: [Plant] = []

        /// Makes a new secret for a place.
        func secret(
            _ place: String, user: String? = nil, to hosts: Set<String> = [],
            at paths: Set<String>? = nil, isKept: Bool = false
        ) -> String {
            plants.append(
                Plant(place: place, user: user, hosts: hosts, paths: paths, isKept: isKept))
            return plants[plants.count - 1].secret
        }

        /// Expects none in a text that anyone may read.
        func expectNone(in text: String, _ subject: String, allowsKept: Bool = false) {
            for plant in plants where !(allowsKept && plant.isKept) {
                #expect(!plant.isIn(text), "\(plant) is in \(subject)")
            }
        }

        /// Expects none in the workspace, except for the files that they were put into.
        func expectNone(
            in workspace: Workspace, except inputs: Set<String>,
            isolation: isolated (any Actor)? = #isolation
        ) async throws {
            let attributes = try await workspace.extendedAttributes()
            #expect(attributes.values.contains { $0.contains("user.xdg.origin.url=http") })
            let names = try FileManager.default.subpathsOfDirectory(atPath: workspace.folder)
            for name in names where !inputs.contains(name) {
                expectNone(in: name, "a file's name")
                let path = workspace.folder + "/" + name
                let mayKeep = name.hasPrefix("cache/")
                expectNone(
                    in: attributes[name] ?? "", "attributes of \(name)", allowsKept: mayKeep)
                // SQLite removes some files while the program runs.
                guard let data = FileManager.default.contents(atPath: path) else { continue }
                for plant in plants where !(mayKeep && plant.isKept) {
                    #expect(!plant.isIn(data), "\(plant) is in \(name)")
                }
            }
        }

        /// Expects each to have reached its recipients, and no other host.
        func expectOnlyForTheirHosts(_ requests: [(host: String, request: Origin.Request)]) {
            var reached: [String: Set<String>] = [:]
            for (host, request) in requests {
                let fields = request.headers.map { "\($0.name): \($0.value)\n" }.joined()
                for plant in plants where plant.isIn(request.target + "\n" + fields) {
                    reached[plant.place, default: []].insert(host)
                    let isMeant = plant.paths?.contains(request.path) ?? true
                    #expect(isMeant, "\(plant) is sent with \(request.target) to \(host)")
                }
            }
            for plant in plants {
                #expect(reached[plant.place, default: []] == plant.hosts, "\(plant)")
            }
        }
    }

    /// A picture that varies on everything secret: the cache records the sent fields.
    private static func picture(_ seed: Int) -> Response {
        var response = Response.image(Fixtures.png(seed: seed))
        response.headers.append(
            ("Vary", "X-Flag, X-File, X-Entry, Authorization, Cookie, Proxy-Authorization"))
        return response
    }

    private static func url(_ origin: Origin, _ path: String, user: String? = nil) -> String {
        origin.url(path, host: (user.map { $0 + "@" } ?? "") + "a.localhost")
    }

    /// Secrets in files and in the manifest; none is on the command line.
    @Test func secretsInFilesAndManifestsReachOnlyTheirRecipients() async throws {
        try await withOrigin { origin in
            let garden = Garden()
            let a: Set<String> = ["a.localhost"]
            let listed: Set<String> = ["a.localhost", "b.localhost"]
            func at(_ path: String, _ user: String? = nil) -> String {
                SecretsTests.url(origin, path, user: user)
            }
            let token = garden.secret("a token", to: a, at: ["/4"], isKept: true)
            let signature = garden.secret("a signature", to: a, at: ["/5"], isKept: true)
            let loop = garden.secret("a loop's token", to: a, at: ["/loop"], isKept: true)
            let other = garden.secret(
                "a redirect's signature", to: ["c.localhost"], at: ["/9"], isKept: true)
            let foreign = garden.secret("a redirect's user information", user: "x")
            func user(_ place: String, _ name: String, _ path: String? = nil) -> String {
                let hosts = path == nil ? [] : a
                return "\(name):"
                    + garden.secret(place, user: name, to: hosts, at: path.map { [$0] })
            }
            let lines = [
                at("/1") + " header=X-Entry:"
                    + garden.secret("an entry's header", to: a, at: ["/1"]),
                at("/2", user("a URL's password", "n2", "/2")),
                at("/3", garden.secret("a URL's user", user: "", to: a, at: ["/3"])),
                at("/4?token=\(token)"),
                at("/5?x=1&X-Amz-Signature=\(signature)"),
                at("/6#access_token=\(garden.secret("a fragment"))"),
                at("/8"), at("/hop/8"), at("/hop/9"),
                origin.url("/10", host: "b.localhost"),
                at("/loop?token=\(loop)"),
                // Failures state their reason.
                at("/missing", user("a missing picture's password", "n11", "/missing")),
                at("/reset", user("a broken transfer's password", "n12", "/reset")),
                "http://" + user("an unreachable host's password", "n13") + "@a.localhost:1/",
                "http://" + user("an unknown host's password", "n14") + "@nobody.invalid/",
                "http://" + user("a bad host's password", "n15") + "@[::bad/",
                "ftp://" + user("another scheme's password", "n16") + "@a.localhost/",
                at("/1") + " header=Host:" + garden.secret("a refused header"),
                at("/2", user("a duplicate's password", "n17")),
                at("/gate"),
            ]
            let gate = Gate()
            for index in 1...10 { origin.serve("/\(index)", SecretsTests.picture(index)) }
            var setting = SecretsTests.picture(8)
            let set = garden.secret("a cookie of the origin", to: a)
            setting.headers.append(("Set-Cookie", "set=\(set); Max-Age=3600; Path=/"))
            origin.serve("/1", setting)
            origin.serve(
                "/hop/8", .redirect(to: origin.url("/8", host: "x:\(foreign)@c.localhost")))
            origin.serve(
                "/hop/9", .redirect(301, to: origin.url("/9?sig=\(other)", host: "c.localhost")))
            origin.serve("/loop", .redirect(to: at("/loop?token=\(loop)")))
            // Long enough to be stored and resumed.
            var broken = Response.image(
                Fixtures.png(seed: 0) + [UInt8](repeating: 0, count: 3 << 20),
                ending: .resetAfter(bodyBytes: 2 << 20))
            broken.headers.append(("ETag", "\"strong\""))
            origin.serve("/reset", broken)
            origin.serve("/gate", .image(Fixtures.png(seed: 20), gate: gate))
            try await withWorkspace(without: [.retries, .probes, .stalls]) { workspace in
                let header = garden.secret("a header's file", to: listed)
                let password = garden.secret("a user's file", user: "me", to: listed)
                let cookie = garden.secret("a cookie jar", to: a)
                try workspace.write(Array("X-File: \(header)\n".utf8), to: "headers")
                try workspace.write(Array("me:\(password)\n".utf8), to: "user")
                try workspace.write(
                    Array("a.localhost\tFALSE\t/\tFALSE\t4000000000\tid\t\(cookie)\n".utf8),
                    to: "jar")
                let inputs: Set<String> = ["headers", "user", "jar", "manifest-1.txt"]
                #expect(garden.plants.count >= 20)

                let running = try workspace.prefetchCommand(
                    lines,
                    [
                        "--header", "@headers", "--user", "@user", "--cookie-jar", "jar", "-v",
                        "-j", "1", "--progress", "always", "--stall-timeout", "5m",
                        "--file-attributes",
                    ]
                ).start()
                try await origin.wait(for: "the last entry") { $0.count(of: "/gate") == 1 }
                try await eventually("what is kept is written") {
                    let written = ["", "-wal"].reduce(into: Data()) { written, suffix in
                        let path = workspace.cache + "/prefetch.sqlite" + suffix
                        written += FileManager.default.contents(atPath: path) ?? Data()
                    }
                    return [signature, other].allSatisfy {
                        written.firstRange(of: $0.utf8) != nil
                    }
                }
                try await garden.expectNone(in: workspace, except: inputs)
                let arguments = try #require(
                    FileManager.default.contents(atPath: "/proc/\(running.process)/cmdline"))
                #expect(arguments.firstRange(of: "--user".utf8) != nil)
                garden.expectNone(
                    in: String(decoding: arguments, as: UTF8.self), "the command line")
                gate.open()
                let run = try workspace.finish(await running.wait(), entries: lines.count)
                #expect(
                    run.summary.outcomes == ["downloaded": 11, "failed": 9],
                    "\(run.result)")
                garden.expectNone(in: run.result.output + run.result.error, "what a run says")
                try await garden.expectNone(in: workspace, except: inputs)

                // A later run validates its copies, and gets the same fields.
                for options in [["--refresh", "all"], ["--summary", "json"], ["-q"]] {
                    let next = try await workspace.prefetchCommand(
                        lines,
                        ["--header", "@headers", "--user", "@user", "--cookie-jar", "jar"]
                            + options
                    ).run()
                    garden.expectNone(in: next.output + next.error, "what \(options) says")
                }
                try await garden.expectNone(
                    in: workspace,
                    except: inputs.union((2...4).map { "manifest-\($0).txt" }))
                garden.expectOnlyForTheirHosts(origin.requests.map { ($0.host, $0) })
                for arguments in [
                    ["list"], ["list", "--json"], ["stats", "--json"], ["failed", "list"],
                    ["failed", "list", "--json"], ["get", lines[1]], ["get", "--json", lines[1]],
                    ["attr", "list", lines[1]], ["attr", "list", "--json", lines[1]],
                    ["get", lines[11]], ["get", lines[15]], ["attr", "rm", lines[2], "none"],
                    ["failed", "rm", lines[11]], ["failed", "rm", lines[15]],
                ] {
                    let result = try await workspace.command(arguments).run()
                    let shown = arguments.map { $0.prefix(12) }.joined(separator: " ")
                    // `list` prints keys, for use with `get`.
                    garden.expectNone(
                        in: result.output + result.error, shown,
                        allowsKept: arguments[0] == "list")
                }
            }
        }
    }

    /// Secrets on the command line, in the environment and in the home folder.
    @Test func secretsOfTheCommandReachOnlyTheirRecipients() async throws {
        try await withOrigin { origin in
            try await withOrigin { proxy in
                let garden = Garden()
                let a: Set<String> = ["a.localhost"]
                let b: Set<String> = ["b.localhost"]
                let listed = a.union(b)
                for server in [origin, proxy] {
                    server.serve { request in
                        request.path == "/hop"
                            ? .redirect(to: origin.url("/away", host: "c.localhost"))
                            : request.path == "/denied"
                                ? Response(407, body: Array("no".utf8))
                                : SecretsTests.picture(request.path.count)
                    }
                }
                try await withWorkspace(without: [.retries, .probes]) { workspace in
                    func run(
                        _ name: String, _ options: [String], _ environment: [String: String] = [:],
                        isDirect: Bool = true
                    ) async throws {
                        var lines = ["a", "b"].flatMap { host in
                            ["/\(name)", "/hop?\(name)"].map {
                                origin.url($0, host: "\(host).localhost")
                            }
                        }
                        lines.append("http://nobody.invalid/\(name)")
                        if !isDirect {
                            lines += [
                                "http://picture.test/\(name)", "http://picture.test/denied",
                            ]
                        }
                        var command = try workspace.prefetchCommand(
                            lines,
                            [
                                "-v", "--progress", "always", "--retry-failed", "--refresh", "all",
                                "--file-attributes",
                            ] + options)
                        command.environment.merge(environment) { $1 }
                        let run = try workspace.finish(await command.run(), entries: lines.count)
                        garden.expectNone(
                            in: run.result.output + run.result.error, "what \(name) says")
                        #expect(run.summary["downloaded"] + run.summary["failed"] == lines.count)
                    }
                    func proxyURL(_ place: String, _ port: Int? = nil) -> String {
                        let password = garden.secret(
                            place, user: "p", to: port == nil ? ["proxy"] : [])
                        return "http://p:\(password)@127.0.0.1:\(port ?? proxy.port)"
                    }
                    try await run(
                        "flags",
                        [
                            "--header", "X-Flag: \(garden.secret("a header", to: listed))",
                            "--header",
                            "Cookie: c=\(garden.secret("a header of cookies", to: listed))",
                            "--user", "me:\(garden.secret("--user", user: "me", to: listed))",
                        ])
                    try await run(
                        "bearer",
                        [
                            "--header",
                            "Authorization: Bearer \(garden.secret("a bearer", to: listed))",
                        ])
                    let base = garden.secret("--base-url", user: "base", to: a)
                    try workspace.manifest(["relative"], name: "relative.txt")
                    let relative = try await workspace.run(
                        "relative.txt", "--base-url",
                        SecretsTests.url(origin, "/", user: "base:\(base)"),
                        "-v")
                    #expect(relative.status == 0)
                    garden.expectNone(in: relative.output + relative.error, "--base-url")
                    for (name, options) in [
                        (".netrc", ["--netrc"]), ("other", ["--netrc-file", "other"]),
                        ("named", ["--netrc"]),
                    ] {
                        let password = garden.secret("netrc \(name)", user: "net", to: b)
                        try workspace.write(
                            Array("machine b.localhost login net password \(password)\n".utf8),
                            to: name)
                        try await run(
                            "netrc\(name)", options, name == "named" ? ["NETRC": "named"] : [:])
                    }
                    let direct = ["--noproxy", ".localhost"]
                    let named = proxyURL("--proxy")
                    try await run("proxy", ["--proxy", named] + direct, isDirect: false)
                    try workspace.write(
                        Array((proxyURL("a proxy's file") + "\n").utf8), to: "proxy")
                    try await run("file", ["--proxy", "@proxy"] + direct, isDirect: false)
                    try await run(
                        "variable", direct, ["http_proxy": proxyURL("http_proxy")],
                        isDirect: false)
                    try await run(
                        "all", direct, ["ALL_PROXY": proxyURL("ALL_PROXY")], isDirect: false)
                    // No server listens there.
                    try await run(
                        "dead", ["--proxy", proxyURL("a dead proxy", 1)] + direct, isDirect: false)
                    let bad = try await workspace.command([
                        "relative.txt", "--base-url",
                        "ftp://u:\(garden.secret("a bad --base-url", user: "u"))@a.localhost/",
                    ]).run()
                    #expect(bad.status != 0)
                    garden.expectNone(in: bad.output + bad.error, "a bad --base-url")

                    try await garden.expectNone(
                        in: workspace, except: [".netrc", "other", "named", "proxy"])
                    garden.expectOnlyForTheirHosts(
                        origin.requests.map { ($0.host, $0) } + proxy.requests.map { ("proxy", $0) }
                    )
                    for arguments in [["list", "--json"], ["failed", "list", "--json"]] {
                        let result = try await workspace.command(arguments).run()
                        garden.expectNone(
                            in: result.output + result.error, arguments.joined(separator: " "))
                    }
                }
            }
        }
    }
}

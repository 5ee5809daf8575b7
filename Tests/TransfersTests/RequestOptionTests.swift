import Foundation
import PrefetchModel
import TestSupport
import Testing

@testable import Transfers

/// The fields of requests, as the origin receives them.
@Suite(.timeLimit(.minutes(15)))
struct RequestOptionTests {
    private static func configuration(
        _ change: (inout RequestSettings) throws -> Void
    ) rethrows -> TransferConfiguration {
        var configuration = TransferConfiguration(userAgent: "prefetch-tests")
        try change(&configuration.requests)
        return configuration
    }

    private func field(_ line: String) throws -> HeaderField {
        try HeaderField(requestLine: line)
    }

    /// `a.test` and `b.test` both resolve to this origin.
    private func names(_ origin: Origin) throws -> [HostAddresses] {
        try ["a.test", "b.test", "c.test"].map {
            try #require(HostAddresses(text: "\($0):\(origin.port):127.0.0.1"))
        }
    }

    private func answering(_ origin: Origin) {
        origin.serve { _ in .image([1, 2, 3]) }
    }

    @Test func userFieldsReplaceOursAndEachOther() async throws {
        try await withOrigin { origin in
            answering(origin)
            let configuration = try Self.configuration {
                $0.fields = try ["X-Run: run", "x-both: run", "accept: image/png", "User-Agent:"]
                    .map { try HeaderField(requestLine: $0) }
            }
            try await withLoop(configuration) { loop in
                _ = await loop.get(origin.url("/plain"))
                let own = try [field("X-Both: entry"), field("X-Run:"), field("X-Own: 1")]
                _ = await loop.get {
                    TransferRequest(
                        id: $0, url: RequestURL(parsing: origin.url("/own")),
                        fields: [HeaderField(name: "If-None-Match", value: "\"e\"")],
                        userFields: own)
                }
                _ = await loop.get(origin.url("/plain"))
            }
            let requests = origin.requests
            #expect(requests.count == 3)
            for request in [requests[0], requests[2]] {
                #expect(request.header("X-Run") == "run")
                #expect(request.header("X-Both") == "run")
                #expect(request.header("Accept") == "image/png")
                #expect(request.header("User-Agent") == nil)
                #expect(request.header("X-Own") == nil)
                #expect(request.header("If-None-Match") == nil)
            }
            #expect(requests[1].header("X-Run") == nil)
            #expect(requests[1].header("X-Both") == "entry")
            #expect(requests[1].header("X-Own") == "1")
            #expect(requests[1].header("If-None-Match") == "\"e\"")
            #expect(requests[1].headers.count { $0.name.lowercased() == "x-both" } == 1)
            #expect(requests[1].headers.count { $0.name.lowercased() == "accept" } == 1)
        }
    }

    /// One handle sends all of them, one after another.
    @Test func foreignRequestsGetNothingOfTheListedOrigin() async throws {
        try await withOrigin { origin in
            answering(origin)
            let configuration = try Self.configuration {
                $0.fields = try ["X-Key: secret-run", "Cookie: c=secret-cookie"]
                    .map { try HeaderField(requestLine: $0) }
                $0.credentials = Credentials(text: "user:secret-password")
            }
            let entry = try [field("X-Entry: secret-entry")]
            let inside = "http://me:secret-url@127.0.0.1:\(origin.port)/"
            try await withLoop(configuration) { loop in
                for (path, isForeign) in [
                    ("listed", false), ("foreign", true), ("listed", false), ("foreign", true),
                ] {
                    for base in [origin.url("/"), inside] {
                        let completion = await loop.get {
                            TransferRequest(
                                id: $0, url: RequestURL(parsing: base + path), userFields: entry,
                                isForeign: isForeign)
                        }
                        #expect(completion.status == 200)
                    }
                }
            }
            #expect(origin.snapshot.connections == 1)
            let requests = origin.requests
            #expect(requests.count == 8)
            let user = "Basic " + Data("user:secret-password".utf8).base64EncodedString()
            let url = "Basic " + Data("me:secret-url".utf8).base64EncodedString()
            for (index, request) in requests.enumerated() {
                let isListed = request.path == "/listed"
                #expect(request.header("X-Key") == (isListed ? "secret-run" : nil))
                #expect(request.header("X-Entry") == (isListed ? "secret-entry" : nil))
                #expect(request.header("Cookie") == (isListed ? "c=secret-cookie" : nil))
                let expected = isListed ? (index % 2 == 0 ? user : url) : nil
                #expect(request.header("Authorization") == expected)
                #expect(request.header("Accept") == configuration.accept)
            }
        }
    }

    @Test func netrcCredentialsStayWithTheirHost() async throws {
        try await withOrigin { origin in
            answering(origin)
            let file = NSTemporaryDirectory() + "netrc-\(UUID().uuidString)"
            try Data("machine a.test login me password secret-netrc\n".utf8)
                .write(to: URL(fileURLWithPath: file))
            defer { try? FileManager.default.removeItem(atPath: file) }
            let configuration = try Self.configuration {
                $0.netrcFile = file
                $0.hostAddresses = try names(origin)
            }
            try await withLoop(configuration) { loop in
                for (host, isForeign) in [
                    ("a.test", false), ("b.test", false), ("a.test", true), ("b.test", true),
                    ("other:pw@a.test", false),
                ] {
                    let completion = await loop.get {
                        TransferRequest(
                            id: $0, url: RequestURL(parsing: "http://\(host):\(origin.port)/"),
                            isForeign: isForeign)
                    }
                    #expect(completion.status == 200)
                }
            }
            let netrc = "Basic " + Data("me:secret-netrc".utf8).base64EncodedString()
            let url = "Basic " + Data("other:pw".utf8).base64EncodedString()
            #expect(
                origin.requests.map { $0.header("Authorization") } == [netrc, nil, netrc, nil, url])
        }
    }

    @Test func cookiesStayWithTheirHostAndPersist() async throws {
        try await withOrigin { origin in
            origin.serve { request in
                var response = Response.image([1, 2, 3])
                if request.path == "/set" {
                    let host = request.header("Host")?.prefix { $0 != ":" } ?? ""
                    response.headers.append(
                        ("Set-Cookie", "id=of-\(host); Max-Age=3600; Path=/"))
                }
                return response
            }
            let file = NSTemporaryDirectory() + "jar-\(UUID().uuidString)"
            defer { try? FileManager.default.removeItem(atPath: file) }
            let configuration = try Self.configuration {
                $0.cookieJar = file
                $0.hostAddresses = try names(origin)
            }
            func get(_ url: String, _ loop: RunningLoop) async {
                #expect(await loop.get("http://" + url).status == 200)
            }
            try await withLoop(configuration) { loop in
                await get("a.test:\(origin.port)/set", loop)
                // On one handle and on another.
                async let first: Void = get("a.test:\(origin.port)/1", loop)
                async let second: Void = get("a.test:\(origin.port)/2", loop)
                async let third: Void = get("b.test:\(origin.port)/3", loop)
                _ = await (first, second, third)
            }
            let attributes = try FileManager.default.attributesOfItem(atPath: file)
            #expect(attributes[.posixPermissions] as? Int == 0o600)
            try await withLoop(configuration) { loop in
                await get("a.test:\(origin.port)/4", loop)
                await get("b.test:\(origin.port)/5", loop)
                await get("b.test:\(origin.port)/set", loop)
            }
            try await withLoop(configuration) { loop in
                await get("a.test:\(origin.port)/6", loop)
                await get("b.test:\(origin.port)/7", loop)
            }
            let cookies = Dictionary(
                origin.requests.map { ($0.path, $0.header("Cookie")) }, uniquingKeysWith: { $1 })
            for path in ["/1", "/2", "/4", "/6"] { #expect(cookies[path] == "id=of-a.test") }
            for path in ["/3", "/5"] { #expect(cookies[path] == .some(nil)) }
            #expect(cookies["/7"] == "id=of-b.test")
            let folder = URL(fileURLWithPath: file).deletingLastPathComponent().path
            let strays = try FileManager.default.contentsOfDirectory(atPath: folder)
                .filter { folder + "/" + $0 != file && (folder + "/" + $0).hasPrefix(file) }
            #expect(strays.isEmpty)
        }
    }

    /// The cookies of a flood: libcurl keeps all that it receives.
    enum CookieFlood: CaseIterable {
        case largeOnesOfAStranger, largeOnesOfKnownHosts, smallOnesOfAStranger

        var hosts: [String] { self == .largeOnesOfKnownHosts ? ["b.test", "c.test"] : ["a.test"] }
        var responses: Int { self == .smallOnesOfAStranger ? 70 : 50 }
        var cookies: Int { self == .smallOnesOfAStranger ? 60 : 40 }
        var valueBytes: Int { self == .smallOnesOfAStranger ? 1 : 4000 }
    }

    @Test(arguments: CookieFlood.allCases)
    func limitsTheMemoryOfCookies(flood: CookieFlood) async throws {
        try await withOrigin { origin in
            origin.serve { request in
                var response = Response.image([1, 2, 3])
                guard let number = Int(request.path.dropFirst()) else { return response }
                let value = String(repeating: "v", count: flood.valueBytes)
                for part in 0..<flood.cookies {
                    response.headers.append(
                        ("set-COOKIE", "c\(number)-\(part)=\(value); Max-Age=3600; Path=/none"))
                }
                return response
            }
            let file = NSTemporaryDirectory() + "jar-\(UUID().uuidString)"
            defer { try? FileManager.default.removeItem(atPath: file) }
            let known = (0..<200).map { "b.test\tFALSE\t/\tFALSE\t4000000000\tn\($0)\told\n" }
            let held = known.joined() + "c.test\tFALSE\t/\tFALSE\t4000000000\tn\told\n"
            try Data(held.utf8).write(to: URL(filePath: file))
            let configuration = try Self.configuration {
                $0.cookieJar = file
                $0.hostAddresses = try names(origin)
            }
            try await withLoop(configuration) { loop in
                for number in 0..<flood.responses {
                    for host in flood.hosts {
                        let url = "http://\(host):\(origin.port)/\(number)"
                        #expect(await loop.get(url).status == 200)
                    }
                }
                #expect(await loop.get("http://b.test:\(origin.port)/end").status == 200)
            }
            let text = try String(contentsOfFile: file, encoding: .utf8)
            #expect(text.utf8.count < held.utf8.count + 1 << 20)
            #expect(text.split(separator: "\n").count < 201 + 3000 + 2)
            // The file's cookies stay.
            #expect(text.components(separatedBy: "\told\n").count - 1 == 201)
            let last = try #require(origin.requests.last?.header("Cookie"))
            #expect(last.contains("=old"))
        }
    }

    @Test func anUnwritableJarIsALoopError() async throws {
        let configuration = Self.configuration { $0.cookieJar = "/nowhere/at/all/jar" }
        let loop = try TransferLoop(configuration: configuration) { Timestamp(milliseconds: 0) }
        loop.stop()
        #expect {
            try loop.run { _ in }
        } throws: {
            "\($0)" == "cookie jar /nowhere/at/all/jar: No such file or directory"
        }
    }

    @Test func dropsCookiesWithoutAJar() async throws {
        try await withOrigin { origin in
            var response = Response.image([1, 2, 3])
            response.headers.append(("Set-Cookie", "id=1"))
            origin.serve("/a", response)
            try await withLoop { loop in
                _ = await loop.get(origin.url("/a"))
                _ = await loop.get(origin.url("/a"))
            }
            #expect(origin.requests.map { $0.header("Cookie") } == [nil, nil])
        }
    }

    // MARK: Proxies and addresses

    @Test func onlyTheProxyGetsItsCredentials() async throws {
        try await withOrigin { proxy in
            try await withOrigin { origin in
                answering(proxy)
                answering(origin)
                var proxies = ProxySettings(
                    explicit: "http://me:secret-proxy@127.0.0.1:\(proxy.port)")
                proxies.exceptions = "127.0.0.1"
                let configuration = try Self.configuration {
                    $0.proxies = proxies
                    $0.hostAddresses = try names(origin)
                }
                try await withLoop(configuration) { loop in
                    let proxied = await loop.get("http://a.test:\(origin.port)/1")
                    #expect(proxied.status == 200)
                    #expect(proxied.address == nil)
                    let direct = await loop.get(origin.url("/2"))
                    #expect(direct.address == .loopback)
                    _ = await loop.get("http://a.test:\(origin.port)/3")
                    _ = await loop.get(origin.url("/4"))
                }
                #expect(
                    proxy.requests.map(\.target) == [
                        "http://a.test:\(origin.port)/1", "http://a.test:\(origin.port)/3",
                    ])
                let basic = "Basic " + Data("me:secret-proxy".utf8).base64EncodedString()
                #expect(
                    proxy.requests.allSatisfy { $0.header("Proxy-Authorization") == basic })
                #expect(origin.requests.map(\.path) == ["/2", "/4"])
                #expect(origin.requests.allSatisfy { $0.header("Proxy-Authorization") == nil })
            }
        }
    }

    @Test(arguments: [
        "127.0.0.1", "0x7f.1", "2130706433", "[::1]", "[::ffff:7f00:1]", "localhost", "LocalHost.",
        "a.localhost", "127.0.0.1.", "%31%32%37.0.0.1", "10.0.0.1", "169.254.169.254",
    ])
    func refusesAddressesInURLsThroughAProxy(host: String) async throws {
        try await withOrigin { proxy in
            answering(proxy)
            let configuration = Self.configuration {
                $0.proxies = ProxySettings(explicit: "127.0.0.1:\(proxy.port)")
                $0.deniesPrivate = true
            }
            try await withLoop(configuration) { loop in
                let refused = await loop.get("http://\(host):1/")
                #expect(refused.failure?.reason == .refusedAddress, "\(refused)")
                #expect(await loop.get("http://example.test/").status == 200)
                // The connection to the proxy is open now.
                let again = await loop.get("http://\(host):1/")
                #expect(again.failure?.reason == .refusedAddress)
            }
            #expect(proxy.requests.count == 1)
        }
    }

    @Test func triesTheNextAddressAfterARefusedOne() async throws {
        try await withOrigin { origin in
            answering(origin)
            let configuration = try Self.configuration {
                $0.hostAddresses = try [
                    "some.test:\(origin.port):169.254.1.1,[fe80::1],127.0.0.1",
                    "none.test:\(origin.port):169.254.1.1,[::ffff:169.254.1.2]",
                    "down.test:1:169.254.1.1,127.0.0.1",
                ].map { try #require(HostAddresses(text: $0)) }
            }
            try await withLoop(configuration) { loop in
                let some = await loop.get("http://some.test:\(origin.port)/")
                #expect(some.status == 200)
                #expect(some.address == .loopback)
                let none = await loop.get("http://none.test:\(origin.port)/")
                #expect(none.failure?.reason == .refusedAddress)
                let down = await loop.get("http://down.test:1/")
                #expect(down.failure?.reason == .connect)
            }
        }
    }

    @Test(arguments: [
        (RequestSettings.AddressFamily.any, true, true), (.ipv4, true, false),
        (.ipv6, false, true),
    ])
    func usesTheRequestedAddressFamily(
        family: RequestSettings.AddressFamily, ipv4: Bool, ipv6: Bool
    ) async throws {
        for (address, isReached) in [("127.0.0.1", ipv4), ("::1", ipv6)] {
            try await withOrigin(address: address) { origin in
                answering(origin)
                let configuration = Self.configuration { $0.addressFamily = family }
                try await withLoop(configuration) { loop in
                    // `localhost` has both families.
                    let completion = await loop.get("http://localhost:\(origin.port)/")
                    #expect((completion.status == 200) == isReached, "\(completion)")
                }
            }
        }
    }

    // MARK: Messages and failures

    @Test(arguments: [
        "http://me:SECRET@no-such-proxy.invalid:1", "http://me:SECRET@127.0.0.1:1",
        "socks9://me:SECRET@127.0.0.1:1", "http://me:SECRET@[::1:1", "http://me:SE%43RET@:99999",
    ])
    func messagesHoldNoPassword(proxy: String) async throws {
        let configuration = try Self.configuration {
            $0.proxies = ProxySettings(explicit: proxy)
            $0.credentials = Credentials(text: "me:SECRET")
            $0.fields = [try HeaderField(requestLine: "X-Key: SECRET")]
        }
        try await withLoop(configuration) { loop in
            for url in ["http://me:SECRET@a.test/", "https://me:SECRET@a.test/", "x://SECRET@a/"] {
                let completion = await loop.get(url)
                let message = try #require(completion.failure).message
                #expect(!message.contains("SECRET"), "\(message)")
            }
        }
    }

    /// A proxy's failure does not concern the origin: the user can correct it, or it is temporary.
    @Test func distinguishesFailuresOfProxies() async throws {
        try await withOrigin { proxy in
            proxy.serve("/", .image([1]))
            for (scheme, status, reason) in [
                ("http", 407, FailureReason.httpStatus), ("http", 502, .connect),
                ("socks5h", 200, .connect), ("socks4", 200, .connect),
            ] {
                proxy.serve { _ in Response(status) }
                let configuration = Self.configuration {
                    $0.proxies = ProxySettings(explicit: "\(scheme)://127.0.0.1:\(proxy.port)")
                }
                try await withLoop(configuration) { loop in
                    let completion = await loop.get("https://a.test/")
                    #expect(completion.failure?.reason == reason, "\(completion)")
                    #expect(completion.failure?.httpStatus == (status == 407 ? 407 : nil))
                }
            }
        }
    }

    /// Origins close idle connections at any time, even while a request is on its way.
    @Test(arguments: [Response.Ending.closedBeforeHead, .resetBeforeHead])
    func repeatsARequestOnAClosedConnection(ending: Response.Ending) async throws {
        try await withOrigin { origin in
            origin.serve("/first", .image([1]))
            origin.serve("/second", .image([1], ending: ending), .image([2]))
            var closing = Response.image([3])
            closing.closesSilently = true
            origin.serve("/third", closing)
            origin.serve("/fourth", .image([4]))
            try await withLoop { loop in
                for path in ["/first", "/second", "/third", "/fourth"] {
                    let completion = await loop.get(origin.url(path))
                    #expect(completion.status == 200, "\(path): \(completion)")
                }
            }
            #expect(
                origin.snapshot.paths == ["/first", "/second", "/second", "/third", "/fourth"])
        }
    }

    // MARK: Fields for Vary

    @Test func fieldsForVaryHoldNoSecret() throws {
        var configuration = try Self.configuration {
            $0.fields = try [
                "Authorization: Bearer SECRET", "Accept-Language: de", "X-Key: SECRET",
                "User-Agent:",
            ].map { try HeaderField(requestLine: $0) }
            $0.credentials = Credentials(text: "me:SECRET")
        }
        configuration.fingerprint = { "print of \($0.utf8.count)" }
        let own = [try HeaderField(requestLine: "x-key: SECRET2")]
        let url = "http://a.example/"
        let fields = configuration.requestFields(to: url, userFields: own)
        #expect(!"\(fields)".contains("SECRET"))
        #expect(fields.first("authorization") == "print of 13")
        #expect(fields.values(of: "x-key") == ["print of 7"])
        #expect(fields.first("accept-language") == "de")
        #expect(fields.first("user-agent") == nil)
        // `Vary` values stay the same, whatever formats a build asks for.
        #expect(fields.first("accept") == "image/jpeg, image/png, image/*;q=0.5, */*;q=0.1")
        configuration.accept = "image/avif, */*"
        #expect(configuration.requestFields(to: url, userFields: own) == fields)
        let foreign = configuration.requestFields(to: url, userFields: own, isForeign: true)
        #expect(foreign.map(\.name) == ["Accept", "Accept-Encoding", "User-Agent"])
        configuration.requests.fields = []
        #expect(configuration.requestFields(to: url).first("authorization") == "print of 9")
    }

    /// The fields about formats and the program are the ones of each hop's host.
    @Test func fieldsForVaryAreThoseOfTheHost() throws {
        var configuration = Self.configuration { $0.accept = "image/jpeg" }
        var host = configuration
        host.userAgent = "other"
        host.requests.accept = "image/png"
        configuration.hosts = HostTable([(try #require(HostPattern("b:81")), host)])
        let own = [try HeaderField(requestLine: "Accept: image/gif")]
        for (url, accept, agent) in [
            ("http://b:81/", "image/png", "other"), ("http://b/", "image/jpeg", "prefetch-tests"),
        ] {
            for isForeign in [false, true] {
                let fields = configuration.requestFields(to: url, isForeign: isForeign)
                #expect(fields.first("accept") == accept)
                #expect(fields.first("user-agent") == agent)
                let others = configuration.requestFields(
                    to: url, userFields: own, isForeign: isForeign)
                #expect(others.first("accept") == "image/gif")
            }
        }
        for isForeign in [false, true] {
            #expect(host.fieldLines(isForeign: isForeign) == ["Accept: image/png"])
            #expect(host.fieldLines(isForeign: isForeign, own) == ["Accept: image/gif"])
        }
    }
}

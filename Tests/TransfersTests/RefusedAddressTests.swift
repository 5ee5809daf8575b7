import Glibc
import PrefetchModel
import TestSupport
import Testing

@testable import Transfers

/// Refused addresses, on sockets that libcurl opens and on connections that it reuses.
@Suite(.timeLimit(.minutes(15)))
struct RefusedAddressTests {
    private static func denying() -> TransferConfiguration {
        var configuration = TransferConfiguration(userAgent: "prefetch-tests")
        configuration.requests.deniesPrivate = true
        return configuration
    }

    /// Spellings and names of this machine.
    static let loopbackHosts = [
        "127.0.0.1", "127.1", "127.0.1", "0x7f.1", "0x7f000001", "0x7F.0x0.0x0.0x1", "2130706433",
        "017700000001", "0177.0.0.1", "0177.0.0.01", "127.000.000.001", "%31%32%37.0.0.1",
        "localhost", "LOCALHOST", "0.0.0.0", "0", "0x0", "00000",
        "[::1]", "[0:0:0:0:0:0:0:1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
        "[::ffff:0.0.0.0]", "127.255.255.254",
    ]

    @Test(arguments: loopbackHosts)
    func refusesEverySpellingOfThisMachine(host: String) async throws {
        try await withOrigin { origin in
            origin.serve("/a", .image([1, 2, 3]))
            try await withLoop(Self.denying()) { loop in
                let completion = await loop.get("http://\(host):\(origin.port)/a")
                let failure = try #require(completion.failure, "\(completion)")
                #expect(failure.reason == .refusedAddress)
                #expect(
                    failure.message.contains("this machine") || failure.message.contains("loop"))
                #expect(completion.address == nil)
                // The same after a redirect from a public address.
                let redirected = await loop.get(
                    "http://\(host):\(origin.port)/a", addressRule: .redirectedFromPublic)
                #expect(redirected.failure?.reason == .refusedAddress)
            }
            #expect(origin.snapshot.connections == 0)
        }
    }

    /// libcurl takes these for names, which resolvers may answer.
    @Test(arguments: ["127.0.0.1.", "localhost.", "127.1.", "2130706433.", "0x7f.0.0.1."])
    func refusesAddressesWithATrailingFullStop(host: String) async throws {
        try await withOrigin { origin in
            try await withLoop(Self.denying()) { loop in
                let failure = await loop.get("http://\(host):\(origin.port)/a").failure
                #expect(failure?.reason == .dns || failure?.reason == .refusedAddress)
            }
            #expect(origin.snapshot.connections == 0)
        }
    }

    @Test(arguments: [
        "169.254.169.254", "0xa9fea9fe", "2852039166", "0251.0376.0251.0376", "169.254.43518",
        "[fe80::1]", "[fe80::1%25lo]", "[::ffff:169.254.169.254]", "[fd00:ec2::254]",
        "[2002:a9fe:a9fe::]", "[64:ff9b::169.254.169.254]", "100.100.100.200", "192.0.0.192",
        "224.0.0.1", "[ff02::1]", "255.255.255.255",
    ])
    func refusesLinkLocalAddressesByDefault(host: String) async throws {
        try await withLoop { loop in
            let completion = await loop.get("http://\(host):1/")
            #expect(completion.failure?.reason == .refusedAddress, "\(completion)")
        }
    }

    @Test(arguments: [
        "10.0.0.1", "172.16.5.4", "192.168.1.1", "100.64.0.1", "198.18.0.1", "240.0.0.1",
        "[fc00::1]", "[fec0::1]", "[::10.0.0.1]", "[2002:a00:1::]",
        "[2001:0:808:808:0:0:80ff:fffe]", "[2001:db8::5efe:192.168.0.1]", "0xa000001", "167772161",
    ])
    func refusesDeniedPrivateAddresses(host: String) async throws {
        try await withLoop(Self.denying()) { loop in
            let completion = await loop.get("http://\(host):1/")
            #expect(completion.failure?.reason == .refusedAddress, "\(completion)")
        }
    }

    @Test func checksTheRuleOnReusedConnections() async throws {
        try await withOrigin { origin in
            origin.serve("/a", .image([1, 2, 3]))
            try await withLoop { loop in
                let listed = await loop.get(origin.url("/a"))
                #expect(listed.status == 200)
                #expect(listed.address == .loopback)
                let redirected = await loop.get(
                    origin.url("/a"), addressRule: .redirectedFromPublic)
                let failure = try #require(redirected.failure)
                #expect(failure.reason == .refusedAddress)
                #expect(
                    failure.message
                        == "127.0.0.1 is a loopback address, "
                        + "and a redirect from a public one never leads there")
                // The refusal does not affect the handle's next request.
                #expect(await loop.get(origin.url("/a")).status == 200)
            }
            // The refused request was stopped before it was sent, on the connection or a new
            // socket.
            #expect(origin.snapshot.requests.count == 2)
        }
    }

    @Test func reportsTheFailureOfAnAllowedAddress() async throws {
        try await withLoop(Self.denying()) { loop in
            let completion = await loop.get("http://no-such-host.invalid/")
            #expect(completion.failure?.reason == .dns)
        }
        try await withLoop { loop in
            let completion = await loop.get("http://127.0.0.1:1/")
            #expect(completion.failure?.reason == .connect)
        }
    }

    /// Programs that we start must not inherit connections.
    @Test func socketsAreClosedOnExec() async throws {
        try await withOrigin { origin in
            origin.serve("/a", .image([1, 2, 3]))
            try await withLoop { loop in
                #expect(await loop.get(origin.url("/a")).status == 200)
                var found = 0
                for descriptor in 0..<Int32(4096) {
                    var peer = sockaddr_in()
                    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
                    let isNamed = withUnsafeMutablePointer(to: &peer) {
                        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                            getpeername(descriptor, $0, &length) == 0
                        }
                    }
                    guard isNamed, peer.sin_family == sa_family_t(AF_INET),
                        Int(UInt16(bigEndian: peer.sin_port)) == origin.port
                    else { continue }
                    found += 1
                    #expect(fcntl(descriptor, F_GETFD) & FD_CLOEXEC != 0)
                }
                #expect(found == 1)
            }
        }
    }
}

import Glibc
import PrefetchModel
import URLParsing

/// The kind of network that an IP address belongs to, for rules about addresses.
///
/// The ranges follow the IANA special-purpose registries for IPv4 and IPv6 (RFC 6890). The
/// documentation ranges (RFC 5737, RFC 3849, RFC 9637) are `global`: nothing is routed there, and
/// tests can use them for public hosts on one machine.
///
/// An IPv6 address that embeds an IPv4 address has that address's class, since a gateway, a tunnel
/// or the kernel connects there. If several classes apply, the strictest counts, the last case.
package enum AddressClass: Int, CaseIterable, Sendable {
    case global
    /// Behind a carrier's address translation (RFC 6598).
    case shared
    /// Reserved and not routed: 240.0.0.0/4 (RFC 1112 §4), benchmarks (RFC 2544), protocol
    /// assignments (RFC 6890), and unassigned IPv6.
    case reserved
    /// RFC 1918, unique local IPv6 (RFC 4193), site-local IPv6 (RFC 3879).
    case `private`
    case loopback
    /// 0.0.0.0/8 and `::`. Linux connects to loopback there.
    case unspecified
    /// This link (RFC 3927, RFC 4291 §2.5.6), and cloud metadata services, also elsewhere.
    case linkLocal
    case multicast
    case broadcast

    package init(ipv4 address: UInt32) {
        self = AddressClass.ipv4Ranges.first { $0.contains(address) }?.kind ?? .global
    }

    /// - Precondition: there are 16 bytes, in network order.
    package init(ipv6 bytes: [UInt8]) {
        precondition(bytes.count == 16, "an IPv6 address has 16 bytes")
        self = AddressClass.embeddedIPv4(bytes).map { AddressClass(ipv4: $0) }
            .reduce(AddressClass.plainIPv6(bytes)) { $0.rawValue >= $1.rawValue ? $0 : $1 }
    }

    /// The class of an address as `inet_pton` reads it, with or without an IPv6 zone (`%eth0`).
    /// Nil for anything else, including names and short or octal spellings.
    package init?(text: some StringProtocol) {
        var ipv4 = in_addr()
        if inet_pton(AF_INET, String(text), &ipv4) == 1 {
            self.init(ipv4: UInt32(bigEndian: ipv4.s_addr))
            return
        }
        var ipv6 = in6_addr()
        guard inet_pton(AF_INET6, String(text.prefix { $0 != "%" }), &ipv6) == 1 else {
            return nil
        }
        self.init(ipv6: withUnsafeBytes(of: &ipv6) { Array($0) })
    }

    /// As in `127.0.0.1 is DESCRIPTION`.
    package var description: String {
        switch self {
        case .global: "a public address"
        case .shared: "an address of shared space"
        case .reserved: "a reserved address"
        case .private: "a private address"
        case .loopback: "a loopback address"
        case .unspecified: "an unspecified address, which is this machine"
        case .linkLocal: "a link-local or metadata address"
        case .multicast: "a multicast address"
        case .broadcast: "the broadcast address"
        }
    }
}

// MARK: - The ranges

extension AddressClass {
    private struct IPv4Range {
        let base: UInt32
        let bits: UInt32
        let kind: AddressClass

        init(_ a: UInt32, _ b: UInt32, _ c: UInt32, _ d: UInt32, bits: UInt32, _ kind: AddressClass)
        {
            base = a << 24 | b << 16 | c << 8 | d
            self.bits = bits
            self.kind = kind
        }

        func contains(_ address: UInt32) -> Bool { (address ^ base) >> (32 - bits) == 0 }
    }

    /// The first range that contains an address counts.
    private static let ipv4Ranges = [
        // Instance metadata outside of the link-local range: Alibaba Cloud, Oracle Cloud Classic,
        // and the host's own service in Azure (WireServer).
        IPv4Range(100, 100, 100, 200, bits: 32, .linkLocal),
        IPv4Range(192, 0, 0, 192, bits: 32, .linkLocal),
        IPv4Range(168, 63, 129, 16, bits: 32, .linkLocal),
        IPv4Range(0, 0, 0, 0, bits: 8, .unspecified),
        IPv4Range(10, 0, 0, 0, bits: 8, .private),
        IPv4Range(100, 64, 0, 0, bits: 10, .shared),
        IPv4Range(127, 0, 0, 0, bits: 8, .loopback),
        IPv4Range(169, 254, 0, 0, bits: 16, .linkLocal),
        IPv4Range(172, 16, 0, 0, bits: 12, .private),
        IPv4Range(192, 0, 0, 0, bits: 24, .reserved),
        // Relays of 6to4, withdrawn by RFC 7526.
        IPv4Range(192, 88, 99, 0, bits: 24, .reserved),
        IPv4Range(192, 168, 0, 0, bits: 16, .private),
        IPv4Range(198, 18, 0, 0, bits: 15, .reserved),
        IPv4Range(224, 0, 0, 0, bits: 4, .multicast),
        IPv4Range(255, 255, 255, 255, bits: 32, .broadcast),
        IPv4Range(240, 0, 0, 0, bits: 4, .reserved),
    ]

    /// Instance metadata at unique local addresses: Amazon, Google, Oracle, Scaleway.
    private static let ipv6Metadata: [[UInt8]] = [
        [0xFD, 0, 0x0E, 0xC2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54],
        [0xFD, 0x20, 0, 0xCE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54],
        [0xFD, 0, 0, 0xC1, 0, 0, 0, 0, 0, 0, 0, 0, 0xA9, 0xFE, 0xA9, 0xFE],
        [0xFD, 0, 0, 0x42, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x42],
    ]

    /// The class by the IPv6 prefix alone; `global` for prefixes that embed IPv4 addresses.
    private static func plainIPv6(_ bytes: [UInt8]) -> AddressClass {
        if bytes.allSatisfy({ $0 == 0 }) { return .unspecified }
        if bytes.dropLast().allSatisfy({ $0 == 0 }), bytes[15] == 1 { return .loopback }
        if ipv6Metadata.contains(bytes) { return .linkLocal }
        switch (bytes[0], bytes[1]) {
        case (0xFF, _): return .multicast
        case (0xFE, 0x80...0xBF): return .linkLocal
        case (0xFE, 0xC0...0xFF), (0xFC...0xFD, _): return .private
        case (0x20, 0x01):
            // 2001:2::/48: benchmarks (RFC 5180); 2001:10::/27: identifiers (RFC 4843, RFC 7343).
            let isBenchmark = bytes[2..<6].elementsEqual([0, 2, 0, 0])
            let isIdentifier = bytes[2] == 0 && (0x10...0x2F).contains(bytes[3])
            return isBenchmark || isIdentifier ? .reserved : .global
        // Global unicast (RFC 4291 §2.5.4), as far as it is assigned.
        case (0x20...0x3F, _): return .global
        default: return embeddedIPv4(bytes).isEmpty ? .reserved : .global
        }
    }

    /// All IPv4 addresses that the address may embed; empty for most.
    private static func embeddedIPv4(_ bytes: [UInt8]) -> [UInt32] {
        func address(_ offsets: Int...) -> UInt32 {
            offsets.reduce(0) { $0 << 8 | UInt32(bytes[$1]) }
        }
        let last = address(12, 13, 14, 15)
        var found: [UInt32] = []
        // Compatible, mapped (RFC 4291 §2.5.5), translated (RFC 7915); not `::` and `::1`.
        if bytes.prefix(8).allSatisfy({ $0 == 0 }) {
            switch (address(8, 9, 10, 11), last) {
            case (0, 0), (0, 1): break
            case (0, _), (0xFFFF, _), (0xFFFF_0000, _): found.append(last)
            default: break
            }
        }
        if bytes.starts(with: [0, 0x64, 0xFF, 0x9B]) {
            if bytes[4..<12].allSatisfy({ $0 == 0 }) {
                // NAT64 with the well-known prefix (RFC 6052 §2.1).
                found.append(last)
            } else if bytes[4] == 0, bytes[5] == 1 {
                // NAT64 within a network (RFC 8215). The prefix has 48, 56, 64 or 96 bits, which
                // only that network knows. So the address may be at any of these places (RFC 6052
                // §2.2). A candidate that begins with a zero byte is taken for prefix or padding.
                let candidates = [
                    last, address(6, 7, 9, 10), address(7, 9, 10, 11), address(9, 10, 11, 12),
                ]
                found += candidates.filter { $0 >> 24 != 0 }
            }
        }
        // 6to4 (RFC 3056 §2).
        if bytes[0] == 0x20, bytes[1] == 0x02 { found.append(address(2, 3, 4, 5)) }
        // Teredo: the server, and the client with its bits inverted (RFC 4380 §4).
        if bytes.starts(with: [0x20, 0x01, 0, 0]) {
            found += [address(4, 5, 6, 7), ~last]
        }
        // ISATAP, under any prefix (RFC 5214 §6.1).
        if bytes[8] & ~0x02 == 0, bytes[9...11].elementsEqual([0, 0x5E, 0xFE]) {
            found.append(last)
        }
        return found
    }
}

extension AddressClass {
    /// The class of a URL's address, or of `localhost` (RFC 6761 §6.3); nil for other names.
    init?(hostOf url: RequestURL) {
        var host = String(url.host)
        if host.hasSuffix(".") {
            // Resolvers drop it, and may find a number in front of it.
            host.removeLast()
            let parsed = try? URLParser().parse("http://\(host)/".utf8)
            host = parsed.map { String($0.host) } ?? host
        }
        if host.hasPrefix("[") { host = String(host.dropFirst().prefix { $0 != "]" }) }
        if host == "localhost" || host.hasSuffix(".localhost") {
            self = .loopback
        } else {
            self.init(text: host)
        }
    }
}

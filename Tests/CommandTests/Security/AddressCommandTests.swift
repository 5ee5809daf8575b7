import TestSupport
import Testing

/// The addresses that the program connects to, in a network where every address responds: over 70
/// spellings, listed, as redirect targets and behind names.
@Suite(
    .timeLimit(.minutes(15)),
    .enabled(if: Namespace.allowsAddresses, "no network namespace can be made here"))
struct AddressCommandTests {
    enum Kind: Hashable, Sendable {
        case open
        /// This machine, private networks, shared and reserved space.
        case inside
        /// Also metadata services at other addresses.
        case linkLocal
        /// Multicast and broadcast, which cannot be fetched from.
        case nowhere
    }

    struct Spelling: Sendable {
        /// The spelling in a URL.
        let host: String
        /// The spelling for `--resolve`.
        let address: String
        let kind: Kind
    }

    static let spellings: [Spelling] = {
        func rows(_ kind: Kind, _ rows: [(String, String)]) -> [Spelling] {
            rows.map { Spelling(host: $0, address: $1, kind: kind) }
        }
        func plain(_ kind: Kind, _ addresses: String...) -> [Spelling] {
            addresses.map {
                Spelling(host: $0.contains(":") ? "[\($0)]" : $0, address: $0, kind: kind)
            }
        }
        return plain(
            .open, "203.0.113.7", "198.51.100.9", "8.8.8.8", "2001:db8::7", "2606:4700::1111",
            "::ffff:8.8.8.8", "::8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1",
            "100.63.255.255", "172.32.0.1", "169.253.0.1")
            + rows(
                .open,
                [
                    ("0xcb007107", "203.0.113.7"), ("3405803783", "203.0.113.7"),
                    ("0313.0.0161.07", "203.0.113.7"),
                ])
            + plain(
                .inside, "127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1",
                "172.16.5.4", "192.168.1.1", "100.64.0.1", "198.18.0.1", "192.0.0.8",
                "240.0.0.1", "::1", "::", "fc00::1", "fd12:3456::1", "fec0::1", "100::1",
                "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:0.0.0.0", "::10.0.0.1",
                "::ffff:0:7f00:1", "64:ff9b::127.0.0.1", "64:ff9b:1::10.0.0.1", "2002:7f00:1::",
                "2002:c0a8:101::1", "2001:0:808:808:0:0:80ff:fffe",
                "2001:0:a00:1:0:0:f7f7:f7f7", "2001:db8::5efe:192.168.0.1")
            + rows(
                .inside,
                [
                    ("127.1", "127.0.0.1"), ("127.0.1", "127.0.0.1"), ("0x7f.1", "127.0.0.1"),
                    ("0x7f000001", "127.0.0.1"), ("0X7F.0x0.0x0.0x1", "127.0.0.1"),
                    ("2130706433", "127.0.0.1"), ("017700000001", "127.0.0.1"),
                    ("0177.0.0.01", "127.0.0.1"), ("127.000.000.001", "127.0.0.1"),
                    ("%31%32%37.0.0.1", "127.0.0.1"), ("localhost", "127.0.0.1"),
                    ("LocalHost", "::1"), ("deep.in.localhost", "127.0.0.1"), ("0", "0.0.0.0"),
                    ("0x0", "0.0.0.0"), ("00000", "0.0.0.0"), ("[0:0:0:0:0:0:0:1]", "::1"),
                    ("[::FFFF:7F00:1]", "::ffff:7f00:1"), ("0xa000001", "10.0.0.1"),
                    ("167772161", "10.0.0.1"), ("192.168.257", "192.168.1.1"),
                    ("0300.0250.1.1", "192.168.1.1"),
                ])
            + plain(
                .linkLocal, "169.254.169.254", "169.254.0.1", "100.100.100.200", "192.0.0.192",
                "168.63.129.16", "fe80::1", "febf::1", "fd00:ec2::254", "fd20:ce::254",
                "::ffff:169.254.169.254", "::169.254.169.254", "64:ff9b::a9fe:a9fe",
                "2002:a9fe:a9fe::", "2001:0:808:808:0:0:5601:5601")
            + rows(
                .linkLocal,
                [
                    ("0xa9fea9fe", "169.254.169.254"), ("2852039166", "169.254.169.254"),
                    ("0251.0376.0251.0376", "169.254.169.254"),
                    ("169.254.43518", "169.254.169.254"), ("[fe80::1%25lo]", "fe80::1"),
                    ("[::FFFF:A9FE:A9FE]", "::ffff:a9fe:a9fe"),
                ])
            + plain(.nowhere, "224.0.0.1", "239.255.255.255", "255.255.255.255", "ff02::1")
    }()

    /// The way in which the program learns an address.
    enum Way: String, Sendable {
        case listed
        case named
        case redirectedFromOutside
        case redirectedFromInside
        case redirectedFromOutsideToName
        /// From a private to a public host, and from there on.
        case redirectedTwice
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let way: Way
        let options: [String]
        let allowed: Set<Kind>

        var testDescription: String { ([way.rawValue] + options).joined(separator: " ") }
    }

    static let cases = [
        Case(way: .listed, options: [], allowed: [.open, .inside]),
        Case(way: .listed, options: ["--deny-private"], allowed: [.open]),
        Case(way: .listed, options: ["--allow-link-local"], allowed: [.open, .inside, .linkLocal]),
        Case(way: .named, options: [], allowed: [.open, .inside]),
        Case(way: .named, options: ["--deny-private"], allowed: [.open]),
        Case(way: .redirectedFromOutside, options: [], allowed: [.open]),
        Case(way: .redirectedFromOutside, options: ["--deny-private"], allowed: [.open]),
        // Permissions for listed addresses do not apply: the user has not listed this one.
        Case(way: .redirectedFromOutside, options: ["--allow-link-local"], allowed: [.open]),
        Case(way: .redirectedFromOutsideToName, options: [], allowed: [.open]),
        Case(way: .redirectedFromInside, options: [], allowed: [.open, .inside]),
        Case(way: .redirectedTwice, options: [], allowed: [.open]),
    ]

    @Test(arguments: cases)
    func connectsToAllowedAddressesOnly(test: Case) async throws {
        try await withWorkspace(without: [.retries, .probes]) { workspace in
            let spellings = AddressCommandTests.spellings
            #expect(spellings.count >= 60)
            #expect(Set(spellings.map(\.host)).count == spellings.count)
            try workspace.write(Fixtures.png(seed: 1), to: "picture.png")
            let names = spellings.indices.flatMap { index in
                ["--resolve", "n\(index).test:80:\(spellings[index].address)"]
            }
            let isNamed = test.way == .named || test.way == .redirectedFromOutsideToName
            let command = try workspace.prefetchCommand(
                spellings.indices.map { line(of: $0, test.way) },
                ["--connect-timeout", "30s"] + (isNamed ? names : []) + test.options)
            let run = try workspace.finish(
                await Namespace.answeringEverywhere(
                    command, log: workspace.folder + "/log",
                    picture: workspace.folder + "/picture.png"
                ).run(), entries: spellings.count)
            let log = try EverywhereLog(contentsOfFile: workspace.folder + "/log")
            var asked: Set<String> = []
            for (index, spelling) in spellings.enumerated() {
                let entry = try #require(run.report[line: index + 1])
                guard test.allowed.contains(spelling.kind) else {
                    #expect(
                        entry.verdict == "failed/refused-address",
                        "\(spelling): \(entry.message ?? "")")
                    continue
                }
                if ["fe80::1", "febf::1"].contains(spelling.address), !spelling.host.contains("%") {
                    // The link is unknown.
                    #expect(entry.verdict == "failed/connect", "\(spelling)")
                    continue
                }
                #expect(entry.verdict == "downloaded", "\(spelling): \(entry.message ?? "")")
                asked.insert("/picture/\(index)")
            }
            let pictures = log.requests.filter { $0.target.hasPrefix("/picture/") }
            #expect(Set(pictures.map(\.target)) == asked)
            #expect(pictures.count == asked.count)
            // No connection was opened without a request.
            #expect(log.connections == Set(log.requests.map(\.address)))
        }
    }

    private func line(of index: Int, _ way: Way) -> String {
        let spelling = AddressCommandTests.spellings[index]
        let direct = "http://\(spelling.host)/picture/\(index)"
        let named = "http://n\(index).test/picture/\(index)"
        let outside = index.isMultiple(of: 2) ? "203.0.113.7" : "[2001:db8::7]"
        return switch way {
        case .listed: direct
        case .named: named
        case .redirectedFromOutside: "http://\(outside)/to?\(direct)"
        case .redirectedFromInside: "http://127.0.0.1/to?\(direct)"
        case .redirectedFromOutsideToName: "http://\(outside)/to?\(named)"
        case .redirectedTwice: "http://127.0.0.1/to?http://\(outside)/to?\(direct)"
        }
    }
}

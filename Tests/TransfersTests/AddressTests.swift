import PrefetchModel
import Testing

@testable import Transfers

/// The classes of addresses, and the rules about them.
@Suite(.timeLimit(.minutes(15)))
struct AddressTests {
    static let classes: [(String, AddressClass)] = [
        // IPv4, both ends of each range and their neighbours.
        ("0.0.0.0", .unspecified), ("0.255.255.255", .unspecified), ("1.0.0.0", .global),
        ("9.255.255.255", .global), ("10.0.0.0", .private), ("10.255.255.255", .private),
        ("11.0.0.0", .global), ("100.63.255.255", .global), ("100.64.0.0", .shared),
        ("100.127.255.255", .shared), ("100.128.0.0", .global), ("100.100.100.200", .linkLocal),
        ("100.100.100.201", .shared), ("126.255.255.255", .global), ("127.0.0.0", .loopback),
        ("127.0.0.1", .loopback), ("127.255.255.255", .loopback), ("128.0.0.0", .global),
        ("168.63.129.16", .linkLocal), ("168.63.129.17", .global), ("169.253.255.255", .global),
        ("169.254.0.0", .linkLocal), ("169.254.169.254", .linkLocal),
        ("169.254.255.255", .linkLocal), ("169.255.0.0", .global), ("172.15.255.255", .global),
        ("172.16.0.0", .private), ("172.31.255.255", .private), ("172.32.0.0", .global),
        ("192.0.0.0", .reserved), ("192.0.0.192", .linkLocal), ("192.0.0.255", .reserved),
        ("192.0.1.0", .global), ("192.0.2.1", .global), ("192.88.99.1", .reserved),
        ("192.167.255.255", .global), ("192.168.0.0", .private), ("192.168.255.255", .private),
        ("192.169.0.0", .global), ("198.17.255.255", .global), ("198.18.0.0", .reserved),
        ("198.19.255.255", .reserved), ("198.20.0.0", .global), ("198.51.100.7", .global),
        ("203.0.113.7", .global), ("223.255.255.255", .global), ("224.0.0.0", .multicast),
        ("239.255.255.255", .multicast), ("240.0.0.0", .reserved), ("255.255.255.254", .reserved),
        ("255.255.255.255", .broadcast),
        // IPv6.
        ("::", .unspecified), ("::1", .loopback), ("0:0:0:0:0:0:0:1", .loopback),
        ("2001:db8::1", .global), ("2606:4700::1111", .global), ("3fff::1", .global),
        ("fbff::1", .reserved), ("fc00::", .private), ("fd12:3456::1", .private),
        ("fdff:ffff::1", .private), ("fe00::1", .reserved), ("fe80::1", .linkLocal),
        ("fe80::1%eth0", .linkLocal), ("febf::1", .linkLocal), ("fec0::1", .private),
        ("feff::1", .private), ("ff02::1", .multicast), ("fd00:ec2::254", .linkLocal),
        ("fd00:ec2::255", .private), ("fd20:ce::254", .linkLocal),
        ("fd00:c1::a9fe:a9fe", .linkLocal), ("fd00:42::42", .linkLocal), ("100::1", .reserved),
        ("4000::1", .reserved), ("5f00::1", .reserved), ("2001:2::1", .reserved),
        ("2001:3::1", .global), ("2001:1f::1", .reserved), ("2001:2f:ffff::1", .reserved),
        ("2001:30::1", .global),
        // Mapped, compatible and translated IPv4.
        ("::ffff:127.0.0.1", .loopback), ("::ffff:7f00:1", .loopback),
        ("::ffff:10.1.2.3", .private), ("::ffff:169.254.169.254", .linkLocal),
        ("::ffff:0.0.0.0", .unspecified), ("::ffff:8.8.8.8", .global),
        ("::ffff:255.255.255.255", .broadcast), ("::127.0.0.1", .loopback),
        ("::192.168.0.1", .private), ("::8.8.8.8", .global), ("::2", .unspecified),
        ("::ffff:0:127.0.0.1", .loopback), ("::ffff:0:8.8.8.8", .global),
        ("::fffe:127.0.0.1", .reserved),
        // 6to4.
        ("2002:7f00:1::", .loopback), ("2002:a00:1::1", .private), ("2002:a9fe:a9fe::", .linkLocal),
        ("2002:808:808::1", .global), ("2002:c0a8:101:1:2:3:4:5", .private),
        // NAT64 with the well-known prefix and with one of each length within a network.
        ("64:ff9b::127.0.0.1", .loopback), ("64:ff9b::a9fe:a9fe", .linkLocal),
        ("64:ff9b::8.8.8.8", .global), ("64:ff9b:0:0:0:1::", .reserved),
        ("64:ff9b:1::127.0.0.1", .loopback), ("64:ff9b:1::8.8.8.8", .global),
        ("64:ff9b:1:7f00:0:100::", .loopback), ("64:ff9b:1:ab0a:1:203::", .private),
        ("64:ff9b:1:abcd:c0:a801:100:0", .private), ("64:ff9b:1:abcd::10.0.0.1", .private),
        ("64:ff9b:2::10.0.0.1", .reserved),
        // Teredo: a public server and the inverted client, and a private server.
        ("2001:0:808:808:0:0:f7f7:f7f7", .global), ("2001:0:808:808:0:0:80ff:fffe", .loopback),
        ("2001:0:808:808:0:0:5601:5601", .linkLocal), ("2001:0:a00:1:0:0:f7f7:f7f7", .private),
        // ISATAP under a public, a private and a link-local prefix.
        ("2001:db8::5efe:10.0.0.1", .private), ("2001:db8::200:5efe:127.0.0.1", .loopback),
        ("2001:db8::5efe:8.8.8.8", .global), ("fd00::5efe:8.8.8.8", .private),
        ("fe80::5efe:8.8.8.8", .linkLocal), ("2001:db8::100:5efe:10.0.0.1", .global),
    ]

    @Test(arguments: classes)
    func classifies(text: String, expected: AddressClass) {
        #expect(AddressClass(text: text) == expected)
    }

    @Test(arguments: [
        "", "localhost", "127.1", "0x7f.0.0.1", "2130706433", "0177.0.0.1", "127.0.0.1.",
        "127.0.0.1%eth0", " 127.0.0.1", "[::1]", ":::", "1.2.3.4.5",
    ])
    func rejectsOtherText(text: String) {
        #expect(AddressClass(text: text) == nil)
    }

    @Test(arguments: AddressClass.allCases)
    func listedURLsMayUseAllButLinkLocalAddresses(kind: AddressClass) {
        let refused: Set<AddressClass> = [.linkLocal, .multicast, .broadcast]
        let rule = AddressRule.listed(allowsLinkLocal: false)
        #expect((rule.refusal(of: kind) != nil) == refused.contains(kind))
        let allowing = AddressRule.listed(allowsLinkLocal: true)
        #expect(
            (allowing.refusal(of: kind) != nil)
                == refused.subtracting([.linkLocal]).contains(kind))
    }

    @Test(arguments: AddressClass.allCases, [AddressRule.publicOnly, .redirectedFromPublic])
    func otherRulesAllowOnlyPublicAddresses(kind: AddressClass, rule: AddressRule) {
        #expect((rule.refusal(of: kind) == nil) == (kind == .global))
    }

    @Test func redirectsKeepTheRuleOfTheirSource() {
        var configuration = TransferConfiguration(userAgent: "")
        configuration.requests.allowsLinkLocal = true
        for kind in AddressClass.allCases {
            let expected: AddressRule =
                kind == .global ? .redirectedFromPublic : .listed(allowsLinkLocal: true)
            #expect(configuration.addressRule(afterRedirectFrom: kind) == expected)
        }
        #expect(configuration.addressRule(afterRedirectFrom: nil) == .redirectedFromPublic)
        configuration.requests.deniesPrivate = true
        #expect(configuration.listedAddressRule == .publicOnly)
        #expect(configuration.addressRule(afterRedirectFrom: .private) == .publicOnly)
    }
}

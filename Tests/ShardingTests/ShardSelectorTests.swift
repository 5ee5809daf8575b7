import PrefetchModel
import SeededRandom
import Testing

@testable import Sharding

@Suite(.timeLimit(.minutes(15)))
struct ShardSelectorTests {
    init() throws {
        try RegistrableDomain.load()
    }

    private func withBytes<Result>(
        _ text: String, _ body: (UnsafeRawBufferPointer) -> Result
    ) -> Result {
        var text = text
        return text.withUTF8 { body(UnsafeRawBufferPointer($0)) }
    }

    @Test(arguments: [
        ("https://example.com/", "example.com"),
        ("http://img.cdn.example.co.uk:8080/a?b#c", "example.co.uk"),
        ("https://user:pass@www.example.org/@x", "example.org"),
        ("https://a:b@c:d@www.example.org:81/", "example.org"),
        ("https://www.example.com./a", "example.com"),
        ("https://someone.github.io/x.png", "someone.github.io"),
        ("https://github.io/x.png", "github.io"),
        ("http://localhost:1234/", "localhost"),
        ("http://h1.localhost/", "h1.localhost"),
        ("http://127.0.0.1:80/", "127.0.0.1"),
        ("http://[::1]:8080/a", "[::1]"),
        ("http://[fe80::1%25eth0]/", "[fe80::1%25eth0]"),
        ("http://www.xn--bcher-kva.example/", "xn--bcher-kva.example"),
        ("http://4chan.example7/", "4chan.example7"),
    ])
    func findsRegistrableDomain(_ url: String, _ domain: String) {
        #expect(withBytes(url) { ShardSelector.domain(ofURL: $0) } == domain)
    }

    /// Values of another implementation: `int.from_bytes(sha256(domain)[:8], "big") % count`.
    @Test(arguments: [
        ("https://a.example.com/1", 7, 5),
        ("https://a.example.com/1", 1000, 309),
        ("http://x.example.co.uk/", 8, 2),
        ("http://127.0.0.1:99/", 1000, 852),
        ("http://[::1]/", 1000, 709),
    ])
    func hashIsStable(_ url: String, _ count: Int, _ shard: Int) throws {
        let selector = ShardSelector(count: count)
        #expect(withBytes(url, selector.shards) == [shard])
    }

    /// Also when the memory of hosts has forgotten some.
    @Test func everyURLOfADomainHasOneShard() throws {
        let selector = ShardSelector(count: 11)
        var random = SplitMix(seed: 7)
        var shards: [Int: Int] = [:]
        var used: Set<Int> = []
        for _ in 0..<300_000 {
            let domain = Int.random(in: 0..<100_000, using: &random)
            let url = "https://h\(domain % 3).d\(domain).example/\(Int.random(in: 0..<9))"
            let shard = withBytes(url, selector.shards)[0]
            #expect(shards[domain, default: shard] == shard)
            shards[domain] = shard
            used.insert(shard)
        }
        #expect(used == Set(0..<11))
    }

    @Test func longHostsAreNotTruncated() throws {
        let selector = ShardSelector(count: 1000)
        let label = String(repeating: "a", count: 60)
        let shards = (0..<50).map { number in
            withBytes("https://\(label).d\(number).example/", selector.shards)
        }
        #expect(Set(shards).count > 40)
        let again = (0..<50).map { number in
            withBytes("https://b.d\(number).example/", selector.shards)
        }
        #expect(again == shards)
    }

    @Test func refusesShardsOutsideTheRange() {
        for (index, count) in [(-1, 3), (3, 3), (0, 0), (0, 100_001)] {
            #expect(Shard(index: index, count: count) == nil)
        }
    }
}

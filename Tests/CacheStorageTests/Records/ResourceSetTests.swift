import SeededRandom
import Testing

@testable import CacheStorage

@Suite(.timeLimit(.minutes(15)))
struct ResourceSetTests {
    /// Dense identifiers as SQLite assigns them, and extreme ones from a hostile database.
    @Test func containsInsertedIdentifiers() {
        let far: [Int64] = [.min, -1, 1 << 40, .max, (1 << 35) - 1, 1 << 35]
        let some = (0..<70_000).filter { $0 % 3 == 0 }.map(Int64.init) + far
        var set = ResourceSet()
        for _ in 0..<2 {
            for resource in some.shuffled() where !set.contains(resource) {
                let isNew = set.insert(resource)
                #expect(isNew)
            }
        }
        for resource in some {
            let isNew = set.insert(resource)
            #expect(!isNew)
        }
        let others = (0..<70_000).filter { $0 % 3 != 0 }.map(Int64.init) + far.map { $0 ^ 2 }
        #expect(!others.contains(where: set.contains))
    }

    @Test func formsUnionsAndComparesSets() {
        var (even, all) = (ResourceSet(), ResourceSet())
        for id in stride(from: Int64(0), to: 100_000, by: 2) { even.insert(id) }
        for id in Int64(0)..<100_001 { all.insert(id) }
        #expect(even != all)
        #expect(even.count == 50_000)
        var joined = even
        for id in stride(from: Int64(1), to: 100_001, by: 2) { joined.insert(id) }
        joined.formUnion(even)
        joined.insert(100_000)
        #expect(joined == all)
        var small = ResourceSet()
        small.insert(7)
        small.formUnion(all)
        #expect(small == all && ResourceSet() != small && ResourceSet().isEmpty)
        #expect(!all.isEmpty)
    }

    /// A million identifiers take at most 125 KB.
    @Test(arguments: [1, 2, 3, 7, 100, 5000])
    func compressesToFewBytes(step: Int64) throws {
        var random = SplitMix(seed: UInt64(step))
        var set = ResourceSet()
        for id in Int64(0)..<1_000_000
        where step == 1 || Int64.random(in: 0..<step, using: &random) == 0 {
            set.insert(id)
        }
        let bytes = set.compressed
        #expect(bytes.count < 127_000)
        if step == 1 { #expect(bytes.count < 1000) }
        let back = try #require(ResourceSet(compressed: bytes, largestResource: 1_000_000))
        #expect(back == set)
        #expect(ResourceSet(compressed: bytes, largestResource: 10_000) == nil)
    }

    @Test func storesAnEmptySet() throws {
        let back = ResourceSet(compressed: ResourceSet().compressed, largestResource: 0)
        #expect(back == ResourceSet())
    }

    /// Damaged bytes are either rejected or decode without a crash.
    @Test func rejectsDamagedBytes() {
        var random = SplitMix(seed: 5)
        var set = ResourceSet()
        for id in stride(from: Int64(0), to: 200_000, by: 3) { set.insert(id) }
        let bytes = set.compressed
        #expect(ResourceSet(compressed: [], largestResource: 1 << 40) == nil)
        for count in 0..<min(bytes.count, 300) {
            #expect(
                ResourceSet(compressed: Array(bytes.prefix(count)), largestResource: 1 << 40) == nil
            )
        }
        for _ in 0..<500 {
            var damaged = bytes
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let place = Int.random(in: 0..<damaged.count, using: &random)
                damaged[place] ^= UInt8.random(in: 1...255, using: &random)
            }
            // zlib's checksum detects all of these.
            if let read = ResourceSet(compressed: damaged, largestResource: 1 << 20) {
                #expect(read == set)
            }
        }
    }
}

import Foundation
import Hashing
import PrefetchModel
import Testing
import Threading

@testable import CacheStorage

@Suite(.timeLimit(.minutes(15)))
struct FreshnessIndexTests {
    private let folder: TemporaryFolder
    private var path: String { folder.path + "/cache" }

    init() throws {
        folder = try TemporaryFolder()
    }

    private func opened() throws -> OpenCache {
        try #require(try OpenCache.open(path: path, waiting: .aMoment))
    }

    private static func record(
        _ resource: Int64, expiresAt: Int64 = 7_000, vary: Int64? = nil, isSuperseded: Bool = false
    ) -> FreshnessRecord {
        FreshnessRecord(
            resourceID: resource, validatedAt: Timestamp(milliseconds: 3_000),
            expiresAt: Timestamp(milliseconds: expiresAt), vary: vary.map(VaryFingerprint.init),
            isSuperseded: isSuperseded)
    }

    /// Long lists read the table into memory; both strategies must agree.
    @Test func tableInMemoryEqualsLookUps() throws {
        let cache = try opened()
        var rows: [String] = []
        let hasher = SHA256Hasher()
        let recipe = RecipeFingerprint(Recipe().canonicalText, hasher: hasher)
        let keys = (0..<3_000).map { "http://a/\($0)" }
        for (number, key) in keys.enumerated() where number % 3 != 0 {
            let print = VariantFingerprint(KeyFingerprint(key, hasher: hasher), recipe)
            let vary = number % 5 == 0 ? "\(number % 7)" : "NULL"
            rows.append(
                """
                (\(print.upper), \(print.lower), \(number), \(number)000, \(number)500, \(vary), \
                \(number % 3 == 0 ? 1 : 0))
                """)
        }
        try runSQL(
            "INSERT INTO freshness VALUES \(rows.joined(separator: ","))",
            path + "/prefetch.sqlite")
        let reader = try CacheReader(cache.directory, varyTest: VaryTest { _ in true })
        let prints = keys.map { VariantFingerprint(KeyFingerprint($0, hasher: hasher), recipe) }
        let looked = try reader.freshnessRecords(of: prints)
        let tables = try (0..<FreshnessTable.pieces).map {
            try #require(try reader.freshnessTable(piece: $0, expectedRows: 0))
        }
        #expect(tables.reduce(0) { $0 + $1.count } == 2_000)
        for (number, print) in prints.enumerated() {
            #expect((looked[number] == nil) == (number % 3 == 0))
            let held = tables[FreshnessTable.piece(of: print)][print]
            #expect(held?.resourceID == looked[number]?.resourceID)
            #expect(held?.vary == looked[number]?.vary)
            #expect(held?.validatedAt == looked[number]?.validatedAt)
            // Whole seconds, rounded down.
            #expect(
                held?.expiresAt.milliseconds
                    == looked[number].map { $0.expiresAt.milliseconds - 500 })
        }
    }

    /// The table is read at the first look-up or, depending on the estimate, never; both agree.
    @Test func longExpectedListReadsTheTableAtOnce() throws {
        let cache = try opened()
        let keys = (0..<50).map { "http://a/\($0)" }
        try store(keys.map { Sample.row(key: $0, bytes: Array($0.utf8)) }, in: cache)
        let asked = ["http://b"] + keys
        let short = try Lookup(cache)(asked)
        let long = try Lookup(cache, expectedLookups: 1_000_000)(asked)
        #expect(long.map { $0?.resourceID } == short.map { $0?.resourceID })
        #expect(long.count { $0 == nil } == 1)
        // In memory, times are whole seconds.
        #expect(short[1]?.validatedAt == Timestamp(milliseconds: 10))
        #expect(long[1]?.validatedAt == Timestamp(milliseconds: 0))
    }

    @Test func longListsSwitchToTheTableInMemory() throws {
        let cache = try opened()
        try store([Sample.row(key: "http://a/1", bytes: [1])], in: cache)
        let lookup = try Lookup(cache)
        let unknownURLs = (0..<9_000).map { "http://b/\($0)" }
        // The table is read after 20,000 look-ups; the results must not change then.
        for _ in 0..<4 {
            let records = try lookup(unknownURLs + ["http://a/1"])
            #expect(records.dropLast().allSatisfy { $0 == nil })
            #expect(records.last??.expiresAt == Timestamp(milliseconds: 1000))
        }
    }

    @Test(arguments: [0, 1, 2, 3, 1023, 1024, 1025])
    func tableOfAnySizeFindsExactlyItsRows(count: Int) {
        var random = SystemRandomNumberGenerator()
        let keys = FreshnessTable.keys(ofPiece: count % FreshnessTable.pieces)
        var uppers = Set<Int64>()
        if count > 2 { uppers = [keys.lowerBound, keys.upperBound] }
        while uppers.count < count { uppers.insert(Int64.random(in: keys, using: &random)) }
        var table = FreshnessTable(expectedCount: count)
        for upper in uppers.sorted() {
            let isHeld = table.append(
                upper: upper, lower: ~upper, FreshnessIndexTests.record(upper))
            #expect(isHeld)
        }
        table.seal()
        for upper in uppers {
            #expect(
                table[VariantFingerprint(upper: upper, lower: ~upper)]?.resourceID == upper)
            // The same upper half as another variant.
            #expect(table[VariantFingerprint(upper: upper, lower: upper)] == nil)
        }
        for _ in 0..<1_000 {
            let upper = Int64.random(in: keys, using: &random)
            guard !uppers.contains(upper) else { continue }
            #expect(table[VariantFingerprint(upper: upper, lower: ~upper)] == nil)
        }
    }

    @Test(
        arguments: [
            (Int64.min, 0), (-1, 0), (0, 0), (1_000, 1_000), (1_999, 1_000),
            // Expired, but not 0, which means "validate at every use".
            (1, 1_000), (999, 1_000),
            (4_294_967_295_999, 4_294_967_295_000), (Int64.max, 4_294_967_295_000),
        ] as [(Int64, Int64)])
    func storesTimesInWholeSeconds(milliseconds: Int64, kept: Int64) throws {
        var table = FreshnessTable(expectedCount: 1)
        let isHeld = table.append(
            upper: 1, lower: 1, FreshnessIndexTests.record(1, expiresAt: milliseconds))
        #expect(isHeld)
        table.seal()
        let record = try #require(table[VariantFingerprint(upper: 1, lower: 1)])
        #expect(record.expiresAt.milliseconds == kept)
    }

    @Test func evaluatesEachVaryTextOnce() throws {
        let cache = try opened()
        var rows = (0..<10).map { Sample.row(key: "http://a/\($0)", bytes: [UInt8($0)]) }
        for index in rows.indices {
            rows[index].row.changeValidation {
                $0.response.vary = index % 2 == 0 ? "accept: a" : "accept: b"
            }
        }
        rows.append(Sample.row(key: "http://a/none", bytes: [77]))
        try store(rows, in: cache)
        let asked = Monitor<[String]>([])
        let lookup = try Lookup(cache) { text in
            asked.withLock { $0.append(text) }
            return text == "accept: a"
        }
        for _ in 0..<2 {
            for (index, record) in try lookup(rows.map(\.row.key)).enumerated() {
                let record = try #require(record)
                #expect(try lookup.reader.matchesVary(record) == (index % 2 == 0))
            }
        }
        #expect(asked.withLock { $0.sorted() } == ["accept: a", "accept: b"])
    }

    /// Once for each group of URLs with the same request fields, except where redirects led.
    @Test func evaluatesEachVaryTextOncePerGroup() throws {
        let cache = try opened()
        var rows = (0..<9).map { Sample.row(key: "http://a/\($0)", bytes: [UInt8($0)]) }
        for index in rows.indices {
            rows[index].row.changeValidation {
                $0.response.vary = "accept: a"
                if index < 3 {
                    $0.location = ResourceLocation(
                        url: "http://a/\(index)", finalURL: "http://b/", host: "http://a")
                }
            }
        }
        try store(rows, in: cache)
        let asked = Monitor<[String]>([])
        let test = VaryTest { _, listed, final in
            asked.withLock { $0.append(final) }
            return listed == final
        }
        let reader = try CacheReader(cache.directory, varyTest: test)
        let lookup = try Lookup(cache)
        for _ in 0..<2 {
            for (index, record) in try lookup(rows.map(\.row.key)).enumerated() {
                let record = try #require(record)
                #expect(try reader.matchesVary(record, group: index % 2) == (index >= 3))
            }
        }
        #expect(asked.withLock { $0.count { $0 == "http://b/" } } == 6)
        #expect(asked.withLock { $0.count } == 8)
    }

    /// The row may be rewritten between the two reads.
    @Test func separatesVaryTexts() throws {
        let cache = try opened()
        var rows = (0..<2).map { Sample.row(key: "http://a/\($0)", bytes: [UInt8($0)]) }
        for index in rows.indices {
            rows[index].row.changeValidation { $0.response.vary = "accept: a" }
        }
        try store(rows, in: cache)
        let lookup = try Lookup(cache) { $0 == "accept: b" }
        let records = try lookup(rows.map(\.row.key)).compactMap { $0 }
        try #require(records.count == 2)
        rows[0].row.changeValidation { $0.response.vary = "accept: b" }
        try store([rows[0]], in: cache)
        for record in records { #expect(try !lookup.reader.matchesVary(record)) }
    }

    /// Variants that collide in the primary key cannot be constructed, so the row is inserted
    /// directly.
    @Test func fingerprintCollisionLosesOnlyTheLaterVariant() throws {
        let cache = try opened()
        let hasher = SHA256Hasher()
        let recipe = RecipeFingerprint(Recipe().canonicalText, hasher: hasher)
        let print = VariantFingerprint(KeyFingerprint("http://a/1", hasher: hasher), recipe)
        try runSQL(
            "INSERT INTO freshness VALUES (\(print.upper), \(~print.lower), 42, 1, 2, NULL, 0)",
            path + "/prefetch.sqlite")
        try store([Sample.row(key: "http://a/1", bytes: [1])], in: cache)
        let lookup = try Lookup(cache)
        #expect(try lookup(["http://a/1"]) == [nil])
        let other = VariantFingerprint(upper: print.upper, lower: ~print.lower)
        #expect(
            try lookup.index.records(of: [other], with: lookup.reader)[0]?.resourceID == 42)
    }

    /// Rows of images with keys that are not their URLs, by every way of looking them up.
    @Test(arguments: [0, 1, 3, 4097])
    func imagesWithOtherKeysAreTold(count: Int) throws {
        let cache = try opened()
        let plain = (0..<3).map { "http://a/\($0)" }
        let keyed = (0..<count).map { "key-\($0)" }
        try store(
            plain.map { Sample.row(key: $0, bytes: Array("p".utf8)) }
                + keyed.map { key in
                    var sample = Sample.row(key: key, bytes: Array("k".utf8))
                    sample.row.changeValidation {
                        $0.location = ResourceLocation(
                            url: "http://b/\(key)", finalURL: "http://c/", host: "http://b")
                    }
                    return sample
                }, in: cache)
        for expected in [0, 1 << 30] {
            let found = try Lookup(cache, expectedLookups: expected)(plain + keyed)
            #expect(found.allSatisfy { $0 != nil })
            // With many that a short list does not name, every image is compared.
            let isUnknown = count > 4096 && expected == 0
            for told in [found.map { $0?.isKeyed == true }, found.map { $0?.isRedirected == true }]
            {
                #expect(told[..<3].allSatisfy { $0 == isUnknown })
                #expect(told[3...].allSatisfy { $0 })
            }
        }
        let reader = try CacheReader(cache.directory, varyTest: VaryTest { _ in true })
        let resource = try #require(try reader.resources(ofKeys: [plain[0]]).first)
        let urls = try reader.urls(of: [resource, 99_999])
        #expect(urls.map { $0?.requested } == [plain[0], nil])
    }
}

extension FreshnessTable {
    fileprivate subscript(fingerprint: VariantFingerprint) -> FreshnessRecord? {
        record(of: fingerprint, from: start(of: fingerprint))
    }
}

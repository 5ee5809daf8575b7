import PrefetchModel
import Testing

@testable import CacheStorage

/// The table of prune rules.
@Suite(.timeLimit(.minutes(15)))
struct PruneRuleTests {
    @Test func printsValuesAsItReadsThem() throws {
        for rule in PruneRule.allCases {
            let value = rule.unit == .none ? nil : rule.definition.example
            let setting = try #require(rule.setting(value), "\(rule)")
            #expect(setting.specification == rule.example)
            #expect(rule.setting("no such value") == nil)
        }
    }

    @Test(
        arguments: [
            (PruneRule.unlistedFor, "36h", 129_600_000), (.unlistedFor, "30", nil),
            (.maxSize, "20", nil), (.maxSize, "20KiB", 20_480), (.maxSize, "1048576", 1_048_576),
            (.maxFiles, "0", 0), (.maxFiles, "-1", nil), (.lowWater, "0%", nil),
            (.lowWater, "12.5%", 125_000), (.lowWater, "101%", nil), (.gone, nil, 1),
            (.gone, "yes", nil), (.history, nil, nil),
        ] as [(PruneRule, String?, Int64?)])
    func readsValuesWithTheirUnits(rule: PruneRule, text: String?, value: Int64?) {
        #expect(rule.setting(text)?.value == value)
    }

    @Test func storesTheRulesThatTheNextPruningApplies() throws {
        let folder = try TemporaryFolder()
        let cache = try #require(
            try OpenCache.open(path: folder.path + "/cache", waiting: .aMoment))
        func stored() throws -> String? {
            try cache.database.read("testing") { try PruneRules.stored(in: $0) }?.specification
        }
        #expect(try stored() == nil)
        let all = PruneRules(
            PruneRule.allCases.compactMap {
                $0.setting($0.unit == .none ? nil : $0.definition.example)
            })
        try cache.store(all)
        #expect(try stored() == PruneRule.allCases.map(\.example).joined(separator: ","))
        var once = PruneRules(maximumSize: .mebibytes(1))
        once.variant = .superseded
        try cache.store(once)
        #expect(try stored() == all.specification)
        try cache.store(PruneRules(maximumSize: .mebibytes(1)))
        #expect(try stored() == "max-size=1MiB,low-water=90%")
    }
}

import PrefetchModel
import Testing

@testable import Manifests

/// Fields for the entries of some hosts.
@Suite(.timeLimit(.minutes(15)))
struct HostDefaultsTests {
    @Test func theMostSpecificRuleCountsBelowTheEntrysFields() throws {
        func rule(
            _ pattern: String, _ days: Int, _ header: String
        ) throws -> (HostPattern, HostDefaults) {
            var defaults = HostDefaults()
            defaults.timeToLive = .seconds(days * 86400)
            defaults.headers = [try HeaderField(requestLine: header)]
            return (try #require(HostPattern(pattern)), defaults)
        }
        let defaults = HostTable([
            try rule("*", 1, "A: any"), try rule("*.b", 2, "A: sub"), try rule("x.b", 3, "A: one"),
            try rule("*.b", 4, "A: later"),
        ])
        let list = """
            http://c.d/
            http://x.b/1
            http://y.b/2 ttl=1h
            http://y.b/3 header=a:own header=B:c
            http://y.b:81/4
            """
        let options = ManifestOptions(format: .text)
        var changed = options
        changed.hostDefaults = defaults
        func extras(_ options: ManifestOptions) throws -> [EntryExtras?] {
            let reader = try ManifestReader(
                lines: list.split(separator: "\n").map(String.init), name: "l", options: options)
            let batch = try #require(try reader.nextBatch())
            #expect(batch.problems.isEmpty)
            return batch.records.map { batch.extras(of: $0) }
        }
        #expect(try extras(options).compactMap(\.self).count == 2)
        let found = try extras(changed)
        #expect(
            found.map { $0?.timeToLive }
                == [86400, 3 * 86400, 3600, 2 * 86400, 2 * 86400].map { .seconds($0) })
        #expect(
            found.map { $0?.headers.map { "\($0.name)=\($0.value)" } }
                == [["A=any"], ["A=one"], ["A=sub"], ["a=own", "B=c"], ["A=sub"]])
    }
}

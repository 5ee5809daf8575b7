import Foundation
import PrefetchModel
import Testing

@testable import Pipeline

/// Runs over fakes, with any events in any order.
@Suite(.timeLimit(.minutes(15)))
struct RunCoordinatorTests {
    private static let folder = FileManager.default.temporaryDirectory.path

    /// A hundred runs for each fault, at any step.
    @Test(arguments: FakeRun.Fault.allCases)
    func everyEntryHasOneOutcomeUnderEveryFault(fault: FakeRun.Fault) {
        var statuses: Set<Int32> = []
        for seed in 0..<100 {
            let fake = FakeRun(seed: UInt64(seed), fault: fault, entries: 90)
            let summary = fake.run(
                order: seed % 2 == 0 ? .fifo : .lifo, queueCapacity: [4, 1000][seed / 2 % 2],
                folder: Self.folder)
            let counters = summary.counters
            // Each entry read has an outcome, and each line is reported once.
            #expect(counters.entriesDone == counters.entriesRead, "\(fault), seed \(seed)")
            let places = Set(fake.results.map { "\($0.manifest):\($0.line)" })
            #expect(places.count == fake.results.count, "\(fault), seed \(seed)")
            #expect(fake.results.count == counters.entriesRead, "\(fault), seed \(seed)")
            #expect(fake.isClosed)
            // Every entry reported as "downloaded" has a row.
            for result in fake.results where result.outcome == .downloaded {
                #expect(
                    fake.committed.contains(result.key) || result.message != nil,
                    "\(fault), seed \(seed), \(result.key)")
            }
            statuses.insert(summary.exitStatus)
        }
        switch fault {
        case .none: #expect(statuses == [1])
        case .signal: #expect(statuses.contains(143))
        case .secondSignal: #expect(statuses.contains(130))
        case .transfersFail, .writerFails, .lookupsFail, .cannotStore, .cannotAsk, .cannotFind,
            .reportFails, .readingFails, .cacheFails:
            #expect(statuses.contains(2), "\(statuses)")
        }
    }

    /// Waiting entries in memory are looked up once each, ahead of their turns.
    @Test(arguments: 0..<20 as Range<UInt64>)
    func entriesAreLookedUpInBatches(seed: UInt64) {
        let fake = FakeRun(seed: seed, fault: .none, entries: 3000, variesVariants: false)
        _ = fake.run(
            order: seed % 2 == 0 ? .fifo : .lifo, queueCapacity: 10_000, folder: Self.folder)
        let tokens = fake.lookups.flatMap(\.self)
        #expect(tokens.count > 500)
        #expect(Set(tokens).count == tokens.count)
        #expect(fake.lookups.count(where: { !$0.isEmpty }) * 3 < tokens.count)
    }
}

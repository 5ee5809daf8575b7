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

    /// Entries that are counted without reading them back have the outcomes of the others.
    @Test(arguments: FakeRun.Fault.allCases.filter { $0 != .none && $0 != .reportFails })
    func unreadEntriesHaveTheOutcomesOfReadOnes(fault: FakeRun.Fault) {
        var unread = 0
        for seed in 0..<36 {
            let orders: [StartOrder] = [.fifo, .lifo, .random(seed: 5)]
            let runs = [false, true].map { hidesCancelled -> (FakeRun, RunSummary) in
                let fake = FakeRun(
                    seed: UInt64(seed), fault: fault, entries: 240, hidesCancelled: hidesCancelled)
                let summary = fake.run(
                    order: orders[seed % 3], queueCapacity: [4, 30][seed / 3 % 2],
                    folder: Self.folder)
                return (fake, summary)
            }
            let (read, other) = (runs[0], runs[1])
            #expect(read.1.counters == other.1.counters, "\(fault), seed \(seed)")
            #expect(read.1.exitStatus == other.1.exitStatus, "\(fault), seed \(seed)")
            #expect(
                read.1.hasSeveralVariants == other.1.hasSeveralVariants,
                "\(fault), seed \(seed)")
            #expect(read.0.committed == other.0.committed, "\(fault), seed \(seed)")
            let results = [read.0, other.0].map { run in
                run.results.filter { $0.outcome != .cancelled }
                    .map { "\($0.manifest):\($0.line) \($0.outcome) \($0.message ?? "")" }
                    .sorted()
            }
            #expect(results[0] == results[1], "\(fault), seed \(seed)")
            #expect(other.0.isClosed)
            unread += read.0.results.count - other.0.results.count
        }
        #expect(unread > 300)
    }

    /// Running work ends while a long list is being cancelled.
    @Test func cancelledEntriesAreReportedInBatches() {
        let fake = FakeRun(seed: 0, fault: .signal, entries: 30_000)
        let summary = fake.run(order: .lifo, queueCapacity: 5000, folder: Self.folder)
        #expect(summary.counters[.cancelled] > 12_000)
        #expect(summary.counters.entriesDone == summary.counters.entriesRead)
        #expect(fake.results.count == summary.counters.entriesRead)
        #expect(fake.mostResultsAtOnce < 10_000, "\(fake.mostResultsAtOnce)")
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

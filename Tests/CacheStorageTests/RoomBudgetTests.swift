import PrefetchModel
import Testing
import Threading

@testable import CacheStorage

/// Who gets room, who waits for it, and who is refused. Threads wait here, as the codec workers do.
@Suite(.timeLimit(.minutes(5)))
struct RoomBudgetTests {
    private let shortages = Monitor(0)

    private func budget(_ blocks: Int, used: Int) -> RoomBudget {
        RoomBudget(
            limit: ByteCount(blocks * 4096), usage: DiskUsage(files: used, blocks: used)
        ) { [shortages] in shortages.update { $0 += 1 } }
    }

    private func size(_ blocks: Int) -> [ByteCount] { [ByteCount(blocks * 4096)] }

    private func waitForShortage(_ count: Int = 1) {
        shortages.wait { number, _ in number >= count ? .ready(()) : .wait(until: nil) }
    }

    private func reserving(
        _ budget: RoomBudget, _ blocks: Int, for token: Int
    ) throws -> (thread: OwnedThread, answer: Monitor<Bool?>) {
        let answer = Monitor<Bool?>(nil)
        let sizes = size(blocks)
        let thread = try OwnedThread(name: "reserving") {
            let isGiven = budget.reserve(sizes, for: token)
            answer.update { $0 = isGiven }
        }
        return (thread, answer)
    }

    @Test func whatFitsIsGivenAtOnce() {
        let budget = budget(10, used: 4)
        #expect(budget.reserve([ByteCount(1), ByteCount(4097)], for: 1))
        #expect(budget.reserve(size(3), for: 2))
        #expect(budget.bound == nil && !budget.isExhausted)
        // Larger than all that there is: nothing that goes would help, and others still find room.
        #expect(!budget.reserve(size(11), for: 3))
        #expect(!budget.isExhausted)
        budget.giveBack(2)
        #expect(budget.reserve(size(3), for: 4))
        #expect(shortages.withLock { $0 } == 0)
    }

    @Test func whoWaitsGetsWhatTheWriterFrees() throws {
        let budget = budget(10, used: 10)
        let (thread, answer) = try reserving(budget, 3, for: 1)
        waitForShortage()
        #expect(budget.bound == ByteCount(7 * 4096))
        #expect(answer.withLock { $0 } == nil)
        budget.settle([], usage: DiskUsage(files: 8, blocks: 8))
        #expect(budget.bound == ByteCount(7 * 4096))
        budget.settle([], usage: DiskUsage(files: 7, blocks: 7))
        thread.join()
        #expect(answer.withLock { $0 } == true)
        // Its rows are committed: what it took is part of the usage now.
        budget.settle([1], usage: DiskUsage(files: 8, blocks: 8))
        #expect(budget.reserve(size(2), for: 2))
    }

    @Test func onceNothingMoreCanGoWhatDoesNotFitIsRefused() throws {
        let budget = budget(10, used: 9)
        let (first, firstAnswer) = try reserving(budget, 3, for: 1)
        let (second, secondAnswer) = try reserving(budget, 2, for: 2)
        waitForShortage(2)
        budget.noteExhaustion()
        first.join()
        second.join()
        #expect(firstAnswer.withLock { $0 } == false && secondAnswer.withLock { $0 } == false)
        #expect(budget.isExhausted && budget.bound == nil)
        #expect(budget.reserve(size(1), for: 3))
        #expect(!budget.reserve(size(1), for: 4))
    }

    @Test func anEndRefusesThoseThatWait() throws {
        let budget = budget(1, used: 1)
        let (thread, answer) = try reserving(budget, 1, for: 1)
        waitForShortage()
        budget.close()
        thread.join()
        #expect(answer.withLock { $0 } == false && !budget.isExhausted)
    }
}

import PrefetchModel
import Testing
import Threading

@testable import CacheStorage

/// Granted, waiting and refused requests for room. Threads wait as the codec workers do.
@Suite(.timeLimit(.minutes(15)))
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
    ) throws -> (thread: OwnedThread, answer: Monitor<RoomBudget.Answer?>) {
        let answer = Monitor<RoomBudget.Answer?>(nil)
        let sizes = size(blocks)
        let thread = try OwnedThread(name: "reserving") {
            let given = budget.reserve(sizes, for: token)
            answer.update { $0 = given }
        }
        return (thread, answer)
    }

    private func usage(_ blocks: Int) -> DiskUsage { DiskUsage(files: blocks, blocks: blocks) }

    @Test func grantsFittingRequestsAtOnce() {
        let budget = budget(10, used: 4)
        #expect(budget.reserve([ByteCount(1), ByteCount(4097)], for: 1) == .given)
        #expect(budget.reserve(size(3), for: 2) == .given)
        #expect(budget.evictionLimit == nil && !budget.isExhausted)
        // Evicting would not help, and other requests still succeed.
        #expect(budget.reserve(size(11), for: 3) == .tooLarge)
        #expect(!budget.isExhausted)
        budget.giveBack(2)
        #expect(budget.reserve(size(3), for: 4) == .given)
        // An existing file takes no room.
        #expect(budget.reserve([], for: 5) == .given)
        #expect(shortages.withLock { $0 } == 0)
    }

    @Test func waitersGetFreedSpace() throws {
        let budget = budget(10, used: 10)
        let (thread, answer) = try reserving(budget, 3, for: 1)
        waitForShortage()
        #expect(budget.evictionLimit == ByteCount(7 * 4096))
        #expect(answer.withLock { $0 } == nil)
        budget.notePruned(to: usage(7))
        thread.join()
        #expect(answer.withLock { $0 } == .given && !budget.isExhausted)
        // After the commit, its room is part of the usage.
        budget.settle([1], usage: usage(8))
        #expect(budget.reserve(size(2), for: 2) == .given)
    }

    /// The first request takes all freed room; the writer is then told about the second.
    @Test func everyWaiterReachesTheWriter() throws {
        let budget = budget(10, used: 10)
        let (first, firstAnswer) = try reserving(budget, 3, for: 1)
        waitForShortage(1)
        let (second, secondAnswer) = try reserving(budget, 5, for: 2)
        waitForShortage(2)
        budget.notePruned(to: usage(6))
        first.join()
        #expect(firstAnswer.withLock { $0 } == .given)
        // One call for its own wait, one for the first one's turn.
        waitForShortage(3)
        #expect(secondAnswer.withLock { $0 } == nil)
        // Three blocks are promised and five wanted: two may stay.
        #expect(budget.evictionLimit == ByteCount(2 * 4096))
        // Nothing more can be evicted, but promised room may be returned.
        budget.notePruned(to: usage(6))
        #expect(!budget.isExhausted)
        budget.giveBack(1)
        waitForShortage(4)
        #expect(budget.evictionLimit == ByteCount(5 * 4096))
        budget.notePruned(to: usage(5))
        second.join()
        #expect(secondAnswer.withLock { $0 } == .given)
    }

    /// A small request does not overtake a large one, which would starve.
    @Test func servesWaitersInOrder() throws {
        let budget = budget(10, used: 8)
        let (large, largeAnswer) = try reserving(budget, 6, for: 1)
        waitForShortage(1)
        let (small, smallAnswer) = try reserving(budget, 1, for: 2)
        waitForShortage(2)
        #expect(smallAnswer.withLock { $0 } == nil)
        budget.notePruned(to: usage(3))
        large.join()
        small.join()
        #expect(largeAnswer.withLock { $0 } == .given && smallAnswer.withLock { $0 } == .given)
    }

    @Test func refusesWhenNothingMoreCanBeEvicted() throws {
        let budget = budget(10, used: 9)
        let (first, firstAnswer) = try reserving(budget, 3, for: 1)
        waitForShortage(1)
        let (second, secondAnswer) = try reserving(budget, 2, for: 2)
        waitForShortage(2)
        budget.notePruned(to: usage(9))
        first.join()
        second.join()
        #expect(firstAnswer.withLock { $0 } == .full && secondAnswer.withLock { $0 } == .full)
        #expect(budget.isExhausted && budget.evictionLimit == nil)
        #expect(budget.isFull && budget.refused.map { $0 == (2, ByteCount(8192)) } == true)
        #expect(budget.reserve(size(1), for: 3) == .given)
        #expect(budget.reserve(size(1), for: 4) == .full)
    }

    /// A replacement needs only the difference.
    @Test func replacedFilesFreeTheirSpace() {
        let budget = budget(10, used: 10)
        #expect(budget.reserve(size(4), replacing: size(4), for: 1) == .given)
        #expect(budget.reserve(size(2), replacing: size(3), for: 2) == .given)
        budget.settle([1, 2], usage: usage(9))
        #expect(budget.reserve(size(4), replacing: size(3), for: 3) == .given)
        #expect(budget.reserve(size(11), replacing: size(4), for: 4) == .tooLarge)
        #expect(shortages.withLock { $0 } == 0)
    }

    /// A single refused large request does not prevent others from trying.
    @Test func cacheIsFullWithoutSpaceForOneMore() throws {
        // Two blocks each.
        let budget = RoomBudget(
            limit: ByteCount(20 * 4096), usage: DiskUsage(files: 8, blocks: 16)
        ) { [shortages] in shortages.update { $0 += 1 } }
        let (large, answer) = try reserving(budget, 9, for: 1)
        waitForShortage()
        budget.notePruned(to: DiskUsage(files: 8, blocks: 16))
        large.join()
        #expect(answer.withLock { $0 } == .full && budget.isExhausted && !budget.isFull)
        #expect(budget.reserve(size(3), for: 2) == .given)
        #expect(budget.isFull)
        budget.giveBack(2)
        #expect(!budget.isFull)
        // A second one does, and so does a full cache of small files.
        #expect(budget.reserve(size(9), for: 3) == .full)
        #expect(budget.isFull)
    }

    /// An empty cache says nothing about the usual size.
    @Test func usualSizeIsThatOfStoredFiles() throws {
        let budget = budget(10, used: 0)
        #expect(budget.reserve(size(8), for: 1) == .given)
        budget.settle([1], usage: DiskUsage(files: 2, blocks: 8))
        let (thread, answer) = try reserving(budget, 4, for: 2)
        waitForShortage()
        budget.notePruned(to: DiskUsage(files: 2, blocks: 8))
        thread.join()
        #expect(answer.withLock { $0 } == .full && budget.isFull)
    }

    @Test func endRefusesAllWaiters() throws {
        let budget = budget(1, used: 1)
        let (thread, answer) = try reserving(budget, 1, for: 1)
        waitForShortage()
        budget.close()
        thread.join()
        #expect(answer.withLock { $0 } == .closed && !budget.isExhausted)
    }
}

import Foundation
import PrefetchModel
import Testing
import Threading

@testable import Pipeline

@Suite(.timeLimit(.minutes(15)))
struct MemoryBudgetTests {
    @Test func refusesNeedAboveTheTotal() {
        let budget = MemoryBudget(total: ByteCount(10))
        #expect(budget.withReservation(of: 11) { 1 } == nil)
        #expect(budget.withReservation(of: 10) { 1 } == 1)
        #expect(budget.withReservation(of: 10) { 2 } == 2)
    }

    @Test func neverExceedsTheTotal() {
        let budget = MemoryBudget(total: ByteCount(10))
        let use = Monitor((now: 0, peak: 0))
        DispatchQueue.concurrentPerform(iterations: 64) { number in
            let need = number % 5 + 3
            _ = budget.withReservation(of: need) {
                use.withLock {
                    $0.now += need
                    $0.peak = max($0.peak, $0.now)
                }
                use.withLock { $0.now -= need }
            }
        }
        let (now, peak) = use.withLock { $0 }
        #expect(now == 0)
        #expect(peak <= 10)
        #expect(peak > 0)
    }
}

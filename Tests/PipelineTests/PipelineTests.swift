import Foundation
import PrefetchModel
import Testing

@testable import Pipeline

@Suite(.timeLimit(.minutes(5)))
struct RequestTargetTests {
    @Test(arguments: [
        ("http://h/a", "http://h"),
        ("https://user:pw@h:8443/a@b?c@d", "https://h:8443"),
        ("http://[::1]:80/", "http://[::1]:80"),
        ("http://h?q", "http://h"),
    ])
    func originLeavesOutUserInformation(url: String, expected: String) {
        #expect(RequestTarget.origin(of: url) == expected)
    }

    @Test(arguments: [
        ("http://user:pw@h/a", "http://h/a"),
        ("http://a@b@h/x@y", "http://h/x@y"),
        ("http://h/x@y", "http://h/x@y"),
        ("http://h", "http://h"),
    ])
    func userInformationIsLeftOutOfWhatIsStored(url: String, expected: String) {
        #expect(RequestTarget.withoutUserInformation(url) == expected)
    }

    @Test func fragmentIsLeftOutOfRequests() {
        #expect(RequestTarget.withoutFragment("http://h/a#b#c") == "http://h/a")
        #expect(RequestTarget.withoutFragment("http://h/a") == "http://h/a")
    }
}

@Suite(.timeLimit(.minutes(5)))
struct MemoryBudgetTests {
    @Test func refusesAtOnceWhatCanNeverFit() {
        let budget = MemoryBudget(total: ByteCount(10))
        #expect(budget.withReservation(of: 11) { 1 } == nil)
        #expect(budget.withReservation(of: 10) { 1 } == 1)
        #expect(budget.withReservation(of: 10) { 2 } == 2)
    }

    @Test func neverGivesMoreThanItHas() {
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

@Suite(.timeLimit(.minutes(5)))
struct FailureToleranceTests {
    @Test func countsOrShares() {
        #expect(FailureTolerance.count(2).accepts(failures: 2, of: 3))
        #expect(!FailureTolerance.count(2).accepts(failures: 3, of: 3000))
        #expect(FailureTolerance.percent(5).accepts(failures: 5, of: 100))
        #expect(!FailureTolerance.percent(5).accepts(failures: 6, of: 100))
        #expect(FailureTolerance.percent(0).accepts(failures: 0, of: 0))
    }
}

@Suite(.timeLimit(.minutes(5)))
struct MailboxTests {
    @Test func theReaderWaitsForRoomAndLosesNothing() {
        let mailbox = Mailbox()
        let reader = OwnedThread(name: "reader") {
            for number in 0..<100 {
                var batch = EntryBatch(manifest: "m")
                batch.text = [UInt8(number)]
                guard mailbox.put(.batch(batch)) else { return }
            }
            _ = mailbox.put(.ended)
        }
        var numbers: [UInt8] = []
        var hasEnded = false
        while !hasEnded {
            switch mailbox.take(wantsInput: true, until: nil).input {
            case .batch(let batch): numbers += batch.text
            case .ended: hasEnded = true
            case .failed, nil: break
            }
        }
        reader.join()
        #expect(numbers == Array(0..<100))
    }

    @Test func aStoppedRunReleasesTheReader() {
        let mailbox = Mailbox()
        let reader = OwnedThread(name: "reader") {
            while mailbox.put(.batch(EntryBatch(manifest: "m"))) {}
        }
        mailbox.endReading()
        reader.join()
        #expect(mailbox.take(wantsInput: true, until: .now).input == nil)
    }

    @Test func inputsWaitWhileNobodyWantsThem() {
        let mailbox = Mailbox()
        #expect(mailbox.put(.batch(EntryBatch(manifest: "m"))))
        mailbox.put(.stop(signal: 2))
        let (events, input) = mailbox.take(wantsInput: false, until: nil)
        #expect(events.count == 1)
        #expect(input == nil)
        #expect(mailbox.take(wantsInput: true, until: nil).input != nil)
    }
}

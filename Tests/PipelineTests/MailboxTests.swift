import PrefetchModel
import Testing
import Threading

@testable import Pipeline

@Suite(.timeLimit(.minutes(15)))
struct MailboxTests {
    private static func batch(_ number: Int = 0) -> Mailbox.ListInput {
        var batch = EntryBatch(manifest: "m")
        batch.text = [UInt8(number)]
        return .batch(LookedUpBatch(batch: batch))
    }

    @Test func readersWaitForRoomAndBatchesStayInOrder() throws {
        let mailbox = Mailbox()
        let next = Monitor(0)
        let readers = try (0..<3).map { index in
            try OwnedThread(name: "reader \(index)") {
                while true {
                    let number = next.withLock { next in
                        defer { next += 1 }
                        return next
                    }
                    guard number < 100 else { break }
                    guard mailbox.put(MailboxTests.batch(number), number: number) else { return }
                }
                if index == 0 { _ = mailbox.put(.ended(nil), number: 100) }
            }
        }
        var numbers: [UInt8] = []
        var hasEnded = false
        while !hasEnded {
            switch mailbox.take(wantsInput: true, until: nil).input {
            case .batch(let looked): numbers += looked.batch.text
            case .ended: hasEnded = true
            case .failed, nil: break
            }
        }
        for reader in readers { reader.join() }
        #expect(numbers == Array(0..<100))
    }

    @Test func stoppedRunReleasesTheReader() throws {
        let mailbox = Mailbox()
        let reader = try OwnedThread(name: "reader") {
            var number = 0
            while mailbox.put(MailboxTests.batch(), number: number) { number += 1 }
        }
        mailbox.endReading()
        reader.join()
        #expect(mailbox.take(wantsInput: true, until: .now).input == nil)
    }

    @Test func inputsWaitUntilWanted() {
        let mailbox = Mailbox()
        #expect(mailbox.put(MailboxTests.batch(), number: 0))
        mailbox.put(.stop(signal: 2))
        let (events, input) = mailbox.take(wantsInput: false, until: nil)
        #expect(events.count == 1)
        #expect(input == nil)
        #expect(mailbox.take(wantsInput: true, until: nil).input != nil)
    }

    @Test func inputsAreTakenInOrder() {
        let mailbox = Mailbox()
        #expect(mailbox.put(MailboxTests.batch(1), number: 1))
        #expect(mailbox.take(wantsInput: true, until: .now).input == nil)
        #expect(mailbox.put(MailboxTests.batch(0), number: 0))
        for _ in 0..<2 { #expect(mailbox.take(wantsInput: true, until: .now).input != nil) }
    }
}

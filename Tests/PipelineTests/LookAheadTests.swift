import EntryLifecycle
import Testing

@testable import Pipeline

struct LookAheadTests {
    private func isAwaited(_ arrival: LookAhead.FoundAhead) -> Bool {
        if case .awaited = arrival { true } else { false }
    }

    private func isFound(_ arrival: LookAhead.FoundAhead) -> Bool {
        if case .found = arrival { true } else { false }
    }

    @Test func findingsWaitForTheirTurn() {
        var ahead = LookAhead()
        let (isAsked, isAskedAgain) = (ahead.ask(1), ahead.ask(1))
        #expect(isAsked)
        #expect(!isAskedAgain)
        let isWanted = ahead.arrived(1, .nothing)
        #expect(!isWanted)
        let arrival = ahead.take(1)
        #expect(isFound(arrival))
        #expect(!ahead.knows(1))
    }

    @Test func turnWaitsForItsFindings() {
        var ahead = LookAhead()
        _ = ahead.ask(2)
        let arrival = ahead.take(2)
        #expect(isAwaited(arrival))
        #expect(ahead.knows(2))
        // Findings that no entry waits for are dropped.
        let (isWanted, isWantedAgain) = (ahead.arrived(2, .nothing), ahead.arrived(2, .nothing))
        #expect(isWanted)
        #expect(!isWantedAgain)
        #expect(!ahead.knows(2))
    }

    @Test func unusedFindingsAreDropped() {
        var ahead = LookAhead()
        var asked = 0
        while ahead.hasRoom {
            _ = ahead.ask(asked)
            asked += 1
        }
        let isAsked = ahead.ask(asked)
        #expect(!isAsked)
        // One look-up is still under way, and is kept.
        for identifier in 1..<asked { _ = ahead.arrived(identifier, .nothing) }
        for other in 0..<asked { _ = ahead.take(asked + other) }
        #expect(ahead.hasRoom)
        #expect(ahead.knows(0))
        #expect(!ahead.knows(1))
    }
}

import PrefetchModel
import Threading
import Transfers

/// What the coordinator's thread hears from the other threads.
///
/// What the readers give has a bounded queue of its own, so that readers ahead of everybody else
/// wait; events are bounded by what the coordinator itself has started.
final class Mailbox: EventSource, Sendable {
    enum Event: Sendable {
        case transferred(TransferCompletion)
        case found([CopyFindings])
        case processed(CodecCompletion)
        /// The rows of these entries are committed.
        case committed([Int])
        /// The transfer loop has ended; nothing of it comes after this.
        case transfersFailed(FatalError)
        /// The writer has ended; nothing of it comes after this.
        case writerFailed(FatalError)
        /// Look-ups have ended; nothing of them comes after this.
        case lookupsFailed(FatalError)
        case stop(signal: Int32)
    }

    /// What the readers give; after anything but a batch there is no more.
    enum Input: Sendable {
        case batch(LookedUpBatch)
        /// Every manifest has been read.
        case ended
        /// A manifest or the cache could not be read on.
        case failed(FatalError)
    }

    private struct State {
        var events: [Event] = []
        /// By number; the readers finish out of order.
        var inputs: [Int: Input] = [:]
        /// The number of the input that is taken next.
        var nextInput = 0
        /// Whether anybody wants inputs; false ends the readers.
        var isReading = true
    }

    /// How far ahead of the one that is taken next an input may be; batches of about 4 096
    /// entries each.
    private static let inputWindow = 8
    private let state = Monitor(State())

    func put(_ event: Event) {
        put(CollectionOfOne(event))
    }

    /// Adds events that came together. The coordinator, which takes all that there are, sleeps only
    /// while there are none.
    func put(_ events: some Collection<Event>) {
        let count = events.count
        state.update(wakes: { $0.events.count == count }) { $0.events += events }
    }

    /// Waits for room and adds the input of a number; numbers begin at 0 and have no gaps.
    ///
    /// - Returns: false when nobody wants inputs any more.
    func put(_ input: Input, number: Int) -> Bool {
        let isWanted = state.wait { state, _ -> Monitor<State>.Decision<Bool> in
            guard state.isReading else { return .ready(false) }
            guard number < state.nextInput + Mailbox.inputWindow else { return .wait(until: nil) }
            state.inputs[number] = input
            return .ready(true)
        }
        if isWanted { state.wakeAll() }
        return isWanted
    }

    /// Makes the readers stop at their next batch.
    func endReading() {
        state.update {
            $0.isReading = false
            $0.inputs = [:]
        }
    }

    /// Waits until something is there or `deadline` passes; takes all events and, if wanted, the
    /// next input.
    func take(
        wantsInput: Bool, until deadline: ContinuousClock.Instant?
    ) -> (events: [Event], input: Input?) {
        let taken = state.wait { state, now -> Monitor<State>.Decision<([Event], Input?)> in
            let input = wantsInput ? state.inputs.removeValue(forKey: state.nextInput) : nil
            if input != nil { state.nextInput += 1 }
            guard input != nil || !state.events.isEmpty else {
                if let deadline, deadline <= now { return .ready(([], nil)) }
                return .wait(until: deadline)
            }
            defer { state.events.removeAll() }
            return .ready((state.events, input))
        }
        // A reader may have waited for the room.
        if taken.1 != nil { state.wakeAll() }
        return taken
    }
}

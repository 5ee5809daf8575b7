import PrefetchModel
import Threading
import Transfers

protocol EventSource: AnyObject {
    /// Waits for an event or the `deadline`; returns all events and, if wanted, the next input.
    func take(
        wantsInput: Bool, until deadline: ContinuousClock.Instant?
    ) -> (events: [Mailbox.StageEvent], input: Mailbox.ListInput?)

    func endReading()
}

/// The events and inputs for the coordinator's thread.
///
/// Inputs have a bounded queue of their own, so that readers far ahead wait. Events are limited by
/// the work that the coordinator has started.
final class Mailbox: EventSource, Sendable {
    enum StageEvent: Sendable {
        case transferred(TransferCompletion)
        case found([CopyFindings])
        case processed(CodecCompletion)
        case committed([Int])
        /// The transfer loop has ended; this is its last event.
        case transfersFailed(any Error)
        /// The writer has ended; this is its last event.
        case writerFailed(any Error)
        /// The look-ups have ended; this is their last event.
        case lookupsFailed(any Error)
        case stop(signal: Int32)
    }

    /// The output of the readers; everything but a batch is the last one.
    enum ListInput: Sendable {
        case batch(LookedUpBatch)
        /// Every manifest has been read; the gap is nil if they are whole.
        case ended(ListGap?)
        case failed(any Error)
    }

    private struct Mail {
        var events: [StageEvent] = []
        /// Inputs by number; the readers finish out of order.
        var inputs: [Int: ListInput] = [:]
        var nextInput = 0
        var isReading = true
    }

    /// How far an input may be ahead of the next one; batches of about 4,096 entries each.
    private static let inputWindow = 8
    private let state = Monitor(Mail())

    func put(_ event: StageEvent) {
        put(CollectionOfOne(event))
    }

    /// Adds events. The coordinator takes all of them, so it sleeps only without any.
    func put(_ events: some Collection<StageEvent>) {
        let count = events.count
        state.update(wakes: { $0.events.count == count }) { $0.events += events }
    }

    /// Waits for room and adds an input; numbers begin at 0 and have no gaps. Returns false when no
    /// more inputs are wanted.
    func put(_ input: ListInput, number: Int) -> Bool {
        let isWanted = state.wait { state, _ -> Monitor<Mail>.Decision<Bool> in
            guard state.isReading else { return .ready(false) }
            guard number < state.nextInput + Mailbox.inputWindow else { return .wait(until: nil) }
            state.inputs[number] = input
            return .ready(true)
        }
        if isWanted { state.wakeAll() }
        return isWanted
    }

    func endReading() {
        state.update {
            $0.isReading = false
            $0.inputs = [:]
        }
    }

    func take(
        wantsInput: Bool, until deadline: ContinuousClock.Instant?
    ) -> (events: [StageEvent], input: ListInput?) {
        let taken = state.wait { state, now -> Monitor<Mail>.Decision<([StageEvent], ListInput?)> in
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

import PrefetchModel
import Transfers

/// What the coordinator's thread hears from the other threads.
///
/// The reader's batches have a bounded queue of their own, so that a reader ahead of everybody
/// else waits; events are bounded by what the coordinator itself has started.
final class Mailbox: Sendable {
    enum Event: Sendable {
        case transferred(TransferCompletion)
        case processed(CodecCompletion)
        /// The rows of these entries are committed.
        case committed([Int])
        /// The transfer loop has ended; nothing of it comes after this.
        case transfersFailed(FatalError)
        /// The writer has ended; nothing of it comes after this.
        case writerFailed(FatalError)
        case stop(signal: Int32)
    }

    /// What the reader gives; after anything but a batch there is no more.
    enum Input: Sendable {
        case batch(EntryBatch)
        /// Every manifest has been read.
        case ended
        /// A manifest could not be read on.
        case failed(FatalError)
    }

    private struct State {
        var events: [Event] = []
        var inputs: [Input] = []
        /// Whether anybody wants inputs; false ends the reader.
        var isReading = true
    }

    /// Inputs that may wait: batches of about 4 096 entries each.
    private static let inputCapacity = 4
    private let state = Monitor(State())

    func put(_ event: Event) {
        state.update { $0.events.append(event) }
    }

    /// Waits for room and adds an input.
    ///
    /// - Returns: false when nobody wants inputs any more.
    func put(_ input: Input) -> Bool {
        // One reader: the room found is still there when it is used.
        let isWanted = state.wait { state, _ -> Monitor<State>.Decision<Bool> in
            guard state.isReading else { return .ready(false) }
            return state.inputs.count < Mailbox.inputCapacity ? .ready(true) : .wait(until: nil)
        }
        if isWanted { state.update { $0.inputs.append(input) } }
        return isWanted
    }

    /// Makes the reader stop at its next batch.
    func endReading() {
        state.update {
            $0.isReading = false
            $0.inputs = []
        }
    }

    /// Waits until something is there or `deadline` passes; takes all events and, if wanted, the
    /// first input.
    func take(
        wantsInput: Bool, until deadline: ContinuousClock.Instant?
    ) -> (events: [Event], input: Input?) {
        let taken = state.wait { state, now -> Monitor<State>.Decision<([Event], Input?)> in
            let hasInput = wantsInput && !state.inputs.isEmpty
            guard hasInput || !state.events.isEmpty else {
                if let deadline, deadline <= now { return .ready(([], nil)) }
                return .wait(until: deadline)
            }
            defer { state.events.removeAll() }
            return .ready((state.events, hasInput ? state.inputs.removeFirst() : nil))
        }
        // The reader may have waited for the room.
        if taken.1 != nil { state.wakeAll() }
        return taken
    }
}

/// Why a run cannot be completed.
struct FatalError: Error, Sendable {
    let message: String
    let hint: String?
    /// What the entries that it caught on their way are reported with.
    let reason: FailureReason
    /// Whether the disk is full.
    var isDiskFull = false
}

package import PrefetchModel
import Threading
package import Transfers

/// Transfers whose ends the caller waits for. They end with the last reference.
package final class BlockingTransfers: Sendable {
    private struct State {
        var completions: [Int: TransferCompletion] = [:]
        var failure: Problem?
    }

    /// A reason that nothing can be requested.
    package struct Problem: Error, Sendable {
        package let message: String
        package let hint: String?

        fileprivate init(_ error: TransferLoopError) {
            (message, hint) = (error.description, error.hint)
        }

        fileprivate init(_ error: ThreadError) {
            (message, hint) = (error.description, error.hint)
        }
    }

    private let loop: TransferLoop
    private let thread: OwnedThread
    private let state: Monitor<State>

    /// - Throws: ``Problem`` if libcurl cannot be loaded or no thread can be started.
    package init(
        _ configuration: TransferConfiguration, wallClock: @escaping @Sendable () -> Timestamp
    ) throws(Problem) {
        let loop: TransferLoop
        do throws(TransferLoopError) {
            loop = try TransferLoop(configuration: configuration, wallClock: wallClock)
        } catch {
            throw Problem(error)
        }
        let state = Monitor(State())
        do throws(ThreadError) {
            thread = try OwnedThread(name: "transfers") {
                do throws(TransferLoopError) {
                    try loop.run { completions in
                        state.update { state in
                            for completion in completions {
                                state.completions[completion.id] = completion
                            }
                        }
                    }
                } catch {
                    state.update { $0.failure = Problem(error) }
                }
            }
        } catch {
            throw Problem(error)
        }
        self.loop = loop
        self.state = state
    }

    deinit {
        loop.stop()
        thread.join()
    }

    /// Sends requests, all at once, and waits for their ends; one thread at a time.
    ///
    /// - Parameters:
    ///   - requests: have numbers that no earlier ones had.
    ///   - deadline: the end of the wait; nil for none.
    /// - Throws: ``Problem`` if the transfers have ended.
    /// - Returns: the completions by the requests' numbers; unfinished ones are missing, and
    ///   cancelled.
    package func perform(
        _ requests: [TransferRequest], until deadline: ContinuousClock.Instant?
    ) throws(Problem) -> [Int: TransferCompletion] {
        loop.start(requests)
        typealias Ends = (completions: [Int: TransferCompletion], failure: Problem?)
        let ends = state.wait { state, now -> Monitor<State>.Decision<Ends> in
            let isDone = requests.allSatisfy { state.completions[$0.id] != nil }
            let isLate = deadline.map { now >= $0 } ?? false
            guard isDone || isLate || state.failure != nil else { return .wait(until: deadline) }
            // The bodies live no longer than the caller needs them.
            defer { state.completions = [:] }
            return .ready((state.completions, state.failure))
        }
        if let failure = ends.failure { throw failure }
        if ends.completions.count < requests.count { loop.cancelAll() }
        return ends.completions
    }
}

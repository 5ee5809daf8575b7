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

    /// Sends requests, all at once, and waits for their ends. Like ``wait(for:until:)``.
    package func perform(
        _ requests: [TransferRequest], until deadline: ContinuousClock.Instant?
    ) throws(Problem) -> [Int: TransferCompletion] {
        start(requests)
        return try wait(for: requests.map(\.id), until: deadline)
    }

    /// Ends the requests under way.
    func cancelAll() { loop.cancelAll() }

    /// Sends requests, whose numbers no earlier ones had.
    func start(_ requests: [TransferRequest]) { loop.start(requests) }

    /// Waits for the ends of started requests; one thread at a time.
    ///
    /// - Parameters:
    ///   - identifiers: the numbers of requests without an earlier wait.
    ///   - deadline: the end of the wait, and of all requests; nil for none.
    /// - Throws: ``Problem`` if the transfers have ended.
    /// - Returns: the completions by the requests' numbers; unfinished ones are missing, and
    ///   cancelled.
    func wait(
        for identifiers: [Int], until deadline: ContinuousClock.Instant?
    ) throws(Problem) -> [Int: TransferCompletion] {
        typealias Ends = (completions: [Int: TransferCompletion], failure: Problem?)
        let ends = state.wait { state, now -> Monitor<State>.Decision<Ends> in
            let isDone = identifiers.allSatisfy { state.completions[$0] != nil }
            let isLate = deadline.map { now >= $0 } ?? false
            guard isDone || isLate || state.failure != nil else { return .wait(until: deadline) }
            // The bodies live no longer than the caller needs them.
            var completions: [Int: TransferCompletion] = [:]
            for identifier in identifiers {
                completions[identifier] = state.completions.removeValue(forKey: identifier)
            }
            return .ready((completions, state.failure))
        }
        if let failure = ends.failure { throw failure }
        if ends.completions.count < identifiers.count { loop.cancelAll() }
        return ends.completions
    }
}

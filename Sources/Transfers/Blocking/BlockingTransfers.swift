package import PrefetchModel
import Threading

/// A transfer loop on a thread of its own, for threads that block until a transfer ends. It ends
/// with the last reference.
package final class BlockingTransfers: Sendable {
    private struct Running {
        var transfers: [Int: StartedTransfer] = [:]
        var lastNumber = 0
        /// The reason that the loop has ended.
        var failure: UserError?
    }

    private let loop: TransferLoop
    private let thread: OwnedThread
    private let running: Monitor<Running>

    /// - Throws: ``UserError`` if libcurl cannot be loaded or no thread can be started.
    package init(
        _ configuration: TransferConfiguration, wallClock: @escaping @Sendable () -> Timestamp
    ) throws(UserError) {
        let loop = try TransferLoop(configuration: configuration, wallClock: wallClock)
        let running = Monitor(Running())
        thread = try OwnedThread(name: "transfers") {
            do throws(UserError) {
                try loop.run { BlockingTransfers.deliver($0, running) }
            } catch {
                let transfers = running.withLock { running in
                    running.failure = error
                    defer { running.transfers = [:] }
                    return running.transfers.values
                }
                for transfer in transfers { transfer.end(.failure(error)) }
            }
        }
        self.loop = loop
        self.running = running
    }

    deinit {
        loop.stop()
        thread.join()
    }

    private static func deliver(_ completions: [TransferCompletion], _ running: Monitor<Running>) {
        let transfers = running.withLock { running in
            completions.map { running.transfers.removeValue(forKey: $0.id) }
        }
        for (transfer, completion) in zip(transfers, completions) {
            transfer?.end(.success(completion))
        }
    }

    /// Starts a request. Any thread may call it.
    package func start(_ request: TransferRequest) -> StartedTransfer {
        let transfer = StartedTransfer()
        var request = request
        let failure = running.withLock { running in
            running.lastNumber += 1
            request.id = running.lastNumber
            if running.failure == nil { running.transfers[request.id] = transfer }
            return running.failure
        }
        if let failure {
            transfer.end(.failure(failure))
        } else {
            loop.start([request])
        }
        return transfer
    }

    /// Ends all requests under way.
    package func cancelAll() { loop.cancelAll() }

    /// Waits for the end of a transfer.
    ///
    /// - Returns: nil at the deadline, which cancels all requests.
    /// - Throws: ``UserError`` if the loop has failed.
    package func wait(
        for transfer: StartedTransfer, until deadline: ContinuousClock.Instant?
    ) throws(UserError) -> TransferCompletion? {
        let completion = try transfer.wait(until: deadline)
        if completion == nil { cancelAll() }
        return completion
    }
}

/// A request under way. One thread waits for it.
package final class StartedTransfer: Sendable {
    private let result = Monitor<Result<TransferCompletion, UserError>?>(nil)

    fileprivate func end(_ result: Result<TransferCompletion, UserError>) {
        self.result.update { $0 = result }
    }

    /// - Returns: nil at the deadline.
    fileprivate func wait(
        until deadline: ContinuousClock.Instant?
    ) throws(UserError) -> TransferCompletion? {
        let result = self.result.wait { result, now in
            if let result { return .ready(Optional(result)) }
            if let deadline, now >= deadline { return .ready(nil) }
            return Monitor.Decision.wait(until: deadline)
        }
        return try result?.get()
    }
}

package import PrefetchModel
import Threading

/// A transfer loop on a thread of its own, for threads that block until a transfer ends. The first
/// request starts it, and it ends with the last reference.
package final class BlockingTransfers: Sendable {
    private struct Running {
        var loop: (transfers: TransferLoop, thread: OwnedThread)?
        var transfers: [Int: StartedTransfer] = [:]
        var lastNumber = 0
        /// The reason that the loop has ended.
        var failure: UserError?
        var isCancelled = false
    }

    private let configuration: TransferConfiguration
    private let wallClock: @Sendable () -> Timestamp
    private let running = Monitor(Running())

    package init(
        _ configuration: TransferConfiguration, wallClock: @escaping @Sendable () -> Timestamp
    ) {
        self.configuration = configuration
        self.wallClock = wallClock
    }

    deinit {
        guard let loop = running.withLock({ $0.loop }) else { return }
        loop.transfers.stop()
        loop.thread.join()
    }

    /// Starts a request. Any thread may call it.
    package func start(_ request: TransferRequest) -> StartedTransfer {
        let transfer = StartedTransfer()
        do {
            // All of it under the lock: a cancellation is seen here, or ends the request.
            try running.withLock { running throws(UserError) in
                if let failure = running.failure { throw failure }
                guard !running.isCancelled else {
                    return transfer.end(
                        .success(TransferCompletion(id: request.id, result: .cancelled)))
                }
                if running.loop == nil { running.loop = try launch() }
                running.lastNumber += 1
                running.transfers[running.lastNumber] = transfer
                var request = request
                request.id = running.lastNumber
                running.loop?.transfers.start([request])
            }
        } catch {
            transfer.end(.failure(error))
        }
        return transfer
    }

    private func launch() throws(UserError) -> (transfers: TransferLoop, thread: OwnedThread) {
        let loop = try TransferLoop(configuration: configuration, wallClock: wallClock)
        let thread = try OwnedThread(name: "transfers") { [running] in
            do throws(UserError) {
                try loop.run { completions in
                    let transfers = running.withLock { running in
                        completions.map { running.transfers.removeValue(forKey: $0.id) }
                    }
                    for (transfer, completion) in zip(transfers, completions) {
                        transfer?.end(.success(completion))
                    }
                }
            } catch {
                let transfers = running.withLock { running in
                    running.failure = error
                    defer { running.transfers = [:] }
                    return running.transfers.values
                }
                for transfer in transfers { transfer.end(.failure(error)) }
            }
        }
        return (loop, thread)
    }

    /// Ends all requests, also later ones. Any thread may call it.
    package func cancelAll() {
        running.withLock { running in
            running.isCancelled = true
            running.loop?.transfers.cancelAll()
        }
    }

    /// Waits for the end of a transfer.
    ///
    /// - Returns: nil at the deadline, which cancels all requests.
    /// - Throws: ``UserError`` if the loop has failed, or cannot be started.
    package func wait(
        for transfer: StartedTransfer, until deadline: ContinuousClock.Instant?
    ) throws(UserError) -> TransferCompletion? {
        let result = transfer.result.wait { result, now in
            if let result { return .ready(Optional(result)) }
            if let deadline, now >= deadline { return .ready(nil) }
            return Monitor.Decision.wait(until: deadline)
        }
        if result == nil { cancelAll() }
        return try result?.get()
    }
}

/// A request under way. One thread waits for it.
package final class StartedTransfer: Sendable {
    fileprivate let result = Monitor<Result<TransferCompletion, UserError>?>(nil)

    fileprivate func end(_ result: Result<TransferCompletion, UserError>) {
        self.result.update { $0 = result }
    }
}

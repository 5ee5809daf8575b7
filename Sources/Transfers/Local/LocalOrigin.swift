import PrefetchModel
import Threading

/// Serves requests for `data:` and `file:` URLs as an HTTP origin would: with a status, fields and
/// a body that counts against the budget. So its callers need not know the source.
///
/// Files are read on a thread of its own, which the first request starts. Other methods are called
/// on the loop's thread.
final class LocalOrigin: Sendable {
    private struct LocalQueue {
        var requests: ArraySlice<TransferRequest> = []
        var thread: OwnedThread?
        var isStopped = false
        /// Whether memory was released since the last attempt to reserve some.
        var isRoomNew = false
    }

    private let configuration: TransferConfiguration
    private let budget: BodyBudget
    private let wallClock: @Sendable () -> Timestamp
    private let deliver: @Sendable (TransferCompletion) -> Void
    private let queue = Monitor(LocalQueue())

    /// The wait for memory after which a body exceeds the budget, so that the run continues.
    private static let longestWait: Duration = .seconds(5)

    init(
        _ configuration: TransferConfiguration, _ budget: BodyBudget,
        wallClock: @escaping @Sendable () -> Timestamp,
        deliver: @escaping @Sendable (TransferCompletion) -> Void
    ) {
        self.configuration = configuration
        self.budget = budget
        self.wallClock = wallClock
        self.deliver = deliver
    }

    func start(_ request: TransferRequest) throws(UserError) {
        let isRunning = queue.update { queue in
            queue.requests.append(request)
            return queue.thread != nil
        }
        guard !isRunning else { return }
        let thread = try OwnedThread(name: "local sources") { self.run() }
        queue.withLock { $0.thread = thread }
    }

    /// Tells that the budget may have room.
    func memoryReleased() {
        queue.update { $0.isRoomNew = true }
    }

    /// Returns the requests that are not begun.
    func cancelWaiting() -> ArraySlice<TransferRequest> {
        queue.withLock { queue in
            defer { queue.requests = [] }
            return queue.requests
        }
    }

    /// Ends the thread, after its present request.
    func stop() {
        let thread = queue.update { queue in
            queue.isStopped = true
            return queue.thread
        }
        thread?.join()
    }

    // MARK: The thread

    private func run() {
        while true {
            let next = queue.wait { queue, _ in
                if let request = queue.requests.popFirst() { return .ready(Optional(request)) }
                return queue.isStopped ? .ready(nil) : Monitor.Decision.wait(until: nil)
            }
            guard let next else { return }
            deliver(completion(of: next))
        }
    }

    private func completion(of request: TransferRequest) -> TransferCompletion {
        let start = ContinuousClock.now
        let result: TransferCompletion.TransferResult
        do {
            result = try answer(request)
        } catch {
            result = .failure(TransferFailure(error, httpStatus: nil))
        }
        var count = 0
        if case .response(_, let body?) = result { count = body.count }
        return TransferCompletion(
            id: request.id, result: result, bytesReceived: count, elapsed: .now - start)
    }

    private func answer(
        _ request: TransferRequest
    ) throws(Failure) -> TransferCompletion.TransferResult {
        let content = try LocalContent(of: request.url, below: configuration.requests.filesBelow)
        let tag = content.fields.first("etag")
        let isKnown = tag != nil && request.fields.first("if-none-match") == tag
        let response = Response(
            status: isKnown ? 304 : 200, fields: content.fields, receivedAt: wallClock())
        guard !isKnown else { return .response(response, nil) }
        let most = configuration.limits.maximumBodySize
        guard content.count <= most.bytes else {
            throw Failure(.tooLarge, "the file is larger than --max-filesize (\(most))")
        }
        guard content.count > 0 else { throw Failure(.notAnImage, "it is empty") }
        guard request.bodyUse == .stored else { return .response(response, nil) }
        let body = Body(budget: budget)
        try reserve(content.count, in: body)
        try content.read { piece in
            body.append(piece)
            return !queue.withLock(\.isStopped)
        }
        guard body.count == content.count else { return .cancelled }
        if let judge = request.judge,
            case .refused(let refusal) = body.withUnsafeBytes({ judge($0, content.count) })
        {
            return .refused(response, refusal)
        }
        return .response(response, body)
    }

    /// Waits until the budget has room for a body.
    private func reserve(_ count: Int, in body: Body) throws(Failure) {
        let end = ContinuousClock.now + LocalOrigin.longestWait
        var claim = Body.MemoryClaim.ordinary
        while true {
            queue.withLock { $0.isRoomNew = false }
            switch body.reserveCapacity(count, by: claim) {
            case .granted: return
            case .outOfMemory:
                throw Failure(.internal, "no memory for a body of \(ByteCount(count))")
            case .overBudget:
                let mayWait = queue.wait { queue, now in
                    if queue.isRoomNew || queue.isStopped { return .ready(true) }
                    return now >= end ? .ready(false) : Monitor.Decision.wait(until: end)
                }
                if !mayWait || budget.used == 0 || queue.withLock(\.isStopped) {
                    claim = .overdraft
                }
            }
        }
    }
}

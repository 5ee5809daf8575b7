import HTTPSemantics
import PrefetchModel
import Scheduling
import Threading
import Transfers

/// Sends requests to a service, and repeats failed ones that may succeed later. Any thread may call
/// it; a call blocks until the request's end.
struct ServiceClient: Sendable {
    typealias ServiceResult = Result<ServiceAnswer, TransferFailure>

    enum Judgement {
        case final
        /// The same request may succeed later; after `SlowDown` no request begins before.
        case transient(isSlowDown: Bool)
        /// The request is made again, without a delay.
        case outdated
    }

    private struct Activity {
        /// No request begins before, after `SlowDown`.
        var pauseEnd: ContinuousClock.Instant?
        var isStopped = false
    }

    /// The subject of errors.
    let name: String
    let transfers: BlockingTransfers
    /// The most attempts of a request, and their delays.
    let attempts: Int
    let backoff: Backoff
    let deadline: ContinuousClock.Instant?
    private let activity = Monitor(Activity())

    private static let longestRetryAfter = Duration.seconds(60)
    /// The attempts of a request that may end with a time-out.
    private static let mostTimeouts = 2

    /// Ends all requests soon, permanently.
    func stop() {
        activity.update { $0.isStopped = true }
        transfers.cancelAll()
    }

    var isStopped: Bool { activity.withLock { $0.isStopped } }

    /// Sends a request until its response is final or no attempt is left. `request` is called for
    /// each attempt, and ``stop()`` and the deadline throw an ``ObjectStorageError``.
    ///
    /// - Returns: the last attempt's result, and the number of attempts.
    func perform(
        _ request: () throws -> TransferRequest, judge: (ServiceAnswer) -> Judgement
    ) throws -> (ServiceResult, attempts: Int) {
        var (attempt, timeouts) = (0, 0)
        var next: ContinuousClock.Instant?
        var random = SystemRandomNumberGenerator()
        while true {
            try wait(until: next)
            next = nil
            attempt += 1
            let result = try send(request())
            var delay = backoff.delay(retry: attempt, using: &random)
            switch result {
            case .success(let answer):
                switch judge(answer) {
                case .final: return (result, attempt)
                case .outdated: continue
                case .transient(let isSlowDown):
                    guard attempt < attempts else { return (result, attempt) }
                    if let wanted = answer.retryAfter {
                        delay = max(delay, min(wanted, ServiceClient.longestRetryAfter))
                    }
                    if isSlowDown { pause(delay) }
                }
            case .failure(let failure):
                if [.timeout, .stalled].contains(failure.reason) { timeouts += 1 }
                guard failure.isTransient, attempt < attempts,
                    timeouts < ServiceClient.mostTimeouts
                else { return (result, attempt) }
            }
            next = .now + delay
        }
    }

    private func send(_ request: TransferRequest) throws -> ServiceResult {
        let transfer = transfers.start(request)
        guard let completion = try transfers.wait(for: transfer, until: deadline) else {
            throw end
        }
        switch completion.result {
        case .response(let response, let body):
            let bytes = body?.withUnsafeBytes { Array($0) } ?? []
            return .success(
                ServiceAnswer(response: response, body: bytes, count: completion.bytesReceived))
        case .failure(let failure): return .failure(failure)
        case .refused(let response, let failure):
            return .failure(TransferFailure(failure, httpStatus: response.status))
        case .cancelled: throw end
        }
    }

    private func pause(_ time: Duration) {
        let end = ContinuousClock.now + time
        activity.withLock { $0.pauseEnd = max($0.pauseEnd ?? end, end) }
    }

    /// Waits until a time and for the end of a pause.
    private func wait(until time: ContinuousClock.Instant?) throws {
        let mayContinue = activity.wait { activity, now in
            let isLate = deadline.map { now >= $0 } ?? false
            if activity.isStopped || isLate { return .ready(false) }
            guard let end = [time, activity.pauseEnd].compactMap(\.self).max(), now < end else {
                return .ready(true)
            }
            return Monitor.Decision.wait(until: deadline.map { min(end, $0) } ?? end)
        }
        guard mayContinue else { throw end }
    }

    /// The error of a request that a stop, the deadline or a failed loop has ended.
    private var end: ObjectStorageError {
        if isStopped { return ObjectStorageError(kind: .cancelled, description: "stopped") }
        let isLate = deadline.map { ContinuousClock.now >= $0 } ?? false
        return isLate
            ? ObjectStorageError(kind: .late, description: "\(name): not complete at the deadline")
            : ObjectStorageError(description: "\(name): the transfers have ended")
    }
}

/// A service's response to a request.
struct ServiceAnswer {
    let response: Response
    /// Empty for a body that went to a file.
    let body: [UInt8]
    let count: Int

    var status: Int { response.status }
    var fields: [HeaderField] { response.fields }
    /// The delay that the service wants; nil for none.
    var retryAfter: Duration? { RetryAfter.delay(of: fields, receivedAt: response.receivedAt) }
    var isSuccess: Bool { (200...299).contains(status) }
}

extension TransferFailure {
    var isTransient: Bool {
        switch reason {
        case .dns, .connect, .tls, .timeout, .stalled: persistence != .untrusted
        case .interrupted: !hasExcessiveHead
        default: false
        }
    }
}

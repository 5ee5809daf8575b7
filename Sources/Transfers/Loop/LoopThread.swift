internal import CCurl
import PrefetchModel

/// The state of a ``TransferLoop`` on its thread, and the steps of one turn.
final class LoopThread {
    private let multi: MultiHandle
    private let inbox: Inbox
    private let wallClock: @Sendable () -> Timestamp
    private let environment: TransferEnvironment
    private var connections: OriginConnections { environment.connections }
    private let local: LocalOrigin
    private var active: [UnsafeMutableRawPointer: ActiveTransfer] = [:]
    private var idle: [ActiveTransfer] = []
    /// Completions to deliver together: each delivery may wake its receiver.
    private var ended: [TransferCompletion] = []
    private let checkInterval: Duration
    private var nextCheck: ContinuousClock.Instant
    /// Transfers started since libcurl's cache of addresses was emptied.
    private var startsSinceEmptying = 0
    private var connectionCount = 0

    /// libcurl searches its cache of addresses at the end of each transfer. It holds every host of
    /// the last minute, up to 30,000: a search took 1.4 ms then. So every 256th transfer empties
    /// it, and hosts in use are resolved again.
    private static let startsToEmptying = 256
    /// Beyond this many connections in a run, the last transfer of a host closes its connection.
    ///
    /// libcurl 7.88 closes the oldest when too many are idle, but keeps some 200 bytes of its host
    /// and searches them at each transfer: 47,000 hosts made that 1.3 ms.
    private static let fewConnections = 1024
    /// The handles that are kept for the challenges of other origins.
    private static let mostIdleWithChallenges = 64
    /// Before 8.1, a head that begins with a blank makes libcurl write to the freed fields of the
    /// handle's previous response (https://github.com/curl/curl/issues/11101).
    private static let reusesHandles = ccurl_version_number() >= 0x080100
    /// The longest wait while nothing is on the wire: a wake-up may get lost.
    private static let longestWait: Duration = .seconds(1)
    /// The longest wait while wake-ups fail: the inbox is polled then.
    private static let deafWait: Duration = .milliseconds(20)

    init(
        _ multi: MultiHandle, _ inbox: Inbox, _ environment: TransferEnvironment,
        wallClock: @escaping @Sendable () -> Timestamp
    ) {
        self.multi = multi
        self.inbox = inbox
        self.environment = environment
        self.wallClock = wallClock
        local = LocalOrigin(environment.configuration, environment.budget, wallClock: wallClock) {
            completion in inbox.put { $0.ended.append(completion) }
        }
        // A time-out is noticed at most a tenth of it late.
        checkInterval = min(max(environment.shortestTimeout / 10, .milliseconds(10)), .seconds(1))
        nextCheck = ContinuousClock.now + checkInterval
    }

    /// Runs turns until the inbox says stop. All transfers are delivered when this ends.
    func run(deliver: ([TransferCompletion]) -> Void) throws(UserError) {
        defer {
            cancelActive()
            local.stop()
            ended += inbox.takeAll().ended
            deliverEnded(deliver)
        }
        while true {
            let received = inbox.takeAll()
            try take(received)
            if received.stops {
                if environment.configuration.requests.savesCookies {
                    try environment.cookies?.save()
                }
                return
            }
            try perform()
            expire()
            try startWaiting()
            deliverEnded(deliver)
            try environment.cookies?.dropExcess()
            resumePaused(isBudgetReleased: received.resumes)
            resumeForRate()
            try wait()
        }
    }

    // MARK: The steps of a turn

    private func take(_ received: Inbox.Messages) throws(UserError) {
        ended += received.ended
        if received.resumes { local.memoryReleased() }
        guard received.cancels || received.stops else {
            for request in received.requests {
                if request.url.isLocal {
                    try local.start(request)
                    continue
                }
                var attempt = TransferAttempt(request, environment.configuration.hosts)
                attempt.usesDigest = connections.usesDigest(request.url.origin)
                let authorities = connections.authorities(of: attempt.origin)
                if connections.admit(attempt) { try begin(attempt.trusting(authorities)) }
            }
            return
        }
        cancelActive()
        ended += received.requests.map { TransferCompletion(id: $0.id, result: .cancelled) }
    }

    private func startWaiting() throws(UserError) {
        for attempt in connections.takeStarting() { try begin(attempt) }
        while let attempt = environment.rate?.nextHeld(beside: active.count, at: .now) {
            try start(attempt)
        }
    }

    /// Starts a transfer, or holds it for the rate.
    private func begin(_ attempt: TransferAttempt) throws(UserError) {
        guard let rate = environment.rate else { return try start(attempt) }
        rate.hold(attempt)
    }

    private func start(_ attempt: TransferAttempt) throws(UserError) {
        let transfer: ActiveTransfer
        if let index = idle.lastIndex(where: { $0.fits(attempt) }) {
            transfer = idle.remove(at: index)
        } else {
            if idle.count >= LoopThread.mostIdleWithChallenges { idle.removeFirst() }
            transfer = try ActiveTransfer(environment)
        }
        startsSinceEmptying = (startsSinceEmptying + 1) % LoopThread.startsToEmptying
        try transfer.prepare(
            attempt, emptiesAddressCache: startsSinceEmptying == 0,
            closesConnection: attempt.request.isLastOfHost
                && connectionCount >= LoopThread.fewConnections)
        active[transfer.handle.pointer] = transfer
        try MultiHandle.check(
            ccurl_multi_add_handle(multi.pointer, transfer.handle.pointer), "adding a transfer")
    }

    /// Lets libcurl send and receive, and collects the transfers that it has ended.
    private func perform() throws(UserError) {
        var running: Int32 = 0
        let code = environment.watchdog.watch { ccurl_multi_perform(multi.pointer, &running) }
        try MultiHandle.check(code, "performing")
        var remaining: Int32 = 0
        while let message = ccurl_multi_info_read(multi.pointer, &remaining) {
            guard message.pointee.msg == CURLMSG_DONE,
                let handle = message.pointee.easy_handle, let transfer = active[handle]
            else { continue }
            // The message does not outlive the removal of its handle.
            let result = ccurl_message_result(message)
            connectionCount += transfer.handle.openedConnections
            if let attempt = transfer.nextAttempt(after: result) {
                let wasRefused = transfer.use?.isRefused ?? false
                release(transfer)
                if wasRefused, let origin = attempt.origin { connections.noteFull(origin) }
                if attempt.origin == nil {
                    try begin(attempt)
                } else {
                    connections.putBack(attempt)
                }
            } else {
                end(transfer, transfer.complete(result, at: wallClock()))
            }
        }
    }

    private func expire() {
        let now = ContinuousClock.now
        guard nextCheck <= now else { return }
        nextCheck = now + checkInterval
        for transfer in active.values {
            guard let completion = transfer.expire(at: now, wallClock: wallClock) else { continue }
            end(transfer, completion)
        }
    }

    /// Resumes paused transfers, the oldest first, when memory was released.
    private func resumePaused(isBudgetReleased: Bool) {
        let waiting = environment.waiting
        guard let oldest = waiting.oldest else { return }
        if waiting.needsOverdraft(
            used: environment.budget.used, isLongPaused: oldest.hasLongBeenPaused)
        {
            oldest.overdraw()
        }
        guard isBudgetReleased else { return }
        // The others stay paused: libcurl copies the bytes that it keeps of a transfer each time.
        for transfer in waiting.take(fitting: environment.budget.awaitedRoom()) {
            transfer.resume()
        }
    }

    /// Resumes transfers that were paused for the rate, one of each host in turn.
    private func resumeForRate() {
        while let transfer = environment.rate?.nextPaused(at: .now) { transfer.resume() }
    }

    /// Waits for a wake-up, a socket or one of libcurl's own timers.
    private func wait() throws(UserError) {
        var wait = LoopThread.longestWait
        if !active.isEmpty { wait = min(wait, max(.milliseconds(1), nextCheck - .now)) }
        if let rate = environment.rate, rate.isAnyWaiting {
            wait = min(wait, max(.milliseconds(1), rate.wait(at: .now)))
        }
        if inbox.isDeaf { wait = min(wait, LoopThread.deafWait) }
        // libcurl 7.88 may hold bytes of other transfers on a shared connection, and would wait.
        if connections.takeActivity() { wait = .zero }
        try MultiHandle.check(
            ccurl_multi_poll(multi.pointer, Int32(clamping: wait.wholeMilliseconds)), "waiting")
    }

    // MARK: Ends

    private func cancelActive() {
        ended += local.cancelWaiting().map { TransferCompletion(id: $0.id, result: .cancelled) }
        ended += (connections.takeWaiting() + (environment.rate?.takeHeld() ?? [])).map {
            TransferCompletion(id: $0.request.id, result: .cancelled)
        }
        for transfer in active.values { end(transfer, transfer.cancel(at: wallClock())) }
    }

    private func end(_ transfer: ActiveTransfer, _ completion: TransferCompletion) {
        ended.append(completion)
        // The origin's first connection failed, and with it the transfers that waited for it.
        if let use = transfer.use, !use.isSent, case .failure(let failure) = completion.result,
            [.dns, .connect, .tls, .timeout, .stalled].contains(failure.reason)
        {
            ended += connections.takeWaitingForFirst(use.origin).map {
                TransferCompletion(id: $0.request.id, result: completion.result)
            }
        }
        release(transfer)
    }

    /// Takes a transfer back from libcurl.
    private func release(_ transfer: ActiveTransfer) {
        ccurl_multi_remove_handle(multi.pointer, transfer.handle.pointer)
        active[transfer.handle.pointer] = nil
        environment.rate?.remove(transfer, of: transfer.origin)
        if let use = transfer.use { connections.noteEnd(use) }
        transfer.reset()
        if LoopThread.reusesHandles { idle.append(transfer) }
    }

    private func deliverEnded(_ deliver: ([TransferCompletion]) -> Void) {
        guard !ended.isEmpty else { return }
        deliver(ended)
        ended.removeAll(keepingCapacity: true)
    }
}

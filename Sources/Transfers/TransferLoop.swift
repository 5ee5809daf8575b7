internal import CCurl
package import PrefetchModel
import Threading
import URLParsing

/// Owns libcurl's multi handle and every easy handle; turns requests into completions.
///
/// One thread calls ``run(deliver:)`` and nothing else touches the handles. Other threads put
/// requests into an inbox and wake the loop. Connections, DNS answers and TLS sessions live in
/// the multi handle and are reused.
package final class TransferLoop: Sendable {
    private let multi: MultiHandle
    private let configuration: TransferConfiguration
    private let wallClock: @Sendable () -> Timestamp
    private let inbox: Inbox
    private let budget: BodyBudget

    /// At the end of each transfer libcurl goes through its cache of addresses, which holds every
    /// host of the last minute, up to 30 000: with that many it took 1.4 ms. So every 256th transfer
    /// empties it, and a host that is asked often is looked up again then.
    private static let transfersToEmptying = 256
    /// Beyond so many connections in a run, that of a host's last transfer is closed at its end.
    ///
    /// libcurl 7.88 closes the oldest when too many are idle, and keeps some 200 bytes of its host
    /// then, which it goes through with each transfer: 47 000 hosts made that 1.3 ms.
    private static let fewConnections = 1024

    /// The wall clock gives the times that the freshness of a response is reckoned from.
    ///
    /// - Throws: when libcurl cannot be loaded or set up.
    package init(
        configuration: TransferConfiguration, wallClock: @escaping @Sendable () -> Timestamp
    ) throws(TransferLoopError) {
        do throws(CurlLibrary.Missing) {
            try CurlLibrary.load()
        } catch {
            throw TransferLoopError(error)
        }
        // Counted by libcurl and safe to call from any thread since 7.84.
        let code = ccurl_global_init(Int(CURL_GLOBAL_DEFAULT))
        guard code == CURLE_OK, let multi = ccurl_multi_init() else {
            throw TransferLoopError(
                operation: "initialisation", code: Int32(code.rawValue),
                message: String(cString: ccurl_easy_strerror(code)))
        }
        self.multi = MultiHandle(pointer: multi)
        ccurl_multi_set_long(
            multi, CURLMOPT_MAXCONNECTS, configuration.maximumIdleConnections)
        self.configuration = configuration
        self.wallClock = wallClock
        let inbox = Inbox(multi: self.multi)
        self.inbox = inbox
        budget = BodyBudget(capacity: configuration.bodyBudget.bytes) {
            inbox.put { $0.resumes = true }
        }
    }

    // MARK: From any thread

    /// Begins a transfer. The caller limits how many run at once.
    package func start(_ requests: [TransferRequest]) {
        inbox.put { $0.requests += requests }
    }

    /// Ends every transfer that is running or waiting in the inbox, with `.cancelled`.
    package func cancelAll() {
        inbox.put { $0.cancels = true }
    }

    /// Makes ``run(deliver:)`` cancel what is left and return.
    package func stop() {
        inbox.put { $0.stops = true }
    }

    // MARK: The loop's thread

    /// Carries transfers out until ``stop()``.
    ///
    /// - Parameter deliver: called on this thread with what has ended since the last call, never
    ///   with nothing; every request that was started comes once.
    /// - Throws: when the multi handle fails, which no single transfer can cause, and at the end,
    ///   when the cookie jar cannot be written. What was in flight has been delivered as cancelled
    ///   then.
    package func run(deliver: ([TransferCompletion]) -> Void) throws(TransferLoopError) {
        // For proxies of international names; those of URLs are converted already.
        try InternationalLocale().run { () throws(TransferLoopError) in
            try carryOut(deliver: deliver)
        }
    }

    private func carryOut(
        deliver: ([TransferCompletion]) -> Void
    ) throws(TransferLoopError) {
        let multi = self.multi.pointer
        let cookies = try cookieJar()
        var active: [UnsafeMutableRawPointer: ActiveTransfer] = [:]
        var idle: [ActiveTransfer] = []
        let waiting = WaitingTransfers()
        let parser: URLParser
        do throws(URLParsingError) {
            parser = try URLParser()
        } catch {
            throw TransferLoopError(
                operation: "parser of URLs", code: Int32(CURLE_FAILED_INIT.rawValue),
                message: error.message)
        }
        // Delivered together: many end in one turn, and each delivery may wake its receiver.
        var ended: [TransferCompletion] = []
        // A time-out is seen a tenth of it late at most.
        let shortest = min(configuration.stallTimeout, configuration.totalTimeout)
        let checkInterval = min(max(shortest / 10, .milliseconds(10)), .seconds(1))
        var nextCheck = ContinuousClock.now + checkInterval
        var sinceEmptying = 0
        var connections = 0

        func cancelActive() {
            for transfer in active.values {
                ccurl_multi_remove_handle(multi, transfer.handle.pointer)
                ended.append(transfer.cancelled(at: wallClock()))
                transfer.reset()
                idle.append(transfer)
            }
            active.removeAll(keepingCapacity: true)
        }
        func deliverEnded() {
            guard !ended.isEmpty else { return }
            deliver(ended)
            ended.removeAll(keepingCapacity: true)
        }
        defer {
            cancelActive()
            deliverEnded()
        }

        while true {
            let received = inbox.takeAll()
            if received.cancels || received.stops {
                cancelActive()
                for request in received.requests {
                    ended.append(
                        TransferCompletion(
                            id: request.id, result: .cancelled, bytesReceived: 0, elapsed: .zero,
                            address: nil, brokenBody: nil))
                }
                if received.stops {
                    try cookies?.save()
                    return
                }
            } else {
                for request in received.requests {
                    let transfer: ActiveTransfer
                    if let reused = idle.popLast() {
                        transfer = reused
                    } else {
                        transfer = try ActiveTransfer(
                            configuration: configuration, budget: budget, waiting: waiting,
                            cookies: cookies, parser: parser)
                    }
                    sinceEmptying = (sinceEmptying + 1) % TransferLoop.transfersToEmptying
                    try transfer.prepare(
                        request, emptiesAddressCache: sinceEmptying == 0,
                        closesConnection: request.isLastOfHost
                            && connections >= TransferLoop.fewConnections)
                    active[transfer.handle.pointer] = transfer
                    try check(
                        ccurl_multi_add_handle(multi, transfer.handle.pointer), "adding a transfer")
                }
            }

            var running: Int32 = 0
            try check(ccurl_multi_perform(multi, &running), "performing")
            var remaining: Int32 = 0
            while let message = ccurl_multi_info_read(multi, &remaining) {
                guard message.pointee.msg == CURLMSG_DONE,
                    let handle = message.pointee.easy_handle,
                    let transfer = active.removeValue(forKey: handle)
                else { continue }
                // The message does not outlive the removal of its handle.
                let code = ccurl_message_result(message)
                ended.append(transfer.complete(code, at: wallClock()))
                connections += transfer.handle.openedConnections
                ccurl_multi_remove_handle(multi, handle)
                transfer.reset()
                idle.append(transfer)
            }
            let now = ContinuousClock.now
            if nextCheck <= now {
                nextCheck = now + checkInterval
                for transfer in active.values {
                    guard let completion = transfer.expired(at: now, wallClock: wallClock) else {
                        continue
                    }
                    ccurl_multi_remove_handle(multi, transfer.handle.pointer)
                    active[transfer.handle.pointer] = nil
                    transfer.reset()
                    idle.append(transfer)
                    ended.append(completion)
                }
            }
            deliverEnded()
            try cookies?.dropExcess()
            resumePaused(waiting, isBudgetReleased: received.resumes)
            // A wake-up, a socket or libcurl's own timers end the wait.
            var wait = TransferLoop.longestWait
            if !active.isEmpty { wait = min(wait, max(.milliseconds(1), nextCheck - .now)) }
            if inbox.isDeaf { wait = min(wait, TransferLoop.deafWait) }
            try check(
                ccurl_multi_poll(multi, Int32(clamping: wait.wholeMilliseconds)),
                "waiting")
        }
    }

    private func cookieJar() throws(TransferLoopError) -> CookieJar? {
        guard let path = configuration.requests.cookieJar else { return nil }
        return try CookieJar(path: path)
    }

    /// Lets transfers that wait for memory try again, the oldest first, when some was released.
    ///
    /// When nobody else holds a body, no release would ever come, and small bodies could overtake a
    /// large one for ever: then the oldest of them may exceed the budget, and it alone, so that the
    /// overdraft is at most one body.
    private func resumePaused(_ waiting: WaitingTransfers, isBudgetReleased: Bool) {
        guard let oldest = waiting.oldest else { return }
        if !waiting.hasOverdraft,
            waiting.heldBytes >= budget.used || oldest.hasLongBeenPaused
        {
            oldest.overdraw()
        }
        guard isBudgetReleased else { return }
        // The others are left alone: libcurl copies what it keeps of a paused transfer each time.
        for transfer in waiting.take(fitting: budget.awaitedRoom()) { transfer.resume() }
    }

    /// The longest wait while nothing is on the wire: a wake-up may get lost, and a wait of this
    /// length costs nothing.
    private static let longestWait: Duration = .seconds(1)
    /// The longest wait while wake-ups fail: then the loop looks into its inbox by itself.
    private static let deafWait: Duration = .milliseconds(20)

    private func check(_ code: CURLMcode, _ operation: String) throws(TransferLoopError) {
        guard code != CURLM_OK else { return }
        throw TransferLoopError(
            operation: operation, code: code.rawValue,
            message: String(cString: ccurl_multi_strerror(code)))
    }
}

/// What other threads ask of the loop.
private final class Inbox: Sendable {
    struct Contents {
        var requests: [TransferRequest] = []
        /// The budget has room for transfers that wait for it.
        var resumes = false
        var cancels = false
        var stops = false
    }

    private let contents = Monitor(Contents())
    private let wakeUpFails = Monitor(false)
    private let multi: MultiHandle

    /// Whether the last wake-up failed: libcurl found no descriptors for it, or cannot write to them.
    var isDeaf: Bool { wakeUpFails.withLock { $0 } }

    init(multi: MultiHandle) {
        self.multi = multi
    }

    func put(_ change: (inout Contents) -> Void) {
        contents.withLock { change(&$0) }
        let hasFailed = ccurl_multi_wakeup(multi.pointer) != CURLM_OK
        wakeUpFails.withLock { $0 = hasFailed }
    }

    func takeAll() -> Contents {
        contents.withLock { contents in
            defer { contents = Contents() }
            return contents
        }
    }
}

/// Frees libcurl's multi handle with the last reference.
///
/// `@unchecked Sendable`: off the loop's thread the pointer is used for `curl_multi_wakeup` only,
/// which libcurl allows from any thread. A body may outlive its loop, and releasing it wakes the
/// handle, so the handle lives as long as any body.
private final class MultiHandle: @unchecked Sendable {
    let pointer: UnsafeMutableRawPointer

    init(pointer: UnsafeMutableRawPointer) {
        self.pointer = pointer
    }

    deinit {
        ccurl_multi_cleanup(pointer)
    }
}

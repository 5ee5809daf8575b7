import Glibc
import Threading

/// Ends calls of libcurl that do not return.
///
/// libcurl reads a connection while it has data. A peer that floods it with empty HTTP/2 frames, or
/// a proxy with endless fields behind a refused CONNECT, keeps it inside one `curl_multi_perform`
/// without a callback, and no transfer's time-out is kept. A thread then shuts the connection down,
/// so that libcurl finds its end.
struct Watchdog: Sendable {
    private struct WatchState {
        /// The sockets that libcurl opened. A number may belong to another file by now: only
        /// sockets can be shut down, and other sockets of this process resolve names.
        var sockets: Set<Int32> = []
        var isInside = false
        /// Checks during the present call.
        var checks = 0
        var isStopped = false
    }

    private let state = Monitor(WatchState())
    var interval = Duration.seconds(1)

    /// Checks, and not time: a process that is stopped for a while makes none.
    private static let checksToEnd = 5
    /// If a call survives this, every connection is shut down.
    private static let checksToEndAll = 10
    /// Milliseconds. Receive buffers that nothing reads are full after seconds; only the
    /// connection that keeps libcurl busy still receives data.
    private static let recent: UInt32 = 100

    /// Runs `body` with a thread that watches, if the system gives one.
    func run<Failure: Error>(_ body: () throws(Failure) -> Void) throws(Failure) {
        let thread = try? OwnedThread(name: "watchdog") { check() }
        defer {
            state.update { $0.isStopped = true }
            thread?.join()
        }
        try body()
    }

    func opened(_ socket: Int32) {
        guard socket >= 0 else { return }
        state.withLock { _ = $0.sockets.insert(socket) }
    }

    func watch<Result>(_ call: () -> Result) -> Result {
        state.withLock { state in
            state.isInside = true
            state.checks = 0
        }
        defer { state.withLock { $0.isInside = false } }
        return call()
    }

    private func check() {
        var next = ContinuousClock.now + interval
        state.wait { state, now -> Monitor<WatchState>.Decision<Void> in
            if state.isStopped { return .ready(()) }
            if now >= next {
                next = now + interval
                if state.isInside { Watchdog.check(&state) }
            }
            return .wait(until: next)
        }
    }

    private static func check(_ state: inout WatchState) {
        state.checks += 1
        guard state.checks >= checksToEnd else { return }
        for socket in state.sockets
        where state.checks >= checksToEndAll || receivesData(socket) {
            shutdown(socket, Int32(SHUT_RDWR))
        }
    }

    private static func receivesData(_ socket: Int32) -> Bool {
        var info = tcp_info()
        var size = socklen_t(MemoryLayout<tcp_info>.size)
        return getsockopt(socket, Int32(IPPROTO_TCP), TCP_INFO, &info, &size) == 0
            && info.tcpi_last_data_recv <= recent
    }
}

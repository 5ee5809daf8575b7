import NIOCore
import NIOHTTP1
import NIOPosix
import PrefetchModel

/// An HTTP/1.1 server on the loopback address that answers as the test scripts it, faults included, and records
/// what it was asked.
///
/// All its connections live on one event loop, so that the order of ``requests`` is the order of
/// arrival. Answers are raw bytes (see ``Response``). Every method may be called from any thread.
package final class Origin: Sendable {
    /// One request, recorded when its last byte had arrived.
    package struct Request: Sendable {
        package let method: String
        /// As sent, query included.
        package let target: String
        package let headers: [(name: String, value: String)]
        /// 1 for the first connection that was accepted.
        package let connection: Int

        /// The target without its query.
        package var path: String {
            String(target.prefix { $0 != "?" })
        }

        /// The first field of this name, in any case of letters.
        package func header(_ name: String) -> String? {
            let name = name.lowercased()
            return headers.first { $0.name.lowercased() == name }?.value
        }
    }

    /// What has happened up to one moment.
    package struct Snapshot: Sendable {
        /// In order of arrival.
        package fileprivate(set) var requests: [Request] = []
        /// Requests whose answer has not ended.
        package fileprivate(set) var inFlight = 0
        package fileprivate(set) var peakInFlight = 0
        /// Answers whose last byte was written, or whose connection was ended on purpose.
        package fileprivate(set) var answered = 0
        /// Connections accepted so far.
        package fileprivate(set) var connections = 0

        package var paths: [String] { requests.map(\.path) }

        package func count(of path: String) -> Int { requests.count { $0.path == path } }
    }

    /// What is answered is decided on the origin's event loop, so this must not block.
    package typealias Answering = @Sendable (Request) -> Response?

    private struct Waiter {
        let identifier: Int
        let isMet: @Sendable (Snapshot) -> Bool
        let resume: @Sendable (Result<Void, any Error>) -> Void
    }

    private struct State {
        var snapshot = Snapshot()
        var scripts: [String: [Response]] = [:]
        var fallback: Answering = { _ in nil }
        var waiters: [Waiter] = []
        var lastWaiter = 0
        var channels: [Int: any Channel] = [:]
    }

    private let state = Monitor(State())
    private let listener: any Channel
    /// As URLs have it, IPv6 in brackets.
    private let host: String
    package let port: Int

    private init(listener: any Channel, host: String, port: Int) {
        self.listener = listener
        self.host = host
        self.port = port
    }

    /// Begins to listen on 127.0.0.1 or ::1; port 0 is any.
    ///
    /// - Throws: when the port cannot be bound.
    package static func start(
        address: String = "127.0.0.1", port: Int = 0
    ) async throws -> Origin {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let owner = Owner()
        let listener = try await ServerBootstrap(group: loop)
            .serverChannelOption(.backlog, value: 1024)
            // A port that was closed is bound again while its old connections wait for their ends.
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.socketOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    guard let origin = owner.origin.withLock({ $0 }) else {
                        throw ChannelError.alreadyClosed
                    }
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(ByteToMessageHandler(HTTPRequestDecoder()))
                    try pipeline.addHandler(
                        OriginConnection(origin: origin, number: origin.accepted(channel)))
                }
            }
            // Connections are accepted only when the origin exists.
            .serverChannelOption(.autoRead, value: false)
            .bind(host: address, port: port).get()
        guard let port = listener.localAddress?.port else { throw ChannelError.unknownLocalAddress }
        let host = address.contains(":") ? "[\(address)]" : address
        let origin = Origin(listener: listener, host: host, port: port)
        owner.origin.withLock { $0 = origin }
        try await listener.setOption(.autoRead, value: true).get()
        return origin
    }

    /// Closes the port and every connection, and waits until they are closed.
    package func stop() async throws {
        try await listener.close().get()
        let channels = state.withLock { state in Array(state.channels.values) }
        for channel in channels { channel.close(promise: nil) }
        for channel in channels { try await channel.closeFuture.get() }
    }

    /// `http://ADDRESS:PORT` and `path`, which begins with a slash.
    package func url(_ path: String) -> String { "http://\(host):\(port)\(path)" }

    package var snapshot: Snapshot { state.withLock { $0.snapshot } }
    package var requests: [Request] { snapshot.requests }

    /// Answers requests for `path` with these, one after the other, the last one for ever. A script for a target
    /// with its query goes before one for the path alone.
    package func serve(_ path: String, _ responses: Response...) {
        precondition(!responses.isEmpty, "a path needs an answer")
        state.withLock { $0.scripts[path] = responses }
    }

    /// Answers what has no script; where this has no answer either, the answer is 404.
    package func serve(_ answering: @escaping Answering) {
        state.withLock { $0.fallback = answering }
    }

    /// Returns when `isMet` holds, which is looked at whenever something happens.
    ///
    /// - Throws: ``WaitTimedOut`` when it does not hold in time.
    package func wait(
        for description: String, within limit: Duration = .seconds(60),
        until isMet: @escaping @Sendable (Snapshot) -> Bool
    ) async throws {
        let (seconds, attoseconds) = limit.components
        let delay = TimeAmount.nanoseconds(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
        try await withCheckedThrowingContinuation {
            (continuation: CheckedContinuation<Void, any Error>) in
            let identifier: Int? = state.withLock { state in
                if isMet(state.snapshot) { return nil }
                state.lastWaiter += 1
                state.waiters.append(
                    Waiter(
                        identifier: state.lastWaiter, isMet: isMet,
                        resume: { continuation.resume(with: $0) }))
                return state.lastWaiter
            }
            guard let identifier else { return continuation.resume() }
            _ = listener.eventLoop.scheduleTask(in: delay) { [weak self] in
                self?.giveUp(identifier, description)
            }
        }
    }

    package struct WaitTimedOut: Error, CustomStringConvertible {
        package let description: String
    }

    private func giveUp(_ identifier: Int, _ description: String) {
        let (waiter, snapshot) = state.withLock { state in
            let index = state.waiters.firstIndex { $0.identifier == identifier }
            return (index.map { state.waiters.remove(at: $0) }, state.snapshot)
        }
        waiter?.resume(
            .failure(
                WaitTimedOut(
                    description:
                        "waited in vain for \(description): \(snapshot.requests.count) requests, "
                        + "\(snapshot.inFlight) in flight, peak \(snapshot.peakInFlight), "
                        + "\(snapshot.answered) answered")))
    }

    private func change(_ body: (inout State) -> Void) {
        let met = state.withLock { state in
            body(&state)
            guard !state.waiters.isEmpty else { return [Waiter]() }
            let met = state.waiters.filter { $0.isMet(state.snapshot) }
            state.waiters.removeAll { waiter in met.contains { $0.identifier == waiter.identifier }
            }
            return met
        }
        for waiter in met { waiter.resume(.success(())) }
    }
}

/// What its connections tell the origin, on its event loop.
extension Origin {
    fileprivate func accepted(_ channel: any Channel) -> Int {
        state.withLock { state in
            state.snapshot.connections += 1
            state.channels[state.snapshot.connections] = channel
            return state.snapshot.connections
        }
    }

    func closed(_ connection: Int) {
        state.withLock { $0.channels[connection] = nil }
    }

    func received(_ request: Request) {
        change { state in
            state.snapshot.requests.append(request)
            state.snapshot.inFlight += 1
            state.snapshot.peakInFlight = max(state.snapshot.peakInFlight, state.snapshot.inFlight)
        }
    }

    /// - Parameter isAnswered: false when the client went away first.
    func ended(isAnswered: Bool) {
        change { state in
            state.snapshot.inFlight -= 1
            if isAnswered { state.snapshot.answered += 1 }
        }
    }

    func response(to request: Request) -> Response {
        let (scripted, fallback) = state.withLock { state in
            for key in [request.target, request.path] {
                guard let script = state.scripts[key], let first = script.first else { continue }
                if script.count > 1 { state.scripts[key]?.removeFirst() }
                return (Optional(first), state.fallback)
            }
            return (nil, state.fallback)
        }
        return scripted ?? fallback(request) ?? .notFound
    }
}

/// Lets the initializer of accepted connections find an origin that is made after its port is known.
private final class Owner: Sendable {
    let origin = Monitor<Origin?>(nil)
}

/// Runs `body` with an origin of its own and closes that and its connections afterwards.
@discardableResult
package func withOrigin<Success>(
    address: String = "127.0.0.1", port: Int = 0,
    isolation: isolated (any Actor)? = #isolation, _ body: (Origin) async throws -> Success
) async throws -> Success {
    let origin = try await Origin.start(address: address, port: port)
    let result: Result<Success, any Error>
    do { result = .success(try await body(origin)) } catch { result = .failure(error) }
    try await origin.stop()
    return try result.get()
}

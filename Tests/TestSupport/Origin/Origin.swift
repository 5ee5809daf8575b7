import Glibc
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOTLS
import PrefetchModel
import Threading

/// A scriptable server on the loopback address that can misbehave and records its requests. It
/// speaks HTTP/1.1, in clear or over TLS, or HTTP/2 over TLS.
///
/// All its connections share one event loop, so the order of ``requests`` is the order of arrival.
/// Responses are raw bytes (see ``Response``). Every method is thread-safe.
package final class Origin: Sendable {
    /// Returns the response to a request. Runs on the origin's event loop, so it must not block.
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
    /// As in URLs, IPv6 in brackets.
    private let host: String
    private let scheme: String
    package let port: Int
    /// Client sockets that fill the queue of a port that accepts nothing.
    private let fillers: [Int32]

    private init(listener: any Channel, scheme: String, host: String, port: Int, fillers: [Int32]) {
        self.listener = listener
        self.scheme = scheme
        self.host = host
        self.port = port
        self.fillers = fillers
    }

    /// The treatment of connections before the response to a request.
    package enum Accepting: Sendable {
        /// Requests get responses.
        case requests
        /// Ended with FIN or RST after it is accepted.
        case closed
        case reset
        /// Reset after the first bytes of any request.
        case resetInsideRequest
        /// Requests are read but get no response, not even a TLS handshake.
        case silence
        /// Never accepted, with a full kernel queue: connecting never completes. At 127.0.0.1 only.
        case nothing
    }

    /// Listens on a port outside the ephemeral range (`ip_local_port_range`), which no other socket
    /// gets after this origin stops.
    ///
    /// - Throws: When no port can be bound.
    package static func startOnPortOfItsOwn() async throws -> Origin {
        for port in (20_000..<32_000).shuffled().prefix(100) {
            if let origin = try? await start(port: port) { return origin }
        }
        return try await start()
    }

    /// Listens on 127.0.0.1 or ::1; port 0 picks a free one.
    ///
    /// Speaks plain HTTP/1.1 without `security`.
    ///
    /// - Throws: When the port cannot be bound or the certificate cannot be read.
    package static func start(
        address: String = "127.0.0.1", port: Int = 0, security: OriginSecurity? = nil,
        accepting: Accepting = .requests
    ) async throws -> Origin {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let context = try security?.makeContext()
        let backlog: Int32 = accepting == .nothing ? 0 : 1024
        let owner = Owner()
        let listener = try await ServerBootstrap(group: loop)
            .serverChannelOption(.backlog, value: backlog)
            // A closed port can be bound again while its old connections are in TIME_WAIT.
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.socketOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    guard let origin = owner.origin.withLock({ $0 }) else {
                        throw ChannelError.alreadyClosed
                    }
                    let pipeline = channel.pipeline.syncOperations
                    let number = origin.accepted(channel)
                    guard accepting == .requests else {
                        return try pipeline.addHandler(
                            OriginUnanswered(origin: origin, number: number, accepting: accepting))
                    }
                    if let context {
                        try pipeline.addHandler(
                            TLSServerHandler(context: context) { origin.resumedSession() })
                    }
                    guard let http2 = security?.http2 else {
                        return try origin.speakHTTP1(channel, number)
                    }
                    guard http2.alsoSpeaksHTTP1 else {
                        return try origin.speakHTTP2(channel, number, http2)
                    }
                    try pipeline.addHandler(
                        ApplicationProtocolNegotiationHandler { result, channel in
                            channel.eventLoop.makeCompletedFuture {
                                if result == .negotiated("h2") {
                                    try origin.speakHTTP2(channel, number, http2)
                                } else {
                                    try origin.speakHTTP1(channel, number)
                                }
                            }
                        })
                }
            }
            // Connections are accepted only after the origin is initialised.
            .serverChannelOption(.autoRead, value: false)
            .bind(host: address, port: port).get()
        guard let port = listener.localAddress?.port else { throw ChannelError.unknownLocalAddress }
        let host = address.contains(":") ? "[\(address)]" : address
        let origin = Origin(
            listener: listener, scheme: security == nil ? "http" : "https", host: host, port: port,
            fillers: accepting == .nothing ? fill(port) : [])
        owner.origin.withLock { $0 = origin }
        if accepting != .nothing {
            try await listener.setOption(ChannelOptions.autoRead, value: true).get()
        }
        return origin
    }

    private func speakHTTP1(_ channel: any Channel, _ number: Int) throws {
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(ByteToMessageHandler(HTTPRequestDecoder()))
        try pipeline.addHandler(OriginConnection(origin: self, number: number))
    }

    private func speakHTTP2(
        _ channel: any Channel, _ number: Int, _ behaviour: OriginSecurity.HTTP2
    ) throws {
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(OriginHTTP2Connection.makeCodec(behaviour))
        try pipeline.addHandler(
            OriginHTTP2Connection(origin: self, number: number, behaviour: behaviour))
    }

    /// Opens more connections than the kernel completes without an accept.
    private static func fill(_ port: Int) -> [Int32] {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(UInt16(port).bigEndian)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        return (0..<4).map { _ in
            let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
            let descriptor = socket(AF_INET, type, 0)
            withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    // Either in progress or never completed, as intended.
                    _ = connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
            return descriptor
        }
    }

    /// Closes the port and every connection, and waits until they are closed.
    package func stop() async throws {
        for descriptor in fillers { close(descriptor) }
        try await listener.close().get()
        let channels = state.withLock { state in Array(state.channels.values) }
        for channel in channels { channel.close(promise: nil) }
        for channel in channels { try await channel.closeFuture.get() }
    }

    /// `SCHEME://ADDRESS:PORT` and `path`, which begins with a slash.
    package func url(_ path: String) -> String { "\(scheme)://\(host):\(port)\(path)" }

    /// The URL with a host name. libcurl resolves every name that ends in `.localhost` to the
    /// loopback addresses (since 7.77; RFC 6761 §6.3).
    package func url(_ path: String, host name: String) -> String {
        "\(scheme)://\(name):\(port)\(path)"
    }

    package var snapshot: Snapshot { state.withLock { $0.snapshot } }
    package var requests: [Request] { snapshot.requests }

    /// Scripts the responses for `path` in order; the last one repeats. A script for a target with
    /// its query precedes one for the path alone.
    package func serve(_ path: String, _ responses: Response...) { serve(path, responses) }

    package func serve(_ path: String, _ responses: [Response]) {
        precondition(!responses.isEmpty, "a path needs an answer")
        state.withLock { $0.scripts[path] = responses }
    }

    /// Serves requests without a script; nil results in a 404.
    package func serve(_ answering: @escaping Answering) {
        state.withLock { $0.fallback = answering }
    }

    /// Waits until `isMet` holds; it is evaluated after every event.
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

/// Events of the connections, on the event loop.
extension Origin {
    fileprivate func accepted(_ channel: any Channel) -> Int {
        state.withLock { state in
            state.snapshot.connections += 1
            state.channels[state.snapshot.connections] = channel
            state.snapshot.peakConnections = max(
                state.snapshot.peakConnections, state.channels.count)
            return state.snapshot.connections
        }
    }

    fileprivate func resumedSession() {
        state.withLock { $0.snapshot.resumedSessions += 1 }
    }

    func closed(_ connection: Int) {
        state.withLock { $0.channels[connection] = nil }
    }

    func received(_ request: Request) {
        change { $0.snapshot.begin(request) }
    }

    /// The request is unanswered if the client disconnected first.
    func ended(_ request: Request, isAnswered: Bool) {
        change { $0.snapshot.end(request, isAnswered: isAnswered) }
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

/// Lets accepted connections find their origin, which is created after its port is known.
private final class Owner: Sendable {
    let origin = Monitor<Origin?>(nil)
}

/// Runs `body` with a new origin, then closes it and its connections.
@discardableResult
package func withOrigin<Success>(
    address: String = "127.0.0.1", port: Int = 0, security: OriginSecurity? = nil,
    accepting: Origin.Accepting = .requests,
    isolation: isolated (any Actor)? = #isolation, _ body: (Origin) async throws -> Success
) async throws -> Success {
    let origin = try await Origin.start(
        address: address, port: port, security: security, accepting: accepting)
    let result: Result<Success, any Error>
    do { result = .success(try await body(origin)) } catch { result = .failure(error) }
    try await origin.stop()
    return try result.get()
}

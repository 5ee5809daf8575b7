import Glibc
import NIOCore
import NIOHTTP1

/// One accepted connection: reads requests in order and performs the steps of their responses.
final class OriginConnection: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = ByteBuffer

    private let origin: Origin
    private let number: Int
    private var head: HTTPRequestHead?
    private var body: [UInt8] = []
    private var waiting: [Origin.Request] = []
    private var steps: ArraySlice<ResponseStep> = []
    /// The request to which a response is being sent.
    private var current: Origin.Request?
    private var requestCount = 0
    private var hasEnded = false

    init(origin: Origin, number: Int) {
        self.origin = origin
        self.number = number
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            self.head = head
            body = []
        case .body(let bytes): body += bytes.readableBytesView
        case .end:
            guard let head else { return }
            requestCount += 1
            let request = Origin.Request(
                method: head.method.rawValue, target: head.uri,
                headers: head.headers.map { (name: $0.name, value: $0.value) }, body: body,
                connection: number, ordinal: requestCount)
            origin.received(request)
            waiting.append(request)
            if current == nil { answerNext(context) }
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        hasEnded = true
        let unanswered = (current.map { [$0] } ?? []) + waiting
        current = nil
        waiting = []
        for request in unanswered { origin.ended(request, isAnswered: false) }
        origin.closed(number)
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    private func answerNext(_ context: ChannelHandlerContext) {
        guard !waiting.isEmpty, !hasEnded else { return }
        let request = waiting.removeFirst()
        current = request
        var steps = origin.response(to: request).steps(isHead: request.method == "HEAD")
        if request.header("connection")?.lowercased() == "close" { steps.append(.close) }
        self.steps = steps[...]
        perform(context)
    }

    private func finishAnswer() {
        guard let current else { return }
        self.current = nil
        origin.ended(current, isAnswered: true)
    }

    /// Performs steps until one has to wait; its completion calls this again on the event loop.
    private func perform(_ context: ChannelHandlerContext) {
        while !hasEnded, let step = steps.popFirst() {
            switch step {
            case .send(let bytes):
                context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
            case .wait(let duration):
                let (seconds, attoseconds) = duration.components
                let delay = seconds * 1_000_000_000 + attoseconds / 1_000_000_000
                context.eventLoop.assumeIsolated().scheduleTask(in: .nanoseconds(delay)) {
                    self.perform(context)
                }
                return
            case .pass(let gate):
                let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
                let loop = context.eventLoop
                gate.pass {
                    loop.execute {
                        let (connection, context) = bound.value
                        connection.perform(context)
                    }
                }
                return
            case .stall:
                return
            case .flood(let bytes):
                flood(context, bytes)
                return
            case .close:
                finishAnswer()
                hasEnded = true
                // A close does not wait for unsent data, so it follows an empty write.
                let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
                context.writeAndFlush(wrapOutboundOut(ByteBuffer())).whenComplete { _ in
                    bound.value.close(promise: nil)
                }
                return
            case .closeWithoutNotice:
                finishAnswer()
                hasEnded = true
                let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
                context.writeAndFlush(wrapOutboundOut(ByteBuffer())).whenComplete { _ in
                    closeBelowTLS(bound.value)
                }
                return
            case .reset:
                finishAnswer()
                hasEnded = true
                resetConnection(context)
                return
            }
        }
        guard !hasEnded else { return }
        finishAnswer()
        answerNext(context)
    }

    /// Sends the same bytes repeatedly, about 16 KiB each millisecond, until the client
    /// disconnects.
    private func flood(_ context: ChannelHandlerContext, _ bytes: [UInt8]) {
        let copies = max(1, (16 << 10) / max(1, bytes.count))
        flood(context, ByteBuffer(bytes: Array(repeatElement(bytes, count: copies).joined())))
    }

    private func flood(_ context: ChannelHandlerContext, _ buffer: ByteBuffer) {
        guard !hasEnded else { return }
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let loop = context.eventLoop
        context.writeAndFlush(wrapOutboundOut(buffer)).whenSuccess {
            // The pause lets the loop serve its other connections, also if the client reads faster
            // than it writes.
            _ = loop.scheduleTask(in: .milliseconds(1)) {
                let (connection, context) = bound.value
                connection.flood(context, buffer)
            }
        }
    }
}

/// A connection that is ended or ignored before a request is parsed.
final class OriginUnanswered: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let origin: Origin
    private let number: Int
    private let accepting: Origin.Accepting

    init(origin: Origin, number: Int, accepting: Origin.Accepting) {
        self.origin = origin
        self.number = number
        self.accepting = accepting
    }

    func channelActive(context: ChannelHandlerContext) {
        switch accepting {
        case .closed: context.close(promise: nil)
        case .reset: resetConnection(context)
        case .requests, .resetInsideRequest, .silence, .nothing: break
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if accepting == .resetInsideRequest { resetConnection(context) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        origin.closed(number)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}

/// Ends the connection with RST instead of FIN.
func resetConnection(_ context: ChannelHandlerContext) {
    let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
    guard let provider = context.channel as? any SocketOptionProvider else {
        return context.close(promise: nil)
    }
    provider.setSoLinger(linger(l_onoff: 1, l_linger: 0)).whenComplete { _ in
        closeBelowTLS(bound.value)
    }
}

/// Closes the connection without TLS's close_notify.
func closeBelowTLS(_ context: ChannelHandlerContext) {
    let pipeline = context.pipeline.syncOperations
    let below = try? pipeline.context(handlerType: TLSServerHandler.self)
    (below ?? context).close(promise: nil)
}

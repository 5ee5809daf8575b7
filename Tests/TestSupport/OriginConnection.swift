import Glibc
import NIOCore
import NIOHTTP1

/// One accepted connection: reads requests one after the other and carries out the steps of their answers.
final class OriginConnection: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = ByteBuffer

    private let origin: Origin
    private let number: Int
    private var head: HTTPRequestHead?
    private var waiting: [Origin.Request] = []
    private var steps: ArraySlice<ResponseStep> = []
    private var isAnswering = false
    private var hasEnded = false

    init(origin: Origin, number: Int) {
        self.origin = origin
        self.number = number
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): self.head = head
        case .body: break
        case .end:
            guard let head else { return }
            let request = Origin.Request(
                method: head.method.rawValue, target: head.uri,
                headers: head.headers.map { (name: $0.name, value: $0.value) }, connection: number)
            origin.received(request)
            waiting.append(request)
            if !isAnswering { answerNext(context) }
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        hasEnded = true
        let unanswered = waiting.count + (isAnswering ? 1 : 0)
        isAnswering = false
        waiting = []
        for _ in 0..<unanswered { origin.ended(isAnswered: false) }
        origin.closed(number)
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    private func answerNext(_ context: ChannelHandlerContext) {
        guard !waiting.isEmpty, !hasEnded else { return }
        let request = waiting.removeFirst()
        isAnswering = true
        var steps = origin.response(to: request).steps(isHead: request.method == "HEAD")
        if request.header("connection")?.lowercased() == "close" { steps.append(.close) }
        self.steps = steps[...]
        perform(context)
    }

    private func finishAnswer() {
        guard isAnswering else { return }
        isAnswering = false
        origin.ended(isAnswered: true)
    }

    /// Carries out steps until one has to wait; what waits calls this again on the event loop.
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
            case .close:
                finishAnswer()
                hasEnded = true
                // Everything was flushed; a close waits for nothing that the socket did not take,
                // so it follows an empty write.
                let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
                context.writeAndFlush(wrapOutboundOut(ByteBuffer())).whenComplete { _ in
                    bound.value.close(promise: nil)
                }
                return
            case .reset:
                finishAnswer()
                hasEnded = true
                reset(context)
                return
            }
        }
        guard !hasEnded else { return }
        finishAnswer()
        answerNext(context)
    }

    /// Ends the connection with RST instead of FIN.
    private func reset(_ context: ChannelHandlerContext) {
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        guard let provider = context.channel as? any SocketOptionProvider else {
            return context.close(promise: nil)
        }
        provider.setSoLinger(linger(l_onoff: 1, l_linger: 0)).whenComplete { _ in
            bound.value.close(promise: nil)
        }
    }
}

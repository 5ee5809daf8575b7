import Glibc
import NIOCore
import NIOHPACK
import NIOHTTP2

/// One accepted HTTP/2 connection: serves the requests of its streams concurrently.
///
/// Reads and writes frames; the codec below implements flow control.
final class OriginHTTP2Connection: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame
    typealias OutboundOut = HTTP2Frame

    /// One step of a stream, in order.
    private enum Step {
        case head(HPACKHeaders, isLast: Bool)
        case data([UInt8], isLast: Bool)
        case wait(Duration)
        case pass(Gate)
        case stall
        case flood([UInt8])
        case resetStream(HTTP2ErrorCode)
        case close
        case reset
    }

    private struct Stream {
        let request: Origin.Request
        var steps: ArraySlice<Step>
    }

    private let origin: Origin
    private let number: Int
    private let behaviour: OriginSecurity.HTTP2
    private var streams: [HTTP2StreamID: Stream] = [:]
    private var heads: [HTTP2StreamID: HPACKHeaders] = [:]
    private var requestCount = 0
    /// The last stream to serve, after GOAWAY was sent.
    private var lastStream: HTTP2StreamID?

    init(origin: Origin, number: Int, behaviour: OriginSecurity.HTTP2) {
        self.origin = origin
        self.number = number
        self.behaviour = behaviour
    }

    /// Creates the codec between bytes and frames. It permits wrong lengths.
    static func makeCodec(_ behaviour: OriginSecurity.HTTP2) -> NIOHTTP2Handler {
        NIOHTTP2Handler(
            mode: .server,
            initialSettings: [
                HTTP2Setting(
                    parameter: .maxConcurrentStreams, value: behaviour.maximumConcurrentStreams),
                HTTP2Setting(parameter: .maxHeaderListSize, value: 1 << 20),
            ], headerBlockValidation: .disabled, contentLengthValidation: .disabled)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        switch frame.payload {
        case .headers(let headers):
            heads[frame.streamID] = headers.headers
            if headers.endStream { begin(frame.streamID, context) }
        case .data(let data):
            if data.endStream { begin(frame.streamID, context) }
        case .rstStream:
            heads[frame.streamID] = nil
            guard let stream = streams.removeValue(forKey: frame.streamID) else { return }
            origin.ended(stream.request, isAnswered: false)
            closeWhenDone(context)
        default: break
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        let unanswered = streams.values
        streams = [:]
        for stream in unanswered { origin.ended(stream.request, isAnswered: false) }
        origin.closed(number)
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // A client may end a stream while its response is being sent.
        if error is NIOHTTP2Errors.StreamClosed || error is NIOHTTP2Errors.NoSuchStream
            || error is NIOHTTP2Errors.StreamError
        {
            return
        }
        context.close(promise: nil)
    }

    private func begin(_ identifier: HTTP2StreamID, _ context: ChannelHandlerContext) {
        guard let head = heads.removeValue(forKey: identifier) else { return }
        if let lastStream, identifier > lastStream { return }
        requestCount += 1
        let request = Origin.Request(
            method: head.first(name: ":method") ?? "", target: head.first(name: ":path") ?? "",
            headers: head.map { (name: $0.name, value: $0.value) }, connection: number,
            ordinal: requestCount)
        origin.received(request)
        let response = origin.response(to: request)
        switch response.stream {
        case .goAway, .calmDown:
            origin.ended(request, isAnswered: true)
            let isCalm = if case .calmDown = response.stream { true } else { false }
            goAway(
                context, last: HTTP2StreamID(max(0, Int(identifier) - 2)),
                isCalm ? .enhanceYourCalm : .noError)
            if isCalm { return context.close(promise: nil) }
            return closeWhenDone(context)
        default: break
        }
        streams[identifier] = Stream(
            request: request, steps: steps(of: response, isHead: request.method == "HEAD")[...])
        if requestCount == behaviour.requestsBeforeGoAway {
            // Streams under way are refused one by one: the codec takes a later frame of a stream
            // above the announced one for an error of the connection.
            goAway(context, last: .maxID, .noError)
        }
        perform(identifier, context)
    }

    private func goAway(
        _ context: ChannelHandlerContext, last: HTTP2StreamID, _ code: HTTP2ErrorCode
    ) {
        lastStream = last
        let payload = HTTP2Frame.FramePayload.goAway(
            lastStreamID: last, errorCode: code, opaqueData: nil)
        context.writeAndFlush(
            wrapOutboundOut(HTTP2Frame(streamID: .rootStream, payload: payload)), promise: nil)
    }

    private func closeWhenDone(_ context: ChannelHandlerContext) {
        if lastStream != nil, streams.isEmpty { context.close(promise: nil) }
    }

    // MARK: Responses

    private func steps(of response: Response, isHead: Bool) -> [Step] {
        var steps: [Step] = []
        if let gate = response.gate { steps.append(.pass(gate)) }
        if response.delayBeforeHead > .zero { steps.append(.wait(response.delayBeforeHead)) }
        if case .refused = response.stream { return steps + [.resetStream(.refusedStream)] }
        switch response.ending {
        case .closedBeforeHead, .closedInsideHead: return steps + [.close]
        case .resetBeforeHead, .resetInsideHead: return steps + [.reset]
        case .stalledBeforeHead, .stalledInsideHead: return steps + [.stall]
        default: break
        }
        var head = HPACKHeaders([(":status", "\(response.status)")])
        for (name, value) in response.headers { head.add(name: name.lowercased(), value: value) }
        for length in response.announcedLengths { head.add(name: "content-length", value: length) }
        var limit = response.ending.bodyLimit
        switch response.stream {
        case .reset(let bytes), .ended(let bytes): limit = bytes
        default: break
        }
        let body = isHead ? [] : Array(response.body.prefix(limit ?? response.body.count))
        let isWhole = limit == nil
        steps.append(.head(head, isLast: isWhole && body.isEmpty))
        if let gate = response.bodyGate { steps.append(.pass(gate)) }
        if response.delayBeforeBody > .zero { steps.append(.wait(response.delayBeforeBody)) }
        let piece = max(1, response.drip?.bytes ?? body.count)
        for start in stride(from: 0, to: body.count, by: piece) {
            let end = min(start + piece, body.count)
            if start > 0, let drip = response.drip { steps.append(.wait(drip.interval)) }
            steps.append(
                .data(Array(body[start..<end]), isLast: isWhole && end == body.count))
        }
        if case .reset = response.stream { return steps + [.resetStream(.internalError)] }
        if case .ended = response.stream { return steps + [.resetStream(.noError)] }
        switch response.ending {
        case .closedAfter: steps.append(.close)
        case .resetAfter, .resetAfterWhole: steps.append(.reset)
        case .stalledAfter: steps.append(.stall)
        case .endless: steps.append(.flood(response.body))
        default: if response.closesSilently { steps.append(.close) }
        }
        return steps
    }

    /// Performs steps until one has to wait; its completion calls this again on the event loop.
    private func perform(_ identifier: HTTP2StreamID, _ context: ChannelHandlerContext) {
        while let step = streams[identifier]?.steps.popFirst() {
            switch step {
            case .head(let headers, let isLast):
                write(
                    .headers(.init(headers: headers, endStream: isLast)), to: identifier, context)
            case .data(let bytes, let isLast):
                let data = IOData.byteBuffer(ByteBuffer(bytes: bytes))
                write(.data(.init(data: data, endStream: isLast)), to: identifier, context)
            case .wait(let duration):
                let (seconds, attoseconds) = duration.components
                let delay = seconds * 1_000_000_000 + attoseconds / 1_000_000_000
                context.eventLoop.assumeIsolated().scheduleTask(in: .nanoseconds(delay)) {
                    self.perform(identifier, context)
                }
                return
            case .pass(let gate):
                let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
                let loop = context.eventLoop
                gate.pass {
                    loop.execute {
                        let (connection, context) = bound.value
                        connection.perform(identifier, context)
                    }
                }
                return
            case .stall: return
            case .flood(let bytes):
                return flood(identifier, ByteBuffer(bytes: bytes), context)
            case .resetStream(let code):
                write(.rstStream(code), to: identifier, context)
            case .close:
                endAll()
                return context.close(promise: nil)
            case .reset:
                endAll()
                return resetConnection(context)
            }
        }
        guard let stream = streams.removeValue(forKey: identifier) else { return }
        origin.ended(stream.request, isAnswered: true)
        closeWhenDone(context)
    }

    private func endAll() {
        let ended = streams.values
        streams = [:]
        for stream in ended { origin.ended(stream.request, isAnswered: true) }
    }

    private func write(
        _ payload: HTTP2Frame.FramePayload, to identifier: HTTP2StreamID,
        _ context: ChannelHandlerContext
    ) {
        context.writeAndFlush(
            wrapOutboundOut(HTTP2Frame(streamID: identifier, payload: payload)), promise: nil)
    }

    private func flood(
        _ identifier: HTTP2StreamID, _ buffer: ByteBuffer, _ context: ChannelHandlerContext
    ) {
        guard streams[identifier] != nil else { return }
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let loop = context.eventLoop
        let frame = HTTP2Frame(
            streamID: identifier, payload: .data(.init(data: .byteBuffer(buffer))))
        context.writeAndFlush(wrapOutboundOut(frame)).whenSuccess {
            loop.execute {
                let (connection, context) = bound.value
                connection.flood(identifier, buffer, context)
            }
        }
    }
}

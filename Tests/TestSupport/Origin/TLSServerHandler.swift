import CTLS
import NIOCore
import NIOTLS

/// The certificate and versions of an origin, shared by its connections.
///
/// `@unchecked Sendable`: OpenSSL locks the reference counts of its contexts.
final class TLSContext: @unchecked Sendable {
    /// A protocol version as sent.
    enum Version: Int32 {
        case tls1 = 0x0301
        case tls12 = 0x0303
        case tls13 = 0x0304
    }

    struct Invalid: Error, CustomStringConvertible {
        let description: String
    }

    fileprivate let pointer: OpaquePointer

    /// Loads a certificate.
    ///
    /// `chain` and `key` are paths of PEM files; `maximum` is nil for OpenSSL's newest version.
    /// `protocols` are names for ALPN, preferred one first. With `clientAuthority`, clients need a
    /// certificate of an authority in that file.
    ///
    /// - Throws: ``Invalid`` when a file cannot be read or the two do not match.
    init(
        chain: String, key: String, minimum: Version, maximum: Version?, protocols: [String],
        clientAuthority: String? = nil
    ) throws(Invalid) {
        let names = protocols.flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) }
        var error = [CChar](repeating: 0, count: 256)
        guard
            let pointer = ctls_context_create(
                chain, key, minimum.rawValue, maximum?.rawValue ?? 0, names, UInt32(names.count),
                &error, error.count)
        else {
            let end = error.firstIndex(of: 0) ?? error.endIndex
            let message = error[..<end].map(UInt8.init(bitPattern:))
            throw Invalid(
                description: "\(chain): \(String(decoding: message, as: UTF8.self))")
        }
        self.pointer = pointer
        guard let clientAuthority else { return }
        guard ctls_context_require_client(pointer, clientAuthority) == CTLS_DONE else {
            throw Invalid(description: "\(clientAuthority): cannot be used")
        }
    }

    deinit { ctls_context_free(pointer) }
}

/// The server side of TLS between a socket and a higher protocol, by the system's OpenSSL.
///
/// Data written during the handshake is queued. A write's promise is fulfilled when the socket has
/// taken its encrypted bytes, so that a sender follows its client's speed.
final class TLSServerHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum Phase {
        case shakingHands
        case open
        /// close_notify was sent; the client's own, or a time-out, ends the connection.
        case closing(EventLoopPromise<Void>?)
        case closed
    }

    /// The time to wait for the client's close_notify. Without it, the kernel would respond to data
    /// that the client still sends with RST, and the client might lose unread data.
    private static let closingTime = TimeAmount.milliseconds(200)

    /// Retained for the ALPN callback of OpenSSL's session.
    private let context: TLSContext
    private let session: OpaquePointer
    private var phase = Phase.shakingHands
    private var waiting: [(bytes: ByteBuffer, promise: EventLoopPromise<Void>?)] = []
    /// Called after a handshake that resumed an earlier session.
    private let resumed: () -> Void

    init(context: TLSContext, resumed: @escaping () -> Void) {
        guard let session = ctls_session_create(context.pointer) else {
            preconditionFailure("no memory for a TLS session")
        }
        self.context = context
        self.session = session
        self.resumed = resumed
    }

    deinit { ctls_session_free(session) }

    // MARK: Client to server

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let isTaken = unwrapInboundIn(data).withUnsafeReadableBytes { bytes in
            ctls_take(session, bytes.baseAddress, Int32(bytes.count)) == CTLS_DONE
        }
        guard isTaken else { return fail(context) }
        if case .shakingHands = phase { shakeHands(context) }
        decrypt(context)
    }

    func channelInactive(context: ChannelHandlerContext) {
        if case .closing(let promise) = phase { promise?.succeed() }
        phase = .closed
        dropWaiting(.ioOnClosedChannel)
        context.fireChannelInactive()
    }

    private func shakeHands(_ context: ChannelHandlerContext) {
        let outcome = ctls_shake_hands(session)
        sendEncrypted(context)
        switch outcome {
        case Int32(CTLS_WANTS_MORE): return
        case Int32(CTLS_DONE):
            phase = .open
            if ctls_is_resumed(session) == 1 { resumed() }
            var count: UInt32 = 0
            let name = ctls_protocol(session, &count)
            let protocolName = name.map {
                String(decoding: UnsafeBufferPointer(start: $0, count: Int(count)), as: UTF8.self)
            }
            context.fireUserInboundEventTriggered(
                TLSUserEvent.handshakeCompleted(negotiatedProtocol: protocolName))
            writeWaiting(context)
        default: fail(context)
        }
    }

    /// Passes on decrypted data; the handler above may close the connection.
    private func decrypt(_ context: ChannelHandlerContext) {
        while true {
            switch phase {
            case .open, .closing: break
            case .shakingHands, .closed: return
            }
            var count: Int32 = 0
            var outcome: Int32 = 0
            var buffer = context.channel.allocator.buffer(capacity: 1 << 14)
            buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: 1 << 14) { bytes in
                outcome = ctls_read(session, bytes.baseAddress, Int32(bytes.count), &count)
                return max(0, Int(count))
            }
            switch outcome {
            case Int32(CTLS_DONE):
                if case .open = phase { context.fireChannelRead(wrapInboundOut(buffer)) }
            case Int32(CTLS_WANTS_MORE): return sendEncrypted(context)
            case Int32(CTLS_ENDED):
                // Sends close_notify, unless this side was already closing.
                ctls_end(session)
                sendEncrypted(context)
                return finish(context)
            default: return fail(context)
            }
        }
    }

    // MARK: Server to client

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        waiting.append((unwrapOutboundIn(data), promise))
    }

    func flush(context: ChannelHandlerContext) {
        if case .open = phase { writeWaiting(context) }
    }

    private func writeWaiting(_ context: ChannelHandlerContext) {
        let writes = waiting
        waiting = []
        for (bytes, promise) in writes {
            let isWritten = bytes.withUnsafeReadableBytes { bytes in
                ctls_write(session, bytes.baseAddress, Int32(bytes.count)) == CTLS_DONE
            }
            guard isWritten else {
                promise?.fail(ChannelError.ioOnClosedChannel)
                return fail(context)
            }
            context.write(wrapOutboundOut(takeEncrypted(context)), promise: promise)
        }
        context.flush()
    }

    private func takeEncrypted(_ context: ChannelHandlerContext) -> ByteBuffer {
        let count = ctls_waiting(session)
        var buffer = context.channel.allocator.buffer(capacity: count)
        guard count > 0 else { return buffer }
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { bytes in
            max(0, Int(ctls_give(session, bytes.baseAddress, Int32(count))))
        }
        return buffer
    }

    private func sendEncrypted(_ context: ChannelHandlerContext) {
        let buffer = takeEncrypted(context)
        if buffer.readableBytes > 0 {
            context.writeAndFlush(wrapOutboundOut(buffer), promise: nil)
        }
    }

    // MARK: Closing

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard case .open = phase, mode == .all else {
            return context.close(mode: mode, promise: promise)
        }
        writeWaiting(context)
        // A failed write has already closed the connection.
        guard case .open = phase else {
            promise?.succeed()
            return
        }
        phase = .closing(promise)
        ctls_end(session)
        sendEncrypted(context)
        context.eventLoop.assumeIsolated().scheduleTask(in: TLSServerHandler.closingTime) {
            if case .closing = self.phase { self.finish(context) }
        }
    }

    private func finish(_ context: ChannelHandlerContext) {
        var promise: EventLoopPromise<Void>?
        if case .closing(let waiting) = phase { promise = waiting }
        phase = .closed
        dropWaiting(.ioOnClosedChannel)
        context.close(promise: promise)
    }

    /// Sends OpenSSL's alert, if any, and closes the connection.
    private func fail(_ context: ChannelHandlerContext) {
        if case .closed = phase { return }
        sendEncrypted(context)
        finish(context)
    }

    private func dropWaiting(_ error: ChannelError) {
        let writes = waiting
        waiting = []
        for (_, promise) in writes { promise?.fail(error) }
    }
}

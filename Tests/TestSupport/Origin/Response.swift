/// The origin's response to one request, including deliberate faults.
///
/// By default correct: 200, `Content-Length`, fresh for an hour, connection kept open.
package struct Response: Sendable {
    package var status: Int
    /// Header fields in order, without framing fields; names as sent.
    package var headers: [(name: String, value: String)]
    package var body: [UInt8]
    package var framing: Framing
    /// The end of the response.
    package var ending: Ending
    /// Time between the request's end and the first byte.
    package var delayBeforeHead: Duration = .zero
    /// Time between the head's last byte and the body's first one.
    package var delayBeforeBody: Duration = .zero
    /// The body bytes of each step and the time before it; nil sends the body in one step.
    package var drip: (bytes: Int, interval: Duration)?
    /// A gate before the first byte.
    package var gate: Gate?
    /// A gate before the first body byte.
    package var bodyGate: Gate?
    /// Closes the connection after this response without announcing it.
    package var closesSilently = false
    /// The time between the last byte and the end of the connection, if this response ends it.
    package var delayBeforeClose: Duration = .zero
    /// Omits TLS's close_notify if this response ends the connection.
    package var closesWithoutNotice = false
    /// Raw bytes before the head, such as interim responses.
    package var prelude: [UInt8] = []
    /// A fault of the stream; for HTTP/2 only.
    package var stream: StreamFault?
    /// Replaces status line and header section, including framing fields; must contain the final
    /// empty line if one is wanted.
    package var rawHead: String?

    /// The framing of the body.
    package enum Framing: Sendable {
        /// A correct `Content-Length`.
        case announced
        /// One chunk per 1,000 bytes, or per drip.
        case chunked
        /// Neither; `Connection: close`, and the end of the connection ends the body.
        case closeDelimited
        /// A `Content-Length` of this value, also if the body has another length.
        case lyingLength(Int)
        /// Chunked, with a `Content-Length` of this value as well.
        case chunkedWithLength(Int)
        /// One `Content-Length` field per text: repeated, negative or invalid ones.
        case lengthTexts([String])
        /// No body at all and no framing field, as for 304.
        case bodiless
    }

    /// Faults specific to HTTP/2 (RFC 9113 §7).
    package enum StreamFault: Sendable {
        /// RST_STREAM with REFUSED_STREAM before any processing.
        case refused
        /// RST_STREAM with INTERNAL_ERROR after the head and this many body bytes.
        case reset(bodyBytes: Int)
        /// RST_STREAM with NO_ERROR after the head and this many body bytes.
        case ended(bodyBytes: Int)
        /// GOAWAY that excludes this request's stream; the connection is closed after the others.
        case goAway
        /// GOAWAY with ENHANCE_YOUR_CALM that ends the connection immediately.
        case calmDown
    }

    package enum Ending: Sendable {
        /// According to the framing.
        case complete
        /// The whole response, then RST.
        case resetAfterWhole
        /// The body repeated, as one chunk each time if chunked, until the client disconnects.
        case endless
        /// Status line and fields, then the first field repeatedly.
        case endlessHead
        /// The whole chunked body, then trailers until the client disconnects.
        case endlessTrailers
        /// ``Response/prelude`` repeatedly.
        case endlessPrelude
        /// A regular close after this many body bytes.
        case closedAfter(bodyBytes: Int)
        /// A reset after this many body bytes.
        case resetAfter(bodyBytes: Int)
        /// A stall after this many body bytes; the connection stays open.
        case stalledAfter(bodyBytes: Int)
        case closedBeforeHead
        case resetBeforeHead
        case closedInsideHead
        case resetInsideHead
        case stalledBeforeHead
        case stalledInsideHead

        var bodyLimit: Int? {
            switch self {
            case .closedAfter(let count), .resetAfter(let count), .stalledAfter(let count): count
            case .endless: 0
            default: nil
            }
        }
    }

    package init(
        _ status: Int = 200, headers: [(name: String, value: String)] = [], body: [UInt8] = [],
        type: String? = nil, framing: Framing = .announced, ending: Ending = .complete,
        gate: Gate? = nil
    ) {
        self.status = status
        self.headers = headers
        self.body = body
        self.framing = framing
        self.ending = ending
        self.gate = gate
        if let type { self.headers.append(("Content-Type", type)) }
        let hasCaching = headers.contains { $0.name.lowercased() == "cache-control" }
        if status == 200, !hasCaching { self.headers.append(("Cache-Control", "max-age=3600")) }
    }

    /// An image that is fresh for an hour, with the media type of its signature.
    package static func image(
        _ bytes: [UInt8], framing: Framing = .announced, ending: Ending = .complete,
        gate: Gate? = nil
    ) -> Response {
        Response(
            body: bytes, type: bytes.first == 0x89 ? "image/png" : "image/jpeg", framing: framing,
            ending: ending, gate: gate)
    }

    package static func text(_ text: String, type: String = "text/html") -> Response {
        Response(body: Array(text.utf8), type: type)
    }

    /// A redirect; the location is sent unchanged, absolute or relative.
    package static func redirect(_ status: Int = 302, to location: String) -> Response {
        Response(status, headers: [("Location", location)])
    }

    /// 429 or 503, with `Retry-After` if given.
    package static func unavailable(_ status: Int = 503, retryAfter: String? = nil) -> Response {
        Response(status, headers: retryAfter.map { [("Retry-After", $0)] } ?? [])
    }

    package static let notFound = Response(404, body: Array("not here\n".utf8), type: "text/plain")
    package static let notModified = Response(304, framing: .bodiless)
}

/// One step of a connection, in order.
enum ResponseStep: Sendable {
    case send([UInt8])
    case wait(Duration)
    case pass(Gate)
    /// Stops until the connection ends.
    case stall
    /// Sends the bytes repeatedly until the connection ends.
    case flood([UInt8])
    case close
    case closeWithoutNotice
    case reset
}

extension Response {
    /// The steps that send this response; without `close`, `reset` or `stall` the connection then
    /// reads the next request.
    func steps(isHead: Bool) -> [ResponseStep] {
        var steps: [ResponseStep] = []
        if let gate { steps.append(.pass(gate)) }
        if delayBeforeHead > .zero { steps.append(.wait(delayBeforeHead)) }
        if !prelude.isEmpty {
            if case .endlessPrelude = ending { return steps + [.flood(prelude)] }
            steps.append(.send(prelude))
        }
        let head = Array(headText.utf8)
        switch ending {
        case .closedBeforeHead: return steps + [.close]
        case .resetBeforeHead: return steps + [.reset]
        case .stalledBeforeHead: return steps + [.stall]
        case .closedInsideHead: return steps + [.send(Array(head.prefix(head.count / 2))), .close]
        case .resetInsideHead: return steps + [.send(Array(head.prefix(head.count / 2))), .reset]
        case .stalledInsideHead: return steps + [.send(Array(head.prefix(head.count / 2))), .stall]
        case .endlessHead:
            let line = "\(headers.first.map { "\($0.name): \($0.value)" } ?? "X: y")\r\n"
            return steps + [.send(Array(head.dropLast(2))), .flood(Array(line.utf8))]
        case .complete, .resetAfterWhole, .endless, .endlessTrailers, .endlessPrelude,
            .closedAfter, .resetAfter, .stalledAfter:
            break
        }
        let bodySteps = isHead ? [] : self.bodySteps
        if delayBeforeBody > .zero || bodyGate != nil {
            steps.append(.send(head))
            if let bodyGate { steps.append(.pass(bodyGate)) }
            if delayBeforeBody > .zero { steps.append(.wait(delayBeforeBody)) }
            steps += bodySteps
        } else if case .send(let first)? = bodySteps.first {
            // In one write: short responses need one packet.
            steps.append(.send(head + first))
            steps += bodySteps.dropFirst()
        } else {
            steps.append(.send(head))
            steps += bodySteps
        }
        switch ending {
        case .closedAfter: steps += closing
        case .resetAfter, .resetAfterWhole: steps.append(.reset)
        case .stalledAfter: steps.append(.stall)
        case .endless:
            let size = Array("\(String(body.count, radix: 16))\r\n".utf8)
            steps.append(.flood(isChunked ? size + body + [0x0D, 0x0A] : body))
        case .endlessTrailers:
            steps.append(
                .flood(Array("X-Trailer: \(String(repeating: "x", count: 1000))\r\n".utf8)))
        default:
            if closesSilently || endsConnection { steps += closing }
        }
        return steps
    }

    private var closing: [ResponseStep] {
        (delayBeforeClose > .zero ? [.wait(delayBeforeClose)] : [])
            + [closesWithoutNotice ? .closeWithoutNotice : .close]
    }

    private var endsConnection: Bool {
        switch framing {
        case .closeDelimited, .lengthTexts: true
        // The excess of a longer body would be parsed as the next response.
        case .lyingLength(let length), .chunkedWithLength(let length): length != body.count
        case .announced, .chunked, .bodiless: false
        }
    }

    private var headText: String {
        if let rawHead { return rawHead }
        var text = "HTTP/1.1 \(status) \(Response.phrase(status))\r\n"
        for (name, value) in headers { text += "\(name): \(value)\r\n" }
        for length in announcedLengths { text += "Content-Length: \(length)\r\n" }
        if isChunked { text += "Transfer-Encoding: chunked\r\n" }
        if case .closeDelimited = framing { text += "Connection: close\r\n" }
        return text + "\r\n"
    }

    /// The values of the `Content-Length` fields.
    var announcedLengths: [String] {
        switch framing {
        case .announced: ["\(body.count)"]
        case .lyingLength(let length), .chunkedWithLength(let length): ["\(length)"]
        case .lengthTexts(let texts): texts
        case .chunked, .closeDelimited, .bodiless: []
        }
    }

    private var isChunked: Bool {
        switch framing {
        case .chunked, .chunkedWithLength: true
        default: false
        }
    }

    private var bodySteps: [ResponseStep] {
        if case .bodiless = framing { return [] }
        let limit = min(ending.bodyLimit ?? body.count, body.count)
        var steps: [ResponseStep] = []
        let piece = max(1, drip?.bytes ?? (isChunked ? 1000 : max(body.count, 1)))
        var start = 0
        while start < limit {
            let end = min(start + piece, body.count)
            let visible = body[start..<min(end, limit)]
            if let drip, start > 0 { steps.append(.wait(drip.interval)) }
            if isChunked {
                // A cut is inside a chunk that was announced with its full size.
                let size = Array("\(String(end - start, radix: 16))\r\n".utf8)
                let isWhole = end <= limit
                steps.append(.send(size + visible + (isWhole ? [0x0D, 0x0A] : [])))
            } else {
                steps.append(.send(Array(visible)))
            }
            start = end
        }
        if isChunked, ending.bodyLimit == nil {
            let hasTrailers = if case .endlessTrailers = ending { true } else { false }
            steps.append(.send(Array((hasTrailers ? "0\r\n" : "0\r\n\r\n").utf8)))
        }
        return steps
    }

    private static func phrase(_ status: Int) -> String {
        switch status {
        case 200: "OK"
        case 206: "Partial Content"
        case 301: "Moved Permanently"
        case 302: "Found"
        case 304: "Not Modified"
        case 404: "Not Found"
        case 429: "Too Many Requests"
        case 503: "Service Unavailable"
        default: "Scripted"
        }
    }
}

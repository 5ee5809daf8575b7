/// Faults of connections, their ends, and stalls.
extension FaultCase {
    static let connections: [FaultCase] = [
        FaultCase(
            "no-name", place: .url("http://no-such-host.invalid/x.png"), .transient("dns"),
            "the name does not exist"),
        FaultCase("refused", place: .closedPort, .transient("connect"), "nobody listens"),
        FaultCase(
            "full", place: .port(.nothing), .transient("connect"), wait: .connecting,
            "nobody accepts and the queue of the port is full"),
        FaultCase(
            "accept-closed", place: .port(.closed), .transient("interrupted"),
            "each connection is closed when it is accepted"),
        FaultCase(
            "accept-reset", place: .port(.reset), .transient("interrupted", "connect"),
            "each connection is reset when it is accepted"),
        FaultCase(
            "request-reset", place: .port(.resetInsideRequest), .transient("interrupted"),
            "each connection is reset at the first bytes of a request"),
        FaultCase(
            "mute", place: .port(.silence), .transient("stalled"), wait: .stall,
            "requests are taken and never answered"),
    ]

    static let endings: [FaultCase] = [
        FaultCase("plain", .arrives, "the file"),
        FaultCase("closed-before-head", .transient("interrupted"), "closed without a byte") { _ in
            Response(ending: .closedBeforeHead)
        },
        FaultCase("closed-in-head", .transient("interrupted"), "closed in the midst of the head") {
            _ in Response(ending: .closedInsideHead)
        },
        FaultCase("reset-before-head", .transient("interrupted"), "reset without a byte") { _ in
            Response(ending: .resetBeforeHead)
        },
        FaultCase("reset-in-head", .transient("interrupted"), "reset in the midst of the head") {
            _ in Response(ending: .resetInsideHead)
        },
        FaultCase(
            "reset", at: 1000, .transient("interrupted"), "announced, reset after so many bytes"
        ) {
            .image($0.file, ending: .resetAfter(bodyBytes: $0.parameter))
        },
        FaultCase("reset-after", .arrives, "the whole announced file, then a reset") {
            .image($0.file, ending: .resetAfterWhole)
        },
        FaultCase("reset-after-chunked", .arrives, "the whole chunked file, then a reset") {
            .image($0.file, framing: .chunked, ending: .resetAfterWhole)
        },
        FaultCase(
            "cut-announced", at: 1000, .transient("interrupted"),
            "`Content-Length` of the whole, closed after so many bytes"
        ) {
            .image($0.file, ending: .closedAfter(bodyBytes: $0.parameter))
        },
        FaultCase(
            "cut-chunked", at: 1000, .transient("interrupted"),
            "a chunk of the whole, closed after so many bytes", cutChunked),
        FaultCase(
            "cut-closed", at: 1000, .transient("interrupted"), "close-delimited, only so many bytes"
        ) {
            .image(Array($0.file.prefix($0.parameter)), framing: .closeDelimited)
        },
        FaultCase(
            "short", at: 1000, .permanent("corrupt-image"), "only so many bytes, truly announced"
        ) {
            .image(Array($0.file.prefix($0.parameter)))
        },
    ]

    private static let cutChunked: Answer = { context in
        var response = Response.image(
            context.file, framing: .chunked, ending: .closedAfter(bodyBytes: context.parameter))
        response.drip = (bytes: max(context.file.count, 1), interval: .zero)
        return response
    }

    static let silences: [FaultCase] = [
        FaultCase(
            "silent-before-head", .transient("stalled"), wait: .stall, "no byte, connection open"
        ) { _ in
            Response(ending: .stalledBeforeHead)
        },
        FaultCase(
            "silent-in-head", .transient("stalled"), wait: .stall, "silent in the midst of the head"
        ) { _ in
            Response(ending: .stalledInsideHead)
        },
        FaultCase(
            "silent-after-head", .transient("stalled"), wait: .stall, "silent after the head"
        ) {
            .image($0.file, ending: .stalledAfter(bodyBytes: 0))
        },
        FaultCase(
            "stall", at: 1000, .transient("stalled"), wait: .stall,
            "announced, silent after so many bytes"
        ) {
            .image($0.file, ending: .stalledAfter(bodyBytes: $0.parameter))
        },
        FaultCase(
            "open-end", .transient("stalled"), wait: .stall,
            "a body that ends with its connection, which stays open"
        ) {
            .image($0.file, framing: .closeDelimited, ending: .stalledAfter(bodyBytes: .max))
        },
        FaultCase(
            "trickle", at: 300, .transient("timeout"), wait: .total,
            "2 bytes of the body each time so many milliseconds passed"
        ) { context in
            var response = Response.image(context.file)
            response.drip = (bytes: 2, interval: .milliseconds(context.parameter))
            return response
        },
        FaultCase("drip", at: 100, .arrives, "the file in eight parts, so many milliseconds apart")
        {
            context in
            var response = Response.image(context.file)
            let bytes = max(1, context.file.count / 8)
            response.drip = (bytes: bytes, interval: .milliseconds(context.parameter))
            return response
        },
        FaultCase("delay", at: 300, .arrives, "the file, so many milliseconds later") { context in
            var response = Response.image(context.file)
            response.delayBeforeHead = .milliseconds(context.parameter)
            return response
        },
        FaultCase(
            "slow-close", at: 60_000, .arrives, "announced, closed so many milliseconds later"
        ) {
            context in
            var response = Response.image(context.file)
            response.closesSilently = true
            response.delayBeforeClose = .milliseconds(context.parameter)
            return response
        },
    ]

    /// Connections that end earlier than a client may expect. The neighbour's request reuses the
    /// connection.
    static let reuse: [FaultCase] = [
        FaultCase("close-after", .arrives, "closed after each answer without a word") { context in
            var response = Response.image(context.file)
            response.closesSilently = true
            return response
        },
        FaultCase(
            "close-late", at: 50, .arrives, "closed so many milliseconds after each answer"
        ) { context in
            var response = Response.image(context.file)
            response.closesSilently = true
            response.delayBeforeClose = .milliseconds(context.parameter)
            return response
        },
        FaultCase("close-announced", .arrives, "`Connection: close` and a length, and closed") {
            var response = Response.image($0.file)
            response.headers.append(("Connection", "close"))
            response.closesSilently = true
            return response
        },
        FaultCase("reuse-closed", at: 1, .arrives, "closed at every request after so many") {
            $0.request.ordinal > $0.parameter
                ? Response(ending: .closedBeforeHead) : .image($0.file)
        },
        FaultCase("reuse-reset", at: 1, .arrives, "reset at every request after so many") {
            $0.request.ordinal > $0.parameter
                ? Response(ending: .resetBeforeHead) : .image($0.file)
        },
    ]
}

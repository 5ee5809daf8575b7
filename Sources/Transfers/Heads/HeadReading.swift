import PrefetchModel

/// Reads the head of a response as far as it has arrived.
protocol HeadReading {
    /// 0 before a status line.
    var status: Int { get }
    /// The announced length of the body as sent, before decoding; at most a quarter of `Int.max`.
    var announcedLength: Int? { get }
    /// Whether the body has a content encoding.
    var isEncoded: Bool { get }
    /// All fields, in their order.
    var fields: [HeaderField] { get }
    /// A reason to distrust the announced length, which libcurl may accept (RFC 9112 §6.3).
    var framingProblem: String? { get }
    /// From the transfer's start until its request was sent; nil before.
    var timeToRequest: Duration? { get }
}

extension EasyHandle: HeadReading {
    var isEncoded: Bool {
        guard !passesContentThrough else { return false }
        // libcurl also takes `none` for `identity`.
        let encoding = field("Content-Encoding")?.lowercased() ?? ""
        return !["", "identity", "none"].contains(encoding)
    }
}

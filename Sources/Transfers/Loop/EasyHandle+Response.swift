internal import CCurl
import Glibc
import PrefetchModel

/// Reads the head of a response as far as it has arrived.
protocol HeadReading {
    /// 0 before a status line.
    var status: Int { get }
    /// The announced length of the body as sent, before decoding; at most a quarter of `Int.max`:
    /// sums do not overflow.
    var announcedLength: Int? { get }
    /// Whether the body has a content encoding.
    var isEncoded: Bool { get }
    /// All fields, in their order.
    var fields: [HeaderField] { get }
    /// A reason to distrust the announced length. libcurl may accept it, while another reader
    /// takes a different part for the body (RFC 9112 §6.3).
    var framingProblem: String? { get }
    /// From the transfer's start until its request was sent; nil before.
    var timeToRequest: Duration? { get }
}

// Information about the response and its connection.

extension EasyHandle: HeadReading {
    var status: Int { number(CURLINFO_RESPONSE_CODE) }

    /// A proxy's response to CONNECT, 0 without one.
    var tunnelStatus: Int { number(CURLINFO_HTTP_CONNECTCODE) }

    var openedConnections: Int { number(CURLINFO_NUM_CONNECTS) }

    /// The connection of the response; nil before its first byte.
    var responseConnection: ResponseConnection? {
        guard let sent = timeToRequest, let first = time(CURLINFO_STARTTRANSFER_TIME_T) else {
            return nil
        }
        var connection = ResponseConnection()
        connection.version =
            switch number(CURLINFO_HTTP_VERSION) {
            case Int(CURL_HTTP_VERSION_1_0): .http1_0
            case Int(CURL_HTTP_VERSION_2_0): .http2
            case Int(CURL_HTTP_VERSION_3): .http3
            default: .http1_1
            }
        connection.isReused = openedConnections == 0
        connection.timeToFirstByte = max(.zero, first - sent)
        connection.address = EasyHandle.text(CURLINFO_PRIMARY_IP, of: pointer) ?? ""
        connection.setup = connection.isReused ? nil : connectionSetup
        return connection
    }

    private var connectionSetup: ResponseConnection.Setup? {
        guard let connected = time(CURLINFO_CONNECT_TIME_T) else { return nil }
        var setup = ResponseConnection.Setup()
        setup.nameLookup = time(CURLINFO_NAMELOOKUP_TIME_T) ?? .zero
        setup.connecting = max(.zero, connected - setup.nameLookup)
        setup.handshake = time(CURLINFO_APPCONNECT_TIME_T).map { max(.zero, $0 - connected) }
        return setup
    }

    /// The system's error of the last attempt to connect; 0 without one.
    var systemError: Int32 { Int32(truncatingIfNeeded: number(CURLINFO_OS_ERRNO)) }

    var announcedLength: Int? {
        var length: curl_off_t = -1
        ccurl_easy_get_offset(pointer, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length)
        return length >= 0 ? min(Int(clamping: length), .max / 4) : nil
    }

    static func text(_ info: CURLINFO, of handle: UnsafeMutableRawPointer) -> String? {
        var value: UnsafePointer<CChar>?
        guard ccurl_easy_get_string(handle, info, &value) == CURLE_OK else { return nil }
        return value.map { String(cString: $0) }
    }

    var timeToRequest: Duration? { time(CURLINFO_PRETRANSFER_TIME_T) }

    /// A time since the transfer's start; nil before it has come.
    private func time(_ info: CURLINFO) -> Duration? {
        var microseconds: curl_off_t = 0
        ccurl_easy_get_offset(pointer, info, &microseconds)
        return microseconds > 0 ? .microseconds(microseconds) : nil
    }

    func number(_ info: CURLINFO) -> Int {
        var value = 0
        ccurl_easy_get_long(pointer, info, &value)
        return value
    }

    var isEncoded: Bool {
        guard !passesContentThrough else { return false }
        // libcurl also takes `none` for `identity`.
        let encoding = field("Content-Encoding")?.lowercased() ?? ""
        return !["", "identity", "none"].contains(encoding)
    }

    var fields: [HeaderField] {
        var fields: [HeaderField] = []
        fields.reserveCapacity(16)
        var previous: UnsafeMutablePointer<curl_header>?
        while let next = ccurl_easy_nextheader(pointer, UInt32(CURLH_HEADER), -1, previous) {
            fields.append(
                HeaderField(
                    name: String(cString: next.pointee.name),
                    value: String(decoding: EasyHandle.value(of: next), as: UTF8.self)))
            previous = next
        }
        return fields
    }

    /// Whether the response offers the scheme Digest for credentials (RFC 7616).
    var offersDigest: Bool {
        fields.values(of: "www-authenticate").contains { value in
            value.split(separator: ",").contains { challenge in
                challenge.drop { $0 == " " }.prefix { $0 != " " }.lowercased() == "digest"
            }
        }
    }

    var framingProblem: String? {
        var values: [String] = []
        while let value = field("Content-Length", at: values.count) { values.append(value) }
        switch AnnouncedLength(of: values) {
        case .unknown:
            guard field("Transfer-Encoding", at: 1) != nil else { return nil }
            return "the response has two transfer encodings"
        case .unreadable:
            return "the response announces a length that is not a number of bytes"
        case .contradictory:
            return "the response announces different lengths"
        case .bytes:
            guard field("Transfer-Encoding") != nil else { return nil }
            return "the response has both a length and a transfer encoding"
        }
    }

    /// The value of a response field: the first of this name, or a later one.
    func field(_ name: String, at index: Int = 0) -> String? {
        withField(name, at: index) { String(decoding: $0, as: UTF8.self) }
    }

    /// Gives the bytes as received; they need not be UTF-8.
    func withField<Value>(
        _ name: String, at index: Int = 0, _ body: (UnsafeRawBufferPointer) -> Value
    ) -> Value? {
        var field: UnsafeMutablePointer<curl_header>?
        guard
            ccurl_easy_header(pointer, name, index, UInt32(CURLH_HEADER), -1, &field) == CURLHE_OK,
            let field
        else { return nil }
        return body(EasyHandle.value(of: field))
    }

    /// libcurl 7.88 leaves the line's CR in the value of an empty field.
    private static func value(
        of field: UnsafeMutablePointer<curl_header>
    ) -> UnsafeRawBufferPointer {
        let start = field.pointee.value
        let count = start.map { strlen($0) } ?? 0
        let bytes = UnsafeRawBufferPointer(start: start, count: count)
        return UnsafeRawBufferPointer(
            rebasing: bytes.prefix { $0 != UInt8(ascii: "\r") && $0 != UInt8(ascii: "\n") })
    }
}

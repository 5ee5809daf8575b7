internal import CCurl
import Glibc
import Hashing
import PrefetchModel

/// One request by libcurl, on the calling thread.
///
/// The callbacks run inside ``perform(on:)``.
final class HTTPExchange {
    enum Method {
        case get, put, post, delete
    }

    enum Body: Sendable {
        case none
        case bytes([UInt8])
        /// A part of an open file.
        case file(Int32, offset: Int, count: Int)

        var count: Int {
            switch self {
            case .none: 0
            case .bytes(let bytes): bytes.count
            case .file(_, _, let count): count
            }
        }
    }

    enum Output {
        case memory(limit: Int)
        /// An open, empty file for a body of status 200 or 206 of at most `limit` bytes.
        case file(Int32, limit: Int)
    }

    struct Signature {
        let credentials: ObjectCredentials
        let region: String
    }

    struct Request {
        var method: Method
        var url: String
        var fields: [String] = []
        var body = Body.none
        var output = Output.memory(limit: 8 << 20)
        var signature: Signature?
        var limits: Limits
        /// Nil for libcurl's own.
        var authorityFile: String?
        /// False for services of the machine itself.
        var usesProxy = true
    }

    struct Limits: Sendable {
        let connectTimeout: Duration
        /// The longest time without a byte.
        let stallTimeout: Duration
        /// The longest time for all; nil for any.
        var totalTimeout: Duration?
    }

    enum Result {
        case response(Response)
        case failed(Failure)
    }

    struct Response {
        let status: Int
        /// By name in lower case.
        let fields: [String: String]
        /// Empty for a body that went to a file.
        let body: [UInt8]
        /// The digest and size of a body that went to a file.
        let file: (digest: ContentDigest, count: Int)?

        var isSuccess: Bool { (200...299).contains(status) }
    }

    struct Failure {
        enum Cause {
            /// Trying again may help.
            case connection
            case stopped
            /// The file to send is shorter than its request says.
            case shortFile
            /// The answer is longer than the request allows.
            case longAnswer
            /// The file to receive cannot be written; `errno`.
            case disk(Int32)
            case other
        }

        let cause: Cause
        let text: String
    }

    private let request: Request
    private let isStopped: () -> Bool
    private let handle: UnsafeMutableRawPointer
    private var sent = 0
    private var received: [UInt8] = []
    private var fields: [String: String] = [:]
    private var fileDigest: SHA256Stream?
    private var fileCount = 0
    private var cause: Failure.Cause?

    private init(
        _ request: Request, on handle: UnsafeMutableRawPointer, isStopped: @escaping () -> Bool
    ) {
        self.request = request
        self.handle = handle
        self.isStopped = isStopped
    }

    /// Sends a request and takes its answer.
    ///
    /// - Parameters:
    ///   - request: the request.
    ///   - handle: an easy handle, whose options are replaced; its connections are reused.
    ///   - isStopped: asked about once a second, and more often while bytes move.
    /// - Returns: the answer, of whatever status, or why there is none.
    static func perform(
        _ request: Request, on handle: UnsafeMutableRawPointer, isStopped: @escaping () -> Bool
    ) -> Result {
        let exchange = HTTPExchange(request, on: handle, isStopped: isStopped)
        return withExtendedLifetime(exchange) { exchange.perform() }
    }

    private func perform() -> Result {
        var list: UnsafeMutablePointer<curl_slist>?
        defer { ccurl_slist_free_all(list) }
        for field in request.fields {
            guard let longer = ccurl_slist_append(list, field) else { return outOfMemory }
            list = longer
        }
        let setting = set(fields: list)
        guard setting == CURLE_OK else { return failure(setting) }
        let code = ccurl_easy_perform(handle)
        // libcurl must not keep a reference to the list or to this object.
        ccurl_easy_reset(handle)
        guard code == CURLE_OK else { return failure(code) }
        return .response(
            Response(
                status: status, fields: fields, body: received,
                file: fileDigest.map { ($0.finish(), fileCount) }))
    }

    private var status = 0

    private var outOfMemory: Result {
        .failed(Failure(cause: .other, text: "out of memory"))
    }

    private func failure(_ code: CURLcode) -> Result {
        let text = String(cString: ccurl_easy_strerror(code))
        if let cause { return .failed(Failure(cause: cause, text: text)) }
        switch code {
        case CURLE_ABORTED_BY_CALLBACK: return .failed(Failure(cause: .stopped, text: text))
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT,
            CURLE_OPERATION_TIMEDOUT, CURLE_PARTIAL_FILE, CURLE_GOT_NOTHING, CURLE_SEND_ERROR,
            CURLE_RECV_ERROR, CURLE_SEND_FAIL_REWIND, CURLE_WEIRD_SERVER_REPLY,
            CURLE_SSL_CONNECT_ERROR, CURLE_PROXY, CURLE_AGAIN:
            return .failed(Failure(cause: .connection, text: text))
        default: return .failed(Failure(cause: .other, text: text))
        }
    }

    // MARK: Options

    private func set(fields list: UnsafeMutablePointer<curl_slist>?) -> CURLcode {
        ccurl_easy_reset(handle)
        let stall = max(1, request.limits.stallTimeout.components.seconds)
        var longs: [(CURLoption, Int)] = [
            (CURLOPT_NOSIGNAL, 1),
            (
                CURLOPT_CONNECTTIMEOUT_MS,
                Int(clamping: max(1, request.limits.connectTimeout.wholeMilliseconds))
            ),
            (CURLOPT_LOW_SPEED_LIMIT, 1), (CURLOPT_LOW_SPEED_TIME, Int(stall)),
            (CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1)), (CURLOPT_NOPROGRESS, 0),
            // Some servers never send the 100 that libcurl waits a second for.
            (CURLOPT_EXPECT_100_TIMEOUT_MS, 250), (CURLOPT_BUFFERSIZE, 64 << 10),
            (CURLOPT_UPLOAD_BUFFERSIZE, 256 << 10),
        ]
        var texts: [(CURLoption, String)] = [
            (CURLOPT_URL, request.url), (CURLOPT_PROTOCOLS_STR, "http,https"),
            (CURLOPT_USERAGENT, "prefetch"),
        ]
        switch request.method {
        case .get: longs.append((CURLOPT_HTTPGET, 1))
        case .delete: texts.append((CURLOPT_CUSTOMREQUEST, "DELETE"))
        case .put: longs.append((CURLOPT_UPLOAD, 1))
        case .post:
            longs.append((CURLOPT_POST, 1))
        }
        if let time = request.limits.totalTimeout {
            longs.append((CURLOPT_TIMEOUT_MS, Int(clamping: max(1, time.wholeMilliseconds))))
        }
        if !request.usesProxy { texts.append((CURLOPT_PROXY, "")) }
        if let authorityFile = request.authorityFile {
            texts.append((CURLOPT_CAINFO, authorityFile))
        }
        if let signature = request.signature {
            texts.append((CURLOPT_AWS_SIGV4, "aws:amz:\(signature.region):s3"))
            texts.append((CURLOPT_USERNAME, signature.credentials.accessKey))
            texts.append((CURLOPT_PASSWORD, signature.credentials.secretKey))
        }
        for (option, value) in longs {
            let code = ccurl_easy_set_long(handle, option, value)
            guard code == CURLE_OK else { return code }
        }
        for (option, value) in texts {
            let code = ccurl_easy_set_string(handle, option, value)
            guard code == CURLE_OK else { return code }
        }
        let context = Unmanaged.passUnretained(self).toOpaque()
        let codes = [
            ccurl_easy_set_list(handle, CURLOPT_HTTPHEADER, list),
            // libcurl asks for the bytes of a body.
            request.method == .put
                ? ccurl_easy_set_offset(
                    handle, CURLOPT_INFILESIZE_LARGE, request.body.count)
                : request.method == .post
                    ? ccurl_easy_set_offset(
                        handle, CURLOPT_POSTFIELDSIZE_LARGE, request.body.count)
                    : CURLE_OK,
            ccurl_easy_set_read_function(handle, readForExchange),
            ccurl_easy_set_pointer(handle, CURLOPT_READDATA, context),
            ccurl_easy_set_write_function(handle, writeForExchange),
            ccurl_easy_set_pointer(handle, CURLOPT_WRITEDATA, context),
            ccurl_easy_set_header_function(handle, fieldForExchange),
            ccurl_easy_set_pointer(handle, CURLOPT_HEADERDATA, context),
            ccurl_easy_set_progress_function(handle, progressForExchange),
            ccurl_easy_set_pointer(handle, CURLOPT_XFERINFODATA, context),
        ]
        return codes.first { $0 != CURLE_OK } ?? CURLE_OK
    }

    // MARK: Callbacks

    fileprivate func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(buffer.count, request.body.count - sent)
        guard count > 0, let start = buffer.baseAddress else { return 0 }
        switch request.body {
        case .none: return 0
        case .bytes(let bytes):
            bytes.withUnsafeBytes { bytes in
                buffer.copyMemory(
                    from: UnsafeRawBufferPointer(rebasing: bytes[sent..<sent + count]))
            }
        case .file(let file, let offset, _):
            let number = pread(file, start, count, offset + sent)
            guard number > 0 else {
                cause = number < 0 ? .disk(errno) : .shortFile
                return Int(CURL_READFUNC_ABORT)
            }
            sent += number
            return number
        }
        sent += count
        return count
    }

    fileprivate func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
        switch request.output {
        case .file(let file, let limit) where status == 200 || status == 206:
            guard fileCount + bytes.count <= limit else {
                cause = .longAnswer
                return false
            }
            var rest = bytes
            while !rest.isEmpty {
                let count = Glibc.write(file, rest.baseAddress, rest.count)
                guard count > 0 else {
                    if count < 0, errno == EINTR { continue }
                    cause = .disk(errno)
                    return false
                }
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            }
            fileDigest?.update(bytes)
            fileCount += bytes.count
            return true
        case .file:
            return append(bytes, limit: 1 << 20)
        case .memory(let limit):
            let isSuccess = (200...299).contains(status)
            return append(bytes, limit: isSuccess ? limit : 1 << 20)
        }
    }

    private func append(_ bytes: UnsafeRawBufferPointer, limit: Int) -> Bool {
        guard received.count + bytes.count <= limit else {
            cause = .longAnswer
            return false
        }
        received += bytes
        return true
    }

    fileprivate func note(_ line: UnsafeRawBufferPointer) {
        let text = String(decoding: line, as: UTF8.self)
        if text.hasPrefix("HTTP/") {
            // A final response follows an interim one.
            fields = [:]
            status = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
            if case .file = request.output, status == 200 || status == 206 {
                fileDigest = SHA256Stream()
            }
            return
        }
        guard let colon = text.firstIndex(of: ":") else { return }
        let value = text[text.index(after: colon)...].drop(while: \.isWhitespace)
        fields[text[..<colon].lowercased()] = String(
            value.reversed().drop(while: \.isWhitespace).reversed())
    }

    fileprivate var isAborted: Bool { isStopped() }
}

private func exchange(_ context: UnsafeMutableRawPointer?) -> HTTPExchange? {
    context.map { Unmanaged<HTTPExchange>.fromOpaque($0).takeUnretainedValue() }
}

private func readForExchange(
    _ data: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    exchange(context)?.read(into: UnsafeMutableRawBufferPointer(start: data, count: size * count))
        ?? 0
}

private func writeForExchange(
    _ data: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    let bytes = UnsafeRawBufferPointer(start: data, count: size * count)
    return exchange(context)?.write(bytes) == true ? bytes.count : 0
}

private func fieldForExchange(
    _ data: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    let line = UnsafeRawBufferPointer(start: data, count: size * count)
    exchange(context)?.note(line)
    return line.count
}

private func progressForExchange(
    _ context: UnsafeMutableRawPointer?, _: curl_off_t, _: curl_off_t, _: curl_off_t,
    _: curl_off_t
) -> Int32 {
    exchange(context)?.isAborted == true ? 1 : 0
}

internal import CCurl
import Glibc
import Hashing
import PrefetchModel
import Threading

/// Sends requests to a storage and repeats those that may succeed later; for one thread, which
/// blocks.
package final class ObjectClient {
    package let storage: ObjectStorage
    private let handle: UnsafeMutableRawPointer

    /// The most attempts of a request, over about half a minute.
    private static let attempts = 8
    private static let firstDelay = Duration.milliseconds(250)
    private static let longestDelay = Duration.seconds(20)

    /// - Throws: when libcurl has no memory.
    package init(_ storage: ObjectStorage) throws(ObjectStorageError) {
        guard let handle = ccurl_easy_init() else {
            throw ObjectStorageError(.other, "libcurl has no memory")
        }
        self.storage = storage
        self.handle = handle
    }

    deinit { ccurl_easy_cleanup(handle) }

    /// A request for an object, or for the bucket.
    struct Request {
        var method = HTTPExchange.Method.get
        /// Empty for the bucket.
        var key: String
        var query: [(name: String, value: String)] = []
        var fields: [String] = []
        var body = HTTPExchange.Body.none
        /// The body's; nil for no body.
        var digest: ContentDigest?
        /// Returns an empty output for each attempt.
        var output: () -> HTTPExchange.Output = { .memory(limit: 8 << 20) }
    }

    /// SHA-256 of no bytes.
    private static let emptyDigest = SHA256Hasher().digest(
        of: UnsafeRawBufferPointer(start: nil, count: 0))

    /// Sends a request until it succeeds or fails for good.
    func perform(_ request: Request) throws(ObjectStorageError) -> HTTPExchange.Response {
        var next: ContinuousClock.Instant?
        var attempt = 1
        var mayRenew = true
        while true {
            try storage.wait(until: next)
            var delay = ObjectClient.delay(after: attempt)
            switch try once(request) {
            case .response(let response):
                if response.isSuccess { return response }
                let problem = ObjectProblem(response)
                if problem.isOfExpiredToken, mayRenew, storage.forgetCredentials() {
                    mayRenew = false
                    continue
                }
                guard problem.isTransient, attempt < ObjectClient.attempts else {
                    throw problem.error(request.key, of: storage, attempts: attempt)
                }
                if let wanted = problem.retryAfter { delay = max(delay, wanted) }
                // The service as a whole is too busy.
                if problem.isSlowDown { storage.pause(delay) }
            case .failed(let failure):
                guard case .connection = failure.cause, attempt < ObjectClient.attempts else {
                    throw error(failure, request.key, attempts: attempt)
                }
            }
            next = .now + delay
            attempt += 1
        }
    }

    private func once(_ request: Request) throws(ObjectStorageError) -> HTTPExchange.Result {
        let credentials = try storage.credentials()
        var fields = request.fields
        fields.append("x-amz-content-sha256: \(request.digest ?? ObjectClient.emptyDigest)")
        if let token = credentials?.sessionToken { fields.append("x-amz-security-token: \(token)") }
        let endpoint = storage.endpoint
        return HTTPExchange.perform(
            HTTPExchange.Request(
                method: request.method,
                url: endpoint.url(key: request.key, query: request.query), fields: fields,
                body: request.body, output: request.output(),
                signature: credentials.map {
                    HTTPExchange.Signature(credentials: $0, region: endpoint.region)
                },
                limits: storage.limits, authorityFile: storage.authorityFile),
            on: handle, isStopped: { [storage] in storage.isStopped })
    }

    /// Doubled after each attempt, with jitter, so that clients do not return together.
    private static func delay(after attempt: Int) -> Duration {
        let full = min(longestDelay, firstDelay * (1 << (attempt - 1)))
        return full * Double.random(in: 0.5...1)
    }

    private func error(
        _ failure: HTTPExchange.Failure, _ key: String, attempts: Int
    ) -> ObjectStorageError {
        let subject = "\(storage.name(of: key))"
        switch failure.cause {
        case .stopped: return ObjectStorageError(.cancelled, "stopped")
        case .shortFile:
            return ObjectStorageError(.damaged, "\(subject): the file has become shorter")
        case .longAnswer:
            return ObjectStorageError(.damaged, "\(subject): the answer is longer than asked for")
        case .disk(let code):
            return ObjectStorageError(
                .other,
                "\(subject): the file cannot be read or written: \(String(cString: strerror(code)))"
            )
        case .connection:
            return ObjectStorageError(
                .other, "\(subject): \(failure.text), \(attempts) times",
                hint: "is \(storage.endpoint.base) the right endpoint? AWS_ENDPOINT_URL_S3 sets it")
        case .other:
            return ObjectStorageError(.other, "\(subject): \(failure.text)")
        }
    }
}

/// Confined to the thread that created it.
@available(*, unavailable)
extension ObjectClient: Sendable {}

extension ObjectStorage {
    /// The name of an object for messages.
    func name(of key: String) -> String {
        key.isEmpty ? "s3://\(location.bucket)" : "s3://\(location.bucket)/\(key)"
    }
}

/// An answer of a service other than success.
struct ObjectProblem {
    let status: Int
    /// As `SlowDown`; empty for an answer without one.
    let code: String
    private let message: String
    /// The region of the bucket, which the answer to a wrong one names.
    private let region: String?
    /// The target of a redirect, which is not followed.
    private let location: String?
    let retryAfter: Duration?

    init(_ response: HTTPExchange.Response) {
        status = response.status
        let elements = ObjectElements(response.body)
        code = elements["Code"] ?? ""
        message = elements["Message"] ?? ""
        region = response.fields["x-amz-bucket-region"]
        location = response.fields["location"]
        retryAfter = response.fields["retry-after"].flatMap { Int($0) }.flatMap {
            $0 > 0 ? .seconds(min($0, 60)) : nil
        }
    }

    var isTransient: Bool {
        [408, 429, 500, 502, 503, 504].contains(status) || ObjectProblem.isTransient(code)
    }

    /// Whether a request with this error may succeed later.
    static func isTransient(_ code: String) -> Bool {
        ["RequestTimeout", "InternalError", "SlowDown", "OperationAborted"].contains(code)
    }

    var isSlowDown: Bool { status == 503 || status == 429 || code == "SlowDown" }

    var isOfExpiredToken: Bool { code == "ExpiredToken" || code == "ExpiredTokenException" }

    private var isMissing: Bool {
        status == 404
    }

    func error(
        _ key: String, of storage: ObjectStorage, attempts: Int
    ) -> ObjectStorageError {
        var text = "\(storage.name(of: key)): the service answered \(status)"
        if !code.isEmpty { text += " \(code)" }
        if !message.isEmpty { text += " (\(message))" }
        if attempts > 1 { text += ", \(attempts) times" }
        var hint: String?
        switch (status, code) {
        case (_, "NoSuchBucket"): hint = "create the bucket first; `prefetch` does not"
        case (_, "RequestTimeTooSkewed"): hint = "the clock of this machine is wrong"
        case (_, "SignatureDoesNotMatch"), (_, "InvalidAccessKeyId"):
            hint = "check the secret key, and AWS_REGION (now \(storage.endpoint.region))"
        case (300...399, _) where region == nil && code.isEmpty:
            hint = location.map { "the endpoint redirects to \(RedactedURL($0))" }
        case (301, _), (307, _), (_, "AuthorizationHeaderMalformed"), (_, "PermanentRedirect"):
            hint =
                region.map { "the bucket is in \($0): set AWS_REGION" }
                ?? "set AWS_REGION to the region of the bucket"
        case (403, _): hint = "these credentials may not do that"
        default: break
        }
        let kind: ObjectStorageError.Kind =
            isMissing
            ? .missing
            : ["XAmzContentSHA256Mismatch", "BadDigest"].contains(code) ? .damaged : .other
        return ObjectStorageError(kind, text, hint: hint)
    }
}

package import PrefetchModel
import URLParsing

/// What to ask an origin for: one GET, one attempt on the wire.
package struct TransferRequest: Sendable {
    /// Chosen by the caller; comes back in ``TransferCompletion``.
    package let id: Int
    /// Its credentials become `Authorization`, unless ``isForeign``.
    package let url: RequestURL
    /// Conditions, sent beside the fields of every request; values without control bytes.
    package let fields: [HeaderField]
    /// What the user gave this request, in place of ``RequestSettings/fields`` of the same names; an
    /// empty value leaves the field out.
    package let userFields: [HeaderField]
    /// Whether a redirect led from the listed origin (scheme, host and port) to another one. Then
    /// nothing that was given for the listed one is sent: no field of the user, no credentials of
    /// his, and none from the URL. What the netrc file and the cookie jar have for the other host
    /// is for that host.
    package let isForeign: Bool
    /// Which addresses it may be sent to; nil means the configuration's rule for what is listed.
    package let addressRule: AddressRule?
    /// Set when ``fields`` ask for the rest of a body only.
    package let continuation: BodyContinuation?
    /// Judges the body of a 200 while it arrives; nil to take any.
    package let judge: BodyJudge?
    /// Whether the caller has nothing else for the host now, so that its connection need not stay.
    package let isLastOfHost: Bool

    package init(
        id: Int, url: RequestURL, fields: [HeaderField] = [], userFields: [HeaderField] = [],
        isForeign: Bool = false, addressRule: AddressRule? = nil,
        continuation: BodyContinuation? = nil, judge: BodyJudge? = nil,
        isLastOfHost: Bool = false
    ) {
        self.id = id
        self.url = url
        self.fields = fields
        self.userFields = userFields
        self.isForeign = isForeign
        self.addressRule = addressRule
        self.continuation = continuation
        self.judge = judge
        self.isLastOfHost = isLastOfHost
    }
}

/// How a request goes on with a body of which a part is there.
package struct BodyContinuation: Sendable {
    /// Bytes that are there: those of the answer come behind them.
    package let offset: Int
    /// Judges the fields of a 206.
    package let judge: @Sendable ([HeaderField]) -> Verdict

    package enum Verdict: Hashable, Sendable {
        /// Its body is the rest; with `total` the whole has that many bytes.
        case continues(total: Int?)
        /// Its body must not be put behind the part.
        case isOfNoUse
    }

    package init(
        offset: Int, judge: @escaping @Sendable ([HeaderField]) -> Verdict
    ) {
        self.offset = offset
        self.judge = judge
    }
}

/// Judges a body by its beginning, so that one that is of no use need not arrive whole.
package struct BodyJudge: Sendable {
    package enum Verdict: Sendable {
        /// Worth another look when more has come.
        case undecided
        /// Not to be asked again.
        case accepted
        case refused(BodyRefusal)
    }

    /// Called on the loop's thread with what there is of the body, decoded, and the count of all its
    /// bytes, if that is known.
    package let judge: @Sendable (UnsafeRawBufferPointer, Int?) -> Verdict

    package init(_ judge: @escaping @Sendable (UnsafeRawBufferPointer, Int?) -> Verdict) {
        self.judge = judge
    }
}

/// Why a body is of no use, whatever the rest of it is.
package struct BodyRefusal: Hashable, Sendable {
    package let reason: FailureReason
    package let message: String

    package init(reason: FailureReason, message: String) {
        self.reason = reason
        self.message = message
    }
}

/// The end of one transfer.
package struct TransferCompletion: Sendable {
    package enum Result: Sendable {
        /// A whole response arrived.
        ///
        /// The body is present for status 200, and for a 206 that continues a part that was there:
        /// then the body begins with a gap. Every other body is read past and dropped.
        case response(Response, Body?)
        /// A response whose body was refused by its beginning: the rest was not waited for.
        case refused(Response, BodyRefusal)
        case failure(TransferFailure)
        /// ``TransferLoop/cancelAll()`` ended it.
        case cancelled
    }

    package let id: Int
    package let result: Result
    /// Body bytes that arrived, after content decoding, also of failed transfers.
    package let bytesReceived: Int
    /// From the moment the transfer was handed to libcurl, by the monotonic clock.
    package let elapsed: Duration
    /// What the connection led to, whether it was opened for this transfer or reused; nil without a
    /// connection, and with a proxy, behind which nobody knows.
    package let address: AddressClass?
    /// What came of a body that could not be received to its end, for a failure in mid-body and for
    /// a cancelled transfer.
    package let brokenBody: BrokenBody?
}

/// A body that broke off.
package struct BrokenBody: Sendable {
    /// From the first byte on; with a gap when the transfer continued a part.
    package let body: Body
    package let head: Response
}

/// The head of a whole response.
package struct Response: Sendable {
    package let status: Int
    package let fields: [HeaderField]
    /// Whether the transport could tell that the body was whole: it was announced, chunked, or
    /// framed by HTTP/2. False for a body that ended with its connection.
    package let hasFramedBody: Bool
    /// What `Location` says; nil without one, and for a status that is no redirect.
    package let redirect: Redirect?
    /// When its last byte arrived.
    package let receivedAt: Timestamp
}

/// Where a redirect leads.
package enum Redirect: Hashable, Sendable {
    /// Without credentials, which are the user's to give and no origin's.
    case to(RequestURL)
    /// To what cannot be asked for; `location` is its beginning, for people.
    case nowhere(location: String, message: String)
}

/// Why no whole response arrived.
package struct TransferFailure: Error, Sendable {
    package let reason: FailureReason
    /// libcurl's code, nil where it had no part.
    package let curlCode: Int32?
    /// The status of the response that broke off or was refused, when its head had arrived.
    package let httpStatus: Int?
    package let message: String
}

/// libcurl cannot be used at all, or broke its own promises.
package struct TransferLoopError: Error, CustomStringConvertible {
    package let operation: String
    package let code: Int32
    package let message: String
    /// What the code is of.
    var origin = Origin.libcurl
    package var hint: String?

    enum Origin {
        case libcurl
        /// An `errno`.
        case system
        /// It says nothing: libcurl cannot be loaded.
        case missingLibrary
    }

    package var description: String {
        switch origin {
        case .libcurl: "libcurl: \(operation): \(message) (\(code))"
        case .system: "\(operation): \(message)"
        case .missingLibrary: message
        }
    }
}

extension TransferLoopError {
    init(_ missing: CurlLibrary.Missing) {
        self.init(
            operation: "loading", code: 0, message: missing.description, origin: .missingLibrary,
            hint: missing.hint)
    }
}

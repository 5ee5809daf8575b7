package import PrefetchModel

/// One GET or HEAD, or a request to a service: one attempt on the wire.
package struct TransferRequest: Sendable {
    /// Repeated in ``TransferCompletion``. ``BlockingTransfers`` replaces the caller's choice.
    package var id = 0
    /// Its credentials become `Authorization`, unless ``isForeign``.
    package let url: RequestURL
    /// Conditions, sent in addition to the fields of every request; values without control bytes.
    package var fields: [HeaderField] = []
    /// The user's fields for this request, which replace ``RequestSettings/fields`` of the same
    /// names. An empty value leaves the field out.
    package var userFields: [HeaderField] = []
    /// Whether a redirect led from the listed origin (scheme, host and port) to another one.
    ///
    /// Then no field of the user is sent but `Accept`, and no credentials of the user or the URL.
    /// The netrc file and the cookie jar still apply: their entries name the other host.
    package var isForeign = false
    /// The addresses it may be sent to; nil for the configuration's rule for listed URLs.
    package var addressRule: AddressRule?
    package var bodyUse = BodyUse.stored
    /// Set when ``fields`` request only the rest of a body.
    package var continuation: BodyContinuation?
    /// Judges the body of a 200 while it arrives; nil accepts any.
    package var judge: BodyJudge?
    /// Whether the caller has nothing else for the host now, so that its connection may be closed.
    package var isLastOfHost = false
    /// Nil for images and lists.
    package private(set) var exchange: ServiceExchange?
}

extension TransferRequest {
    package init(url: RequestURL) { self.init(id: 0, url: url) }

    /// A request to a service, with these fields only.
    package init(to url: String, fields: [HeaderField], exchange: ServiceExchange) {
        self.init(url: RequestURL(normalized: url), fields: fields, exchange: exchange)
    }
}

/// The resumption of a body after a stored first part: the stored bytes, which the response's body
/// follows, and a judge of the fields of a 206.
package typealias BodyContinuation = (
    offset: Int, judge: @Sendable ([HeaderField]) -> ContinuationVerdict
)

package enum ContinuationVerdict: Hashable, Sendable {
    /// The body is the rest. `total`: the bytes of the whole body, if known.
    case continues(total: Int?)
    /// The body must not be appended to the part.
    case isOfNoUse
}

/// Judges a body by its beginning: a useless one need not arrive whole. Called on the loop's thread
/// with the decoded bytes so far and the body's length, if known.
package typealias BodyJudge = @Sendable (UnsafeRawBufferPointer, Int?) -> BodyVerdict

package enum BodyVerdict: Sendable {
    /// The judge needs more bytes.
    case undecided
    /// The judge is not called again.
    case accepted
    case refused(Failure)
}

/// The end of one transfer. The values with defaults are those of a request that libcurl was not
/// given.
package struct TransferCompletion: Sendable {
    package enum TransferResult: Sendable {
        /// A whole response.
        ///
        /// It has a body for status 200, and for a 206 that resumes a stored part: that body begins
        /// with a gap. Every other body is read and dropped.
        case response(Response, Body?)
        /// A response with a body that was refused by its beginning. The rest was not awaited.
        case refused(Response, Failure)
        case failure(TransferFailure)
        /// ``TransferLoop/cancelAll()`` ended it.
        case cancelled
    }

    package let id: Int
    package let result: TransferResult
    /// Body bytes that arrived, after content decoding, also of failed transfers.
    package private(set) var bytesReceived = 0
    /// Since the transfer was handed to libcurl, by the monotonic clock.
    package private(set) var elapsed = Duration.zero
    /// Nil without the first byte of a response.
    package private(set) var connection: ResponseConnection?
    /// The class of the connection's address, new or reused. Nil without a connection, and with a
    /// proxy, which hides the origin's address.
    package private(set) var address: AddressClass?
    /// The stored part of a body, for a failure in mid-body and for a cancelled transfer.
    package private(set) var interruptedBody: InterruptedBody?
}

/// A body that broke off.
package struct InterruptedBody: Sendable {
    /// The bytes from the first one on; with a gap when the transfer resumed a stored part.
    package let body: Body
    package let head: Response
}

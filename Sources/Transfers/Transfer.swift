package import PrefetchModel

/// What to ask an origin for: one GET, one attempt on the wire.
package struct TransferRequest: Sendable {
    /// Chosen by the caller; comes back in ``TransferCompletion``.
    package let id: Int
    /// An absolute http or https URL; user information in it becomes `Authorization`.
    package let url: String
    /// Sent beside the fields of every request; values without control bytes.
    package let fields: [HeaderField]
    /// Which addresses it may be sent to; nil means the configuration's rule for what is listed.
    package let addressRule: AddressRule?

    package init(
        id: Int, url: String, fields: [HeaderField] = [], addressRule: AddressRule? = nil
    ) {
        self.id = id
        self.url = url
        self.fields = fields
        self.addressRule = addressRule
    }
}

/// The end of one transfer.
package struct TransferCompletion: Sendable {
    package enum Result: Sendable {
        /// A whole response arrived.
        ///
        /// The body is present for status 200 only; every other body is read past and dropped.
        case response(Response, Body?)
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
    /// connection.
    package let address: AddressClass?
}

/// The head of a whole response.
package struct Response: Sendable {
    package let status: Int
    package let fields: [HeaderField]
    /// Whether the transport could tell that the body was whole: it was announced, chunked, or
    /// framed by HTTP/2. False for a body that ended with its connection.
    package let hasFramedBody: Bool
    /// `Location` resolved against the request's URL, for a redirect that has one.
    package let redirectURL: String?
    /// When its last byte arrived.
    package let receivedAt: Timestamp
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

    package var description: String { "libcurl: \(operation): \(message) (\(code))" }
}

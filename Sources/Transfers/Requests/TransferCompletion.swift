package import PrefetchModel

/// The end of one transfer.
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
    package let bytesReceived: Int
    /// Since the transfer was handed to libcurl, by the monotonic clock.
    package let elapsed: Duration
    /// Nil without the first byte of a response.
    package let connection: ResponseConnection?
    /// The class of the connection's address, new or reused. Nil without a connection, and with a
    /// proxy, which hides the origin's address.
    package let address: AddressClass?
    /// The stored part of a body, for a failure in mid-body and for a cancelled transfer.
    package let interruptedBody: InterruptedBody?
}

extension TransferCompletion {
    /// The end of a request that libcurl was not given.
    init(unstarted id: Int, _ result: TransferResult) {
        self.init(
            id: id, result: result, bytesReceived: 0, elapsed: .zero, connection: nil,
            address: nil, interruptedBody: nil)
    }
}

/// A body that broke off.
package struct InterruptedBody: Sendable {
    /// The bytes from the first one on; with a gap when the transfer resumed a stored part.
    package let body: Body
    package let head: Response
}

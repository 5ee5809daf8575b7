/// A transfer without a whole response.
package struct TransferFailure: Error, Sendable {
    package let failure: Failure
    /// The status of the interrupted or refused response; nil before its head arrived.
    package let httpStatus: Int?
    /// libcurl's code; nil where libcurl reported none.
    package let curlCode: Int?

    package let persistence: Persistence

    /// The chance of other requests to the same host.
    package enum Persistence: Hashable, Sendable {
        case unknown
        /// Nothing listens at the host's port, no TLS is spoken there, or its name has no address:
        /// that changes within seconds, as when a server restarts, or not in this run.
        case absent
        case untrusted
    }

    package init(
        _ failure: Failure, httpStatus: Int?, curlCode: Int? = nil,
        persistence: Persistence = .unknown
    ) {
        self.failure = failure
        self.persistence = persistence
        self.httpStatus = httpStatus
        self.curlCode = curlCode
    }

    package var reason: FailureReason { failure.reason }
    package var message: String { failure.message }
}

/// A transfer without a whole response.
package struct TransferFailure: Error, Sendable {
    package let failure: Failure
    /// The status of the interrupted or refused response; nil before its head arrived.
    package let httpStatus: Int?
    /// libcurl's code; nil where libcurl reported none.
    package let curlCode: Int?

    package init(_ failure: Failure, httpStatus: Int?, curlCode: Int? = nil) {
        self.failure = failure
        self.httpStatus = httpStatus
        self.curlCode = curlCode
    }

    package var reason: FailureReason { failure.reason }
    package var message: String { failure.message }
}
